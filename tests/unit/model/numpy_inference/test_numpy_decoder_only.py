"""Predictions of the language model in numpy are those of torch's, and it knows no other parts than it says."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.rounding import assert_rounds_like
from tests.tiny_model import STACK, numpy_language_model, tiny_model
from tfm.model.config import ModelConfig
from tfm.model.numpy_inference.transformer import select_cache_rows
from tfm.model.numpy_inference.weights import (
    LANGUAGE_MODEL_KEYS,
    UnsupportedModelError,
    build_decoder_only_network,
    is_language_model,
)
from tfm.pipeline.decoding.streaming import prefill
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.tokenizer.special import BOS_ID

BASE = {"architecture": "decoder_only", "task": "language_model", "positions": "learned"}
MODELS: dict[str, dict[str, Any]] = {
    "learned positions": {},
    "rotary positions, GELU": {"positions": "rotary", "activation": "gelu"},
    "no positions, post-norm, GELU by tanh": {"positions": "none", "norm": "post", "activation": "gelu_tanh"},
    "nothing tied, biases": {"tie": "none", "output_bias": True, "block": 12},
    "one key head of another width": {
        "decoder": STACK.model_copy(update={"key_value_heads": 1, "key_dim": 6, "value_dim": 4})
    },
}
PROMPTS = [[BOS_ID, 5, 9, 7, 4], [BOS_ID, 4, 4, 9, 8], [BOS_ID, 12, 6, 7, 5]]
NEXT, ROWS = [11, 6], [0, 2]


def tiny_language_model(dtype: torch.dtype, changes: dict[str, Any]) -> LoadedModel:
    loaded = tiny_model(dtype=dtype, **BASE | changes)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.dim() == 1:  # biases begin as zeros and gains as ones
                parameter.add_(torch.linspace(-0.3, 0.4, len(parameter), dtype=dtype))
    return loaded


@torch.inference_mode()
def plain_log_probs(loaded: LoadedModel) -> torch.Tensor:
    """After three prompts, and after a further piece of some of them."""
    model: Any = loaded.model
    pieces = torch.tensor(PROMPTS)
    first, state = model.step(pieces[:, -1], prefill(model, pieces))
    before = first(slice(None)).clone()
    second, _ = model.step(torch.tensor(NEXT), state.select(torch.tensor(ROWS)))
    return torch.cat([before, second(slice(None))])


def log_probs_of(loaded: LoadedModel) -> torch.Tensor:
    """The same by numpy."""
    network, pieces = numpy_language_model(loaded), np.array(PROMPTS)
    before, cache = network.step(pieces[:, -1], network.prefill(pieces))
    after, _ = network.step(np.array(NEXT), select_cache_rows(cache, np.array(ROWS)))
    return torch.from_numpy(np.concatenate([before, after]))


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_log_probabilities_are_the_model_s(changes: dict[str, Any]) -> None:
    loaded = tiny_language_model(torch.float64, changes)
    torch.testing.assert_close(log_probs_of(loaded), plain_log_probs(loaded), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["learned positions", "rotary positions, GELU"])
def test_in_fp32_it_rounds_as_torch_does(name: str) -> None:
    single, exact = (tiny_language_model(dtype, MODELS[name]) for dtype in (torch.float32, torch.float64))
    assert_rounds_like(log_probs_of(single), plain_log_probs(single), plain_log_probs(exact))


@pytest.mark.parametrize("name", sorted(ModelConfig.model_fields.keys() - set(LANGUAGE_MODEL_KEYS)))
def test_a_key_that_is_not_listed_must_be_as_it_is_by_default(name: str) -> None:
    config = ModelConfig.model_validate(BASE)
    assert is_language_model(config)
    assert not is_language_model(config.model_copy(update={name: object()}))


@pytest.mark.parametrize("wrong", ["missing", "more", "another task"])
def test_other_weights_than_the_configuration_says_are_refused(wrong: str) -> None:
    loaded = tiny_language_model(torch.float32, {})
    weights = {name: each.numpy() for name, each in loaded.model.state_dict().items()}
    config = loaded.config
    if wrong == "missing":
        del weights["norm.bias"]
    elif wrong == "more":
        weights["layers.9.bias"] = np.zeros(5, np.float32)
    else:
        config = ModelConfig(architecture="decoder_only")
    with pytest.raises(UnsupportedModelError):
        build_decoder_only_network(config, weights, vocab=loaded.target_tokenizer.vocab_size)
