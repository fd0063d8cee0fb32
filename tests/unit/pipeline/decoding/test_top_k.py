"""Continuations straight from logits, without those of hypotheses that add nothing: what a beam needs is the same."""

import math
from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.model.cpu_kernels import dispatch
from tfm.model.layers.log_probs import LogProbsOfLogits
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.logits_processor import SUPPRESSED_TOKENS, LogitsProcessor
from tfm.pipeline.decoding.search.top_k import best_candidates, best_continuations
from tfm.tokenizer.special import EOS_ID

pytest.importorskip("numba")


@settings(max_examples=150, deadline=None)
@given(
    num_sentences=st.integers(1, 4),
    width=st.integers(1, 6),
    vocab=st.integers(5, 60),
    levels=st.sampled_from([2, 4, 60, 10**6]),  # few levels: many candidates are equal, and some are certain
    none=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_a_beam_finds_all_it_needs(num_sentences, width, vocab, levels, none, seed):
    draw = torch.Generator().manual_seed(seed)
    logits = 60.0 * torch.randint(0, levels, (num_sentences * width, vocab), generator=draw).float() / levels
    logits[:, list(SUPPRESSED_TOKENS)] = -math.inf
    logits[:, EOS_ID] += 2
    sums = -8.0 * torch.randint(0, levels, (num_sentences, width), generator=draw).double() / levels
    sums = sums.sort(1, descending=True).values
    sums[torch.rand(num_sentences, width, generator=draw) < none] = -math.inf
    rules, begun = (
        LogitsProcessor.from_config([9] * num_sentences, DecodingConfig(), 40),
        torch.ones(num_sentences).long(),
    )
    asked = []

    def predict(rows):
        asked.append(rows)
        return logits[rows].clone()

    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        log_probs = LogProbsOfLogits(lambda rows: logits[rows].clone())(slice(None)).view(num_sentences, width, -1)
        found = best_continuations(LogProbsOfLogits(predict), rules, begun, None, sums, beam := max(2, width))
    expected = best_candidates(log_probs, sums, 2 * beam)
    for row in range(num_sentences):
        for only_going_on in (False, True):
            first, second = (_first(each, row, beam, only_going_on) for each in (found, expected))
            assert first == second
    looked_at = [row for row, _ in groupby(torch.cat(asked).tolist())] if asked else []  # the last one fills up
    assert len(looked_at) == len(set(looked_at))
    assert (sums.flatten()[looked_at] > -math.inf).all()


def _first(candidates, row, beam, only_going_on):
    """The first of them that are candidates at all, as (value, beam, token)."""
    each = [*zip(*(some[row].tolist() for some in candidates), strict=True)]
    return [one for one in each if one[0] > -math.inf and not (only_going_on and one[2] == EOS_ID)][:beam]


def test_hypotheses_that_add_nothing_are_not_predicted():
    """All predict the same, and the first ones alone fill the beam: two of each sentence are far less probable."""
    sentences = dispatch.LOGIT_ROWS_PER_CALL
    logits, asked = torch.zeros(5 * sentences, 50), []
    logits[:, list(SUPPRESSED_TOKENS)] = -math.inf
    sums = torch.tensor([[0.0, -1.0, -2.0, -30.0, -40.0]], dtype=torch.float64).repeat(sentences, 1)

    def predict(rows):
        asked.extend(rows.tolist())
        return logits[rows].clone()

    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        rules = LogitsProcessor.from_config([9] * sentences, DecodingConfig(), 40)
        begun = torch.ones(sentences, dtype=torch.int64)
        best_continuations(LogProbsOfLogits(predict), rules, begun, None, sums, 5)
    assert asked == [5 * sentence + rank for rank in range(3) for sentence in range(sentences)]


@pytest.mark.parametrize(("second", "parents"), [(-1.04, [0, 1]), (-1.06, [0, 0])])
def test_one_that_only_just_adds_something_is_predicted(second, parents):
    """The first of each sentence has candidates of -0.43 and -1.05; the second is certain of its only one."""
    sentences = dispatch.LOGIT_ROWS_PER_CALL  # so that the first ones are known when the second are chosen
    probable = math.exp(-1.05)
    logits = torch.full((sentences, 2, 50), -math.inf)
    logits[:, 0, 10], logits[:, 0, 11], logits[:, 1, 12] = math.log(1 - probable), math.log(probable), 7.0
    sums = torch.tensor([[0.0, second]], dtype=torch.float64).repeat(sentences, 1)
    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        rules = LogitsProcessor.from_config([9] * sentences, DecodingConfig(), 40)
        begun = torch.ones(sentences, dtype=torch.int64)
        flat = logits.flatten(0, 1)
        values, beams, _ = best_continuations(LogProbsOfLogits(lambda r: flat[r].clone()), rules, begun, None, sums, 2)
    assert beams[:, :2].tolist() == [parents] * sentences
    assert values[0, :2].tolist() == pytest.approx([math.log(1 - probable), max(second, -1.05)], abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_logits_of_other_types_are_not_for_the_loops(dtype):
    sums = torch.zeros(2, 3, dtype=torch.float64)
    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        found = dispatch.topk_of_logits(
            lambda rows: torch.zeros(len(rows), 9, dtype=dtype), sums, 3, eos_id=1, banned_ids=(0,)
        )
    assert found is None
