"""The network in numpy is the one in torch: log-probabilities of every step, and which models it knows."""

from typing import Any

import numpy as np
import pytest
import torch

from tests.rounding import assert_rounds_like
from tests.tiny_model import STACK, numpy_of, tiny_model
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.numpy_inference.transformer import select_cache_rows
from tfm.model.numpy_inference.weights import SUPPORTED_KEYS, UnsupportedModelError, build_network, is_supported
from tfm.pipeline.model_io.model_weights import drop_shared_tensors
from tfm.tokenizer.special import BOS_ID, EOS_ID

SHARED_KEYS = StackConfig(layers=2, dim=16, heads=4, key_value_heads=2, key_dim=6, value_dim=3, feed_forward_dim=24)
MODELS: dict[str, dict[str, Any]] = {
    "by default": {},
    "post-norm": {"norm": "post"},
    "learned positions": {"positions": "learned"},
    "no positions": {"positions": "none"},
    "rotary positions": {"positions": "rotary", "rotary": {"base": 500.0}},
    "shared keys of odd widths": {"encoder": SHARED_KEYS, "decoder": SHARED_KEYS},
    "shared keys, rotary": {"encoder": SHARED_KEYS, "decoder": SHARED_KEYS, "positions": "rotary"},
    "stacks of other depths and heads": {
        "encoder": STACK.model_copy(update={"layers": 3, "heads": 4, "feed_forward_dim": 8}),
        "decoder": STACK.model_copy(update={"layers": 1}),
    },
    "nothing tied": {"tie": "none"},
    "tied embeddings": {"tie": "embeddings"},
    "tied output": {"tie": "output"},
    "a bias of each piece": {"output_bias": True},
    "GELU": {"activation": "gelu", "positions": "learned"},
    "GELU by tanh": {"activation": "gelu_tanh", "positions": "learned"},
    "tanh": {"activation": "tanh", "positions": "learned"},
    "no activation": {"activation": "none", "positions": "learned"},
    "embeddings as they are": {"scale_embedding": False, "norm_eps": 1e-3},
}


def log_probs_of(network: Any, source: list[int], steps: list[tuple[list[int], list[int]]]) -> torch.Tensor:
    """Of each step (tokens, then the rows that go on) of hypotheses that begin as one."""
    memory, cache, found = network.encode(source), network.empty_cache(), []
    for tokens, rows in steps:
        log_probs, cache = network.step(np.array(tokens), memory, cache)
        found.append(torch.from_numpy(log_probs))
        cache = select_cache_rows(cache, np.array(rows))
    return torch.cat(found)


@torch.inference_mode()
def plain_log_probs(model: Any, source: list[int], steps: list[tuple[list[int], list[int]]]) -> torch.Tensor:
    """The same by the model."""
    ids, found = torch.tensor(source), []
    state = model.start(ids, model.source_layout(ids, torch.tensor([len(ids)])))
    for tokens, rows in steps:
        predict, state = model.step(torch.tensor(tokens), state)
        found.append(predict(slice(None)).clone())
        state = state.select(torch.tensor(rows))
    return torch.cat(found)


STEPS = [([BOS_ID], [0, 0, 0]), ([5, 6, 7], [2, 0, 0]), ([9, 8, 5], [1, 1, 2]), ([4, 6, 5], [0, 1, 2])]
SOURCE = [5, 9, 7, 4, 11, EOS_ID]


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_every_step_gives_the_log_probabilities_of_the_model(changes: dict[str, Any]) -> None:
    loaded = tiny_model(dtype=torch.float64, **changes)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.dim() == 1:  # biases begin as zeros and gains as ones
                parameter.add_(torch.linspace(-0.3, 0.4, len(parameter), dtype=torch.float64))
    wanted = plain_log_probs(loaded.model, SOURCE, STEPS)
    found = log_probs_of(numpy_of(loaded), SOURCE, STEPS)
    if changes.get("positions", "sinusoidal") == "sinusoidal":  # torch keeps its table in fp32
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    else:
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)
    assert wanted.exp().sum(-1).sub(1).abs().max() < 1e-9


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_in_fp32_it_rounds_as_torch_does(positions: str) -> None:
    loaded, exact = tiny_model(positions=positions), tiny_model(positions=positions, dtype=torch.float64)
    assert_rounds_like(
        log_probs_of(numpy_of(loaded), SOURCE, STEPS),
        plain_log_probs(loaded.model, SOURCE, STEPS),
        plain_log_probs(exact.model, SOURCE, STEPS),
    )


OTHERS: list[dict[str, Any]] = [
    {"architecture": "decoder_only"},
    {"architecture": "recurrent", "positions": "none"},
    {"task": "span_corruption"},
    {"normalization": "rms"},
    {"activation": "silu"},
    {"activation": "swiglu"},
    {"positions": "alibi"},
    {"positions": "fairseq"},
    {"positions": "rotary", "rotary": {"factor": 2.0}},
    {"positions_join": "concatenate"},
    {"mixing": "convolution"},
    {"decoder": {"mixing": "recurrent"}},
    {"encoder": {"mixing": "convolution"}},
    {"window": 4},
    {"score": "dot"},
    {"qk_norm": True},
    {"embedding_norm": True},
    {"embedding_dim": 8},
    {"adaptive": {"cutoffs": [20]}},
    {"languages": "m2m100"},
    {"encoder": {"dim": 32}},
]


@pytest.mark.parametrize("changes", OTHERS, ids=str)
def test_other_models_are_not_known(changes: dict[str, Any]) -> None:
    config = ModelConfig.model_validate(changes | {"tie": "none"} if "dim" in changes.get("encoder", {}) else changes)
    assert not is_supported(config)
    with pytest.raises(UnsupportedModelError):
        build_network(config, {}, source_vocab=9, target_vocab=9)


@pytest.mark.parametrize("name", sorted(ModelConfig.model_fields.keys() - set(SUPPORTED_KEYS)))
def test_a_key_that_is_not_listed_must_be_as_it_is_by_default(name: str) -> None:
    """Also one that will be added: nothing here does what it says."""
    assert is_supported(ModelConfig())
    assert not is_supported(ModelConfig().model_copy(update={name: object()}))


@pytest.mark.parametrize("wrong", ["missing", "more", "of another shape"])
def test_other_weights_than_the_configuration_says_are_refused(wrong: str) -> None:
    loaded = tiny_model()
    weights = {name: each.numpy() for name, each in drop_shared_tensors(loaded.model.state_dict()).items()}
    name = "encoder.1.feed_forward.inner.bias"
    if wrong == "missing":
        del weights[name]
    else:
        weights[name if wrong == "of another shape" else "encoder.2.bias"] = np.zeros(5, np.float32)
    size = loaded.source_tokenizer.vocab_size
    with pytest.raises(UnsupportedModelError):
        build_network(loaded.config, weights, source_vocab=size, target_vocab=size)
    with pytest.raises(UnsupportedModelError):
        build_network(loaded.config, weights, source_vocab=size + 1, target_vocab=size + 1)


def test_one_table_is_of_one_vocabulary() -> None:
    loaded = tiny_model(tie="embeddings")
    weights = {name: each.numpy() for name, each in drop_shared_tensors(loaded.model.state_dict()).items()}
    size = loaded.source_tokenizer.vocab_size
    assert build_network(loaded.config, weights, source_vocab=size, target_vocab=size) is not None
    weights["output.weight"] = np.zeros((size + 1, 16), np.float32)
    with pytest.raises(UnsupportedModelError):
        build_network(loaded.config, weights, source_vocab=size, target_vocab=size + 1)
