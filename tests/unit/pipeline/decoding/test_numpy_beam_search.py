"""Beam search in numpy finds what beam search of the model finds."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tiny_model import numpy_of, random_shortlist, tiny_model
from tfm.data.errors import DataError
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import decode as decoding
from tfm.pipeline.decoding.search.numpy_beam_search import (
    best_candidates,
    is_basic_search,
    search_candidates,
    search_sentence,
)
from tfm.pipeline.decoding.search.top_k import best_candidates as best_by_torch
from tfm.tokenizer.special import EOS_ID

LOADED = tiny_model(positions="learned", output_bias=True, dtype=torch.float64)
with torch.no_grad():
    LOADED.model.output.bias[EOS_ID] = 3.0  # so that hypotheses end at different steps, while others go on
NETWORK = numpy_of(LOADED)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_finds_the_hypotheses_of_the_model_with_their_scores(data: st.DataObject) -> None:
    beam = data.draw(st.integers(1, 6))
    longest = data.draw(st.none() | st.integers(1, 12))
    config = DecodingConfig(
        beam=beam,
        n_best=data.draw(st.integers(1, beam)),
        length_norm=data.draw(st.sampled_from(["none", "average", "wu"])),
        alpha=data.draw(st.sampled_from([0.0, 0.6, 1.0, 1.7])),
        min_length=data.draw(st.integers(0, longest or 6)),
        max_length=longest,
        max_ratio=data.draw(st.sampled_from([0.1, 1.0, 2.0])),
    )
    source = data.draw(st.lists(st.integers(4, 50), min_size=1, max_size=9))
    found = search_sentence(NETWORK, [*source, EOS_ID], config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "num_workers", lambda *_: 0)
        (wanted,) = decoding.decode(LOADED.model, [source], config)
    assert [each.ids for each in found] == [each.ids for each in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert math.isclose(ours.log_prob, theirs.log_prob, abs_tol=1e-9)
        assert math.isclose(ours.score, theirs.score, abs_tol=1e-9)


@pytest.mark.parametrize("changes", [{}, {"output_bias": True, "tie": "none"}], ids=["tied", "a bias"])
@pytest.mark.parametrize(("beam", "n_best"), [(1, 1), (4, 4)])
@pytest.mark.few(1)
def test_it_finds_the_hypotheses_that_a_shortlist_lets_through(changes: dict[str, Any], beam: int, n_best: int) -> None:
    loaded = tiny_model(dtype=torch.float64, positions="learned", **changes)
    if changes:
        with torch.no_grad():
            loaded.model.output.bias.copy_(torch.linspace(-1, 1, len(loaded.model.output.bias)))
    network, shortlist, config = numpy_of(loaded), random_shortlist(loaded), DecodingConfig(beam=beam, n_best=n_best)
    num_changed = 0
    for first in range(4, 50, 5):
        source = [*range(first, first + 5), EOS_ID]
        found = search_candidates(network, source, config, shortlist.candidates(source))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decoding, "num_workers", lambda *_: 0)
            (wanted,) = decoding.decode(loaded.model, [source[:-1]], config, shortlist=shortlist)
        assert [each.ids for each in found] == [each.ids for each in wanted]
        assert [each.log_prob for each in found] == pytest.approx([each.log_prob for each in wanted], abs=1e-9)
        assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-9)
        num_changed += found != search_candidates(network, source, config, None)
    assert num_changed >= 5


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_best_candidates_are_those_of_torch_ties_included(data: st.DataObject) -> None:
    width, vocab, k = (data.draw(st.integers(1, most)) for most in (4, 90, 12))
    few = st.sampled_from([-math.inf, -2.0, -1.0, -0.5])
    log_probs = np.array(data.draw(st.lists(few, min_size=width * vocab, max_size=width * vocab)), np.float32)
    sums = np.array(data.draw(st.lists(few, min_size=width, max_size=width)))
    found = best_candidates(log_probs.reshape(width, vocab), sums, k)
    wanted = best_by_torch(torch.from_numpy(log_probs).view(1, width, vocab), torch.from_numpy(sums)[None], k)
    values = wanted[0].numpy()
    np.testing.assert_array_equal(found[0], values)
    for ours, theirs in zip(found[1:], wanted[1:], strict=True):  # whose places without a value say nothing
        np.testing.assert_array_equal(ours[values > -math.inf], theirs.numpy()[values > -math.inf])


@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "sample"},
        {"precision": "bf16"},
        {"no_repeat_ngram": 2},
        {"forbidden": ["a"]},
        {"forced": ["a"]},
        {"beam": 2, "n_best": 3},
    ],
    ids=str,
)
def test_what_it_cannot_do_is_not_plain(how: dict[str, Any]) -> None:
    assert is_basic_search(DecodingConfig())
    assert is_basic_search(DecodingConfig(shortlist="a folder"))
    assert not is_basic_search(DecodingConfig.model_validate(how))


def test_weights_that_are_no_numbers_are_an_error() -> None:
    loaded = tiny_model()
    with torch.no_grad():
        next(loaded.model.decoder.parameters()).fill_(torch.nan)
    with pytest.raises(DataError, match="no finite probabilities"):
        search_sentence(numpy_of(loaded), [5, 6, EOS_ID], DecodingConfig())
