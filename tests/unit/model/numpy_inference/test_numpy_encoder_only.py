"""Labels of the network in numpy are those of the one in torch, and it knows no other parts than it says."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.rounding import assert_rounds_like
from tests.tiny_model import tiny_model
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.config import ModelConfig
from tfm.model.numpy_inference.weights import (
    LABEL_MODEL_KEYS,
    UnsupportedModelError,
    build_encoder_only_network,
    build_network,
    is_label_model,
)
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import EOS_ID

BASE = {"architecture": "encoder_only", "tie": "none", "positions": "learned"}
MODELS: dict[str, dict[str, Any]] = {
    "tags": {"task": "tagging"},
    "tags after a begin token": {"task": "tagging", "begin_token": True, "positions": "rotary"},
    "mean": {"task": "classification"},
    "largest, post-norm": {"task": "classification", "pooling": "max", "norm": "post"},
    "begin token": {"task": "classification", "pooling": "first", "begin_token": True, "output_bias": True},
}
SOURCE = [5, 9, 7, 4, 11]


def network_of(loaded: LoadedModel) -> Any:
    weights = {name: each.numpy() for name, each in loaded.model.state_dict().items()}
    size = loaded.source_tokenizer.vocab_size
    return build_encoder_only_network(loaded.config, weights, source_vocab=size, target_vocab=size)


@torch.inference_mode()
def plain_log_probs(loaded: LoadedModel, source: list[int]) -> torch.Tensor:
    model: Any = loaded.model
    batch = pair_batch_from_ids([source], [[]])
    found: torch.Tensor = model.output(model(batch.source, model.source_layout(batch.source, batch.source_lengths)))
    return found.log_softmax(-1)


def tiny_labeller(dtype: torch.dtype, changes: dict[str, Any]) -> LoadedModel:
    loaded = tiny_model(dtype=dtype, **BASE | changes)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.dim() == 1:  # biases begin as zeros and gains as ones
                parameter.add_(torch.linspace(-0.3, 0.4, len(parameter), dtype=dtype))
    return loaded


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_log_probabilities_of_labels_are_the_model_s(changes: dict[str, Any]) -> None:
    loaded = tiny_labeller(torch.float64, changes)
    wanted = plain_log_probs(loaded, SOURCE)
    found = torch.from_numpy(network_of(loaded)(np.array([*SOURCE, EOS_ID])))
    assert len(wanted) == (len(SOURCE) + 1 if changes["task"] == "tagging" else 1)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["tags", "begin token"])
def test_in_fp32_it_rounds_as_torch_does(name: str) -> None:
    single, exact = (tiny_labeller(dtype, MODELS[name]) for dtype in (torch.float32, torch.float64))
    assert_rounds_like(
        torch.from_numpy(network_of(single)(np.array([*SOURCE, EOS_ID]))),
        plain_log_probs(single, SOURCE),
        plain_log_probs(exact, SOURCE),
    )


@pytest.mark.parametrize("name", sorted(ModelConfig.model_fields.keys() - set(LABEL_MODEL_KEYS)))
def test_a_key_that_is_not_listed_must_be_as_it_is_by_default(name: str) -> None:
    config = ModelConfig.model_validate(BASE | MODELS["mean"])
    assert is_label_model(config)
    assert not is_label_model(config.model_copy(update={name: object()}))


@pytest.mark.parametrize("wrong", ["missing", "more", "another task"])
def test_other_weights_than_the_configuration_says_are_refused(wrong: str) -> None:
    loaded = tiny_labeller(torch.float32, MODELS["mean"])
    weights = {name: each.numpy() for name, each in loaded.model.state_dict().items()}
    if wrong == "missing":
        del weights["head.inner.bias"]
    elif wrong == "more":
        weights["head.outer.bias"] = np.zeros(5, np.float32)
    size = loaded.source_tokenizer.vocab_size
    build = build_network if wrong == "another task" else build_encoder_only_network
    with pytest.raises(UnsupportedModelError):
        build(loaded.config, weights, source_vocab=size, target_vocab=size)
