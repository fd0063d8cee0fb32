"""Drawing a piece: the equations of temperature, top-k and top-p, and the uniform numbers that decide."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.test_decoding import HashModel
from tfm.model.layers.counter_rng import counter_hash
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.numpy_sampling import draw_tokens as draw_by_numpy
from tfm.pipeline.decoding.search.numpy_sampling import sampling_key, uniform_numbers
from tfm.pipeline.decoding.search.sampling import TokenSampler, draw_tokens
from tfm.pipeline.errors import RecipeError

GRID = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000


def shares(log_probs, **how):
    """How much of [0, 1) falls on each piece."""
    rows = torch.tensor(log_probs, dtype=torch.float64).expand(len(GRID), -1)
    return torch.bincount(draw_tokens(rows, GRID, **how), minlength=len(log_probs)) / len(GRID)


def written_out(log_probs, temperature, top_k, top_p):
    """The distribution that is drawn from, as it is defined, piece by piece."""
    weights = {piece: math.exp(each / temperature) for piece, each in enumerate(log_probs)}
    best = sorted(weights, key=lambda piece: (-log_probs[piece], piece))[: top_k or len(weights)]
    if top_p is not None:
        whole, kept = sum(weights[piece] for piece in best), 0
        while kept < len(best) and sum(weights[piece] for piece in best[:kept]) < top_p * whole:
            kept += 1
        best = best[:kept]
    whole = sum(weights[piece] for piece in best)
    return [weights[piece] / whole if piece in best else 0.0 for piece in weights]


@given(
    levels=st.lists(st.integers(-6, 0), min_size=1, max_size=9),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.sampled_from([0.05, 0.33, 0.71, 0.9, 1.0]),
)
def test_a_piece_is_drawn_from_the_distribution_as_it_is_defined(levels, temperature, top_k, top_p):
    log_probs = (torch.tensor(levels, dtype=torch.float64) * 0.7).log_softmax(0).tolist()
    found = shares(log_probs, temperature=temperature, top_k=top_k, top_p=top_p)
    wanted = written_out(log_probs, temperature, top_k, top_p)
    assert found.tolist() == pytest.approx(wanted, abs=2 / len(GRID))
    # none is drawn that may not be
    assert all(share == 0 for share, each in zip(found.tolist(), wanted, strict=True) if each == 0)


@given(
    levels=st.lists(st.integers(-6, 0) | st.just(-math.inf), min_size=1, max_size=9),
    temperature=st.sampled_from([0.3, 1.0, 2.5]),
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.sampled_from([0.05, 0.33, 0.71, 0.9, 1.0]),
)
def test_numpy_draws_the_same_pieces(levels, temperature, top_k, top_p):
    if max(levels) == -math.inf:
        levels = [*levels, 0]
    rows = (torch.tensor(levels, dtype=torch.float64) * 0.7).log_softmax(0).expand(len(GRID), -1)
    how = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    found = torch.from_numpy(draw_by_numpy(rows.numpy(), GRID.numpy(), **how))
    assert (found != draw_tokens(rows, GRID, **how)).sum() <= len(levels)  # at a border, by the last digits


def test_among_equals_the_lowest_ids_are_kept():
    assert shares([math.log(0.25)] * 4, top_k=2).tolist() == [0.5, 0.5, 0, 0]
    assert shares([math.log(0.25)] * 4, top_p=0.3).tolist() == [0.5, 0.5, 0, 0]


def test_top_p_takes_the_fewest_that_are_enough():
    log_probs = [math.log(each) for each in (0.25, 0.5, 0.125, 0.125)]
    assert shares(log_probs, top_p=0.5).tolist() == [0, 1, 0, 0]
    assert shares(log_probs, top_p=0.51)[[0, 1]].tolist() == pytest.approx([1 / 3, 2 / 3], abs=1e-4)
    assert shares(log_probs, top_p=0.76).count_nonzero() == 3


def test_the_largest_uniform_number_falls_on_a_piece_that_may_come():
    rows = torch.full((1, 400), -math.inf)
    rows[0, :7] = math.log(1 / 7)
    assert draw_tokens(rows, torch.tensor([1 - 2.0**-53], dtype=torch.float64)).item() == 6
    assert draw_tokens(rows, torch.tensor([0.0], dtype=torch.float64)).item() == 0


def test_a_low_temperature_draws_the_likeliest():
    rows = torch.randn(50, 30, dtype=torch.float64)
    assert torch.equal(draw_tokens(rows, torch.rand(50, dtype=torch.float64), temperature=1e-6), rows.argmax(1))


def test_uniform_numbers_are_a_hash_of_what_is_drawn():
    keys = np.array([sampling_key(seed, [4, 5], sample) for seed in range(3) for sample in range(2)], np.uint64)
    steps = np.arange(6)
    wanted = [
        (counter_hash(seed, 4, 5, sample, seed * 2 + sample) >> 11) * 2.0**-53
        for seed in range(3)
        for sample in range(2)
    ]
    assert uniform_numbers(keys, steps).tolist() == wanted
    many = uniform_numbers(np.arange(100_000, dtype=np.uint64), np.arange(100_000) % 7)
    counts, _ = np.histogram(many, bins=10, range=(0, 1))
    assert counts.sum() == 100_000
    assert abs(counts - 10_000).max() < 500  # five standard deviations of 95


def test_what_is_reported_is_the_model_s_own_log_probability():
    log_probs = torch.randn(6, 20, dtype=torch.float64).log_softmax(1)
    config = DecodingConfig(strategy="sample", temperature=0.7, top_k=5, top_p=0.9)
    values, tokens = TokenSampler(config, list(range(6)))(log_probs, torch.arange(6), torch.zeros(6, dtype=torch.int64))
    assert torch.equal(values, log_probs[torch.arange(6), tokens])


@pytest.mark.parametrize("greedy", [{"temperature": 0.0}, {"top_k": 1}])
def test_temperature_0_and_top_1_are_the_likeliest(greedy):
    log_probs = torch.tensor([[0.0, 2.0, 2.0, -1.0]]).log_softmax(1)
    choose = TokenSampler(DecodingConfig(strategy="sample", **greedy), [9])
    values, tokens = choose(log_probs, torch.tensor([0]), torch.tensor([3]))
    assert (values.item(), tokens.item()) == (log_probs.max().item(), 1)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"top_k": 3}, 'top_k .3. is for sampling: it needs strategy = "sample"'),
        ({"top_p": 0.5}, "top_p"),
        ({"temperature": 0.5}, "temperature"),
        ({"forced": ("a",), "strategy": "sample"}, "need beam search"),
        ({"forced": ("a",), "beam": 1}, "need beam search"),
        ({"forbidden": (" ",)}, "one of them is empty"),
    ],
)
def test_what_does_not_combine_is_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        DecodingConfig(**settings)


def test_no_more_hypotheses_than_a_beam_is_wide_are_searched_for():
    with pytest.raises(RecipeError, match=r"decoding\.n_best \(6\) cannot exceed beam \(5\)"):
        decode(HashModel(0), [[5]], DecodingConfig(n_best=6))


def test_samples_may_be_more_than_a_beam_is_wide():
    assert DecodingConfig(strategy="sample", n_best=50).n_best == 50


def test_each_source_is_counted_once_however_many_samples_it_has():
    done = []
    config = DecodingConfig(strategy="sample", n_best=3, batch_sentences=2, max_length=8)
    decode(HashModel(12), [[4], [5, 6], [], [7], [8, 9]], config, on_done=done.append)
    assert sum(done) == 5
