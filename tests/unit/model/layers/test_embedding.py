"""A normed embedding is its equation, number by number; dropout comes after the norm."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tfm.model.attention.positions import sinusoids
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layers.embedding import Embedding

V, D, EPS = 9, 6, 0.03
PIECES, POSITIONS = torch.tensor([4, 8, 4, 5]), torch.tensor([0, 1, 2, 0])


def embedding(side: str = "target", **changes: Any) -> Any:
    stack = StackConfig(layers=1, dim=D, heads=2, feed_forward_dim=4)
    config = {"encoder": stack, "decoder": stack, "norm_eps": EPS, "embedding_norm": True, "max_length": 8}
    model: Any = build(ModelConfig.model_validate(config | changes), source_vocab=V, target_vocab=V, seed=1)
    found = model.get_submodule(f"{side}_embedding").double()
    with torch.no_grad():
        for weight in found.norm.parameters():
            weight.copy_(torch.linspace(0.3, 2.0, D))
    return found


def plain_norm(row: list[float], gain: list[float]) -> list[float]:
    mean = sum(row) / D
    variance = sum((each - mean) ** 2 for each in row) / D
    return [(each - mean) / (variance + EPS) ** 0.5 * g + g for each, g in zip(row, gain, strict=True)]


@pytest.mark.parametrize("architecture", ["transformer", "recurrent"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_the_sum_of_embedding_and_position_is_normed(side: str, architecture: str) -> None:
    part = embedding(side, architecture=architecture).eval()
    counted = sinusoids(D, 8) if architecture == "transformer" else torch.zeros(8, D)
    gain = torch.linspace(0.3, 2.0, D).double().tolist()
    for piece, position, got in zip(PIECES, POSITIONS, part(PIECES, POSITIONS), strict=True):
        row = part.table.weight[piece] * D**0.5 + counted[position].float()
        torch.testing.assert_close(got, torch.tensor(plain_norm(row.tolist(), gain)).double(), rtol=0, atol=1e-6)


def test_the_norm_is_the_one_of_the_configuration() -> None:
    x = embedding(normalization="rms", positions="none", scale_embedding=False)
    row = x.table.weight[4]
    want = row / (row.square().mean() + EPS).sqrt() * torch.linspace(0.3, 2.0, D)
    torch.testing.assert_close(x.eval()(PIECES[:1], POSITIONS[:1])[0], want, rtol=0, atol=1e-12)


def test_dropout_comes_after_the_norm() -> None:
    part = embedding(dropout=DropoutConfig(embedding=0.5)).train()
    whole: Tensor = part.eval()(PIECES, POSITIONS)
    dropped = part.train()(PIECES, POSITIONS)
    kept = dropped != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


def test_without_it_there_is_no_weight_more() -> None:
    model: Any = build(ModelConfig(), source_vocab=V, target_vocab=V)
    assert isinstance(model.target_embedding, Embedding)
    assert not [name for name, _ in model.named_parameters() if "embedding.norm" in name]
