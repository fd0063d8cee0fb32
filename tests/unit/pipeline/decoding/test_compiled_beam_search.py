"""The compiled beam search of a sentence finds what the search in numpy finds, in models of all parts that it knows."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny_model import STACK, numpy_of, random_shortlist, tiny_model
from tfm.data.errors import DataError
from tfm.model.fused.compiled_transformer import CompiledTransformer, compile_transformer
from tfm.model.numpy_inference.transformer import Transformer
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.search.compiled_beam_search import search_in_steps, search_to_end
from tfm.pipeline.decoding.search.numpy_beam_search import search_candidates, search_sentence
from tfm.tokenizer.special import BOS_ID, EOS_ID

pytestmark = pytest.mark.slow  # the loops of whole searches are compiled

pytest.importorskip("numba", reason="no numba (extra: fast)", exc_type=ImportError)
GROUPED = STACK.model_copy(update={"key_value_heads": 1, "key_dim": 6, "value_dim": 4})
MODELS: dict[str, dict[str, Any]] = {
    "learned positions, an output bias": {"positions": "learned", "output_bias": True},
    "rotary positions, GELU, grouped heads": {
        "positions": "rotary",
        "activation": "gelu",
        "encoder": GROUPED,
        "decoder": GROUPED,
    },
    "sinusoids, post-norm, nothing tied": {"norm": "post", "tie": "none"},
    "no positions, GELU by tanh": {"positions": "none", "activation": "gelu_tanh"},
}


@cache
def numpy_network(name: str, dtype: torch.dtype = torch.float32) -> Transformer:
    """A tiny model in numpy; its hypotheses end at different steps."""
    changes = MODELS[name]
    loaded = tiny_model(dtype=dtype, **changes)
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            if parameter.dim() == 1:  # biases begin as zeros and gains as ones
                parameter.add_(torch.linspace(-0.3, 0.4, len(parameter)).to(dtype))
        if changes.get("output_bias"):
            loaded.model.output.bias[EOS_ID] = 3.0
    return numpy_of(loaded)


@cache
def both_networks(name: str) -> tuple[Transformer, CompiledTransformer]:
    """The model in numpy, and compiled."""
    network = numpy_network(name)
    compiled = compile_transformer(network)
    assert compiled is not None
    return network, compiled


def log_prob_of(network: Transformer, source: list[int], ids: tuple[int, ...]) -> float:
    """The log-probability of a hypothesis, one piece after another, its end included."""
    memory, kept, last, total = network.encode(source), network.empty_cache(), BOS_ID, 0.0
    for piece in (*ids, EOS_ID):
        log_probs, kept = network.step(np.array([last]), memory, kept)
        total, last = total + float(log_probs[0, piece]), piece
    return total


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
@pytest.mark.few(2)
def test_it_finds_the_hypotheses_of_numpy(name: str, data: st.DataObject) -> None:
    network, compiled = both_networks(name)
    beam = data.draw(st.integers(1, 11))
    longest = data.draw(st.none() | st.integers(1, 20))
    config = DecodingConfig(
        beam=beam,
        n_best=data.draw(st.integers(1, beam)),
        length_norm=data.draw(st.sampled_from(["none", "average", "wu"])),
        alpha=data.draw(st.sampled_from([0.0, 0.6, 1.7])),
        min_length=data.draw(st.integers(0, longest or 6)),
        max_length=longest,
        max_ratio=data.draw(st.sampled_from([0.1, 1.0, 2.0])),
    )
    source = [*data.draw(st.lists(st.integers(4, 50), min_size=1, max_size=9)), EOS_ID]
    found, expected = search_to_end(compiled, source, config), search_sentence(network, source, config)
    assert len(found) == len(expected)
    exact = numpy_network(name, torch.float64)
    errors = [abs(each.log_prob - log_prob_of(exact, source, each.ids)) for each in expected]
    bound = 4 * max(errors, default=0.0) + 1e-4  # what fp32 loses in numpy depends on the model and the source
    for ours, theirs in zip(found, expected, strict=True):
        assert abs(ours.log_prob - log_prob_of(exact, source, ours.ids)) <= bound
        assert abs(ours.score - theirs.score) <= 2 * bound  # two near ties may change places
    gaps = [abs(a.score - b.score) for a, b in zip(expected, expected[1:], strict=False)]
    if min(gaps, default=1.0) > 2 * bound:  # else the two may round to another order
        assert [each.ids for each in found] == [each.ids for each in expected]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beam", [1, 3, 6])
def test_it_finds_the_hypotheses_of_a_shortlist(name: str, beam: int) -> None:
    network, compiled = both_networks(name)
    shortlist, config = random_shortlist(tiny_model()), DecodingConfig(beam=beam, n_best=beam, max_length=12)
    num_changed = 0
    for first in range(4, 50, 3):
        source = [*range(first, first + 4), EOS_ID]
        candidates = shortlist.candidates(source)
        found = search_to_end(compiled, source, config, candidates)
        wanted = search_candidates(network, source, config, candidates)
        assert [each.ids for each in found] == [each.ids for each in wanted]
        assert [each.log_prob for each in found] == pytest.approx([each.log_prob for each in wanted], abs=1e-3)
        assert {piece for each in found for piece in each.ids} <= {*candidates.tolist()}
        free = search_to_end(compiled, source, config)
        num_changed += [each.ids for each in found] != [each.ids for each in free]
    assert num_changed >= 5


def test_its_parts_end_with_the_hypotheses() -> None:
    _, compiled = both_networks("sinusoids, post-norm, nothing tied")
    config = DecodingConfig(beam=3, min_length=20, max_length=25)
    *parts, found = search_in_steps(compiled, [5, 6, EOS_ID], config)
    assert parts == [None]
    assert found == search_to_end(compiled, [5, 6, EOS_ID], config)


def test_a_model_with_broken_weights_is_an_error() -> None:
    loaded = tiny_model(output_bias=True)
    with torch.no_grad():
        loaded.model.output.bias.fill_(math.nan)
    compiled = compile_transformer(numpy_of(loaded))
    assert compiled is not None
    with pytest.raises(DataError, match="no finite probabilities"):
        search_to_end(compiled, [5, EOS_ID], DecodingConfig(beam=2))


def test_a_network_with_a_part_that_the_loops_lack_is_not_compiled() -> None:
    assert compile_transformer(numpy_of(tiny_model(activation="tanh"))) is None


def test_a_piece_beyond_the_vocabulary_is_an_error() -> None:
    _, compiled = both_networks("no positions, GELU by tanh")
    with pytest.raises(IndexError, match="vocabulary"):
        compiled.encode(np.array([5000, EOS_ID]))
