"""Initial weights drawn evenly from a range, but for those of norms (Sutskever et al. 2014, section 3.4)."""

from typing import Any

import pytest
import torch

from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layers.normalization import NORM_CLASSES, NORMALIZATIONS

STACK = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=24)
SCALE = 0.08


def network(seed: int = 1, **changes: Any) -> Any:
    config = ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "init_range": SCALE} | changes)
    return build(config, source_vocab=40, target_vocab=40, seed=seed)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"normalization": "layer_std"},
        {"architecture": "recurrent", "recurrent": {"attention": "luong", "normalization": "layer"}},
        {"architecture": "recurrent", "task": "language_model"},
    ],
    ids=str,
)
def test_all_weights_but_those_of_norms_are_of_the_range(changes: dict[str, Any]) -> None:
    model = network(**changes)
    of_norms = {
        id(each) for module in model.modules() if isinstance(module, NORM_CLASSES) for each in module.parameters()
    }
    assert bool(of_norms) == (changes.get("task") != "language_model")
    for name, weight in model.named_parameters():
        if id(weight) in of_norms:
            assert set(weight.flatten().tolist()) <= {0.0, 1.0}, name
        else:
            assert 0.5 * SCALE < weight.detach().abs().max() <= SCALE, name
    drawn = torch.cat([each.detach().flatten() for each in model.parameters() if id(each) not in of_norms])
    assert float(drawn.mean()) == pytest.approx(0, abs=0.003)
    assert float(drawn.std()) == pytest.approx(SCALE / 3**0.5, rel=0.03)


def test_they_follow_from_the_seed() -> None:
    one, same, other = (network(seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["output.weight"], other["output.weight"])


def test_every_norm_with_weights_is_known_as_one() -> None:
    for name, make in NORMALIZATIONS.items():
        norm = make(4)
        assert isinstance(norm, NORM_CLASSES) == bool([*norm.parameters()]), name
