"""The loops of word2vec do what plain numpy does in the same order, and their draws are those that are asked for."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tfm.model.cpu_kernels.word2vec", reason="no numba (extra: fast)", exc_type=ImportError)

from tests.rounding import assert_rounds_like
from tfm.data.batching.example_keys import rng_keys_to_uniform, token_rng_keys
from tfm.model.cpu_kernels import word2vec as loops
from tfm.pipeline.tasks.word_vector_objectives import negative_sampling_losses
from tfm.tokenizer.sampled import hash_numbers

VOCAB, SPECIALS, MASK = 14, 4, (1 << 64) - 1
DRAW = np.random.default_rng(3)
SHARES = np.array([0.0] * SPECIALS + [0.3, 0.2, 0.1, 0.1, 0.08, 0.08, 0.05, 0.05, 0.04, 0.0])


def alias_table(shares: np.ndarray) -> np.ndarray:
    table = np.empty((len(shares), 2), np.uint32)
    loops.get_alias_table_kernel()(shares / shares.sum(), table)
    return table


def texts_of(lengths: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids of texts, control tokens among them, the length of each text, and its key."""
    ids = DRAW.integers(SPECIALS - 1, VOCAB, sum(lengths)).astype(np.int32)
    return ids, np.array(lengths), DRAW.integers(0, 1 << 63, len(lengths)).astype(np.uint64)


def noise(word: int, key: int, table: np.ndarray) -> Any:
    """The noise words of a word's predictions, one after the other: (word that is predicted) -> another word."""
    state = key

    def draw(wanted: int) -> int:
        nonlocal state
        while True:
            state = (state + 0x9E3779B97F4A7C15) & MASK
            bits = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
            bits ^= bits >> 31
            column = (bits >> 32) * len(table) >> 32
            found = column if bits % 2**32 < table[column, 0] else int(table[column, 1])
            if found != wanted:
                return found

    return draw


def reference(
    architecture: str, texts: Any, weights: list[np.ndarray], keep: np.ndarray, table: np.ndarray, how: Any
) -> tuple[float, int]:
    """The same steps in plain numpy, in the type of the weights."""
    (ids, lengths, keys), (inputs, outputs), (window, shrink, negatives, rate) = texts, weights, how
    total, count = 0.0, 0
    kept = rng_keys_to_uniform(token_rng_keys(keys, lengths, 0)) < keep[ids]
    reaches = 1 + token_rng_keys(keys, lengths, 1) % np.uint64(window) if shrink else np.full(len(ids), window)
    streams = token_rng_keys(keys, lengths, 2)
    for begin, length in zip(np.cumsum(lengths) - lengths, lengths, strict=True):
        places = [place for place in range(begin, begin + length) if kept[place]]
        for i, place in enumerate(places):
            reach, draw = int(reaches[place]), noise(ids[place], int(streams[place]), table)
            near = [ids[each] for each in places[max(i - reach, 0) : i] + places[i + 1 : i + 1 + reach]]
            pairs = [([ids[place]], word) for word in near] if architecture == "skip_gram" else [(near, ids[place])]
            for read, wanted in pairs if near else []:
                chosen = [wanted, *(draw(wanted) for _ in range(negatives))]
                h = inputs[read].mean(0)
                scores = outputs[chosen] @ h
                share = 1 / (1 + np.exp(-scores))
                g = (rate * ((np.arange(len(chosen)) == 0) - share)).astype(h.dtype)
                error = g @ outputs[chosen]
                np.add.at(outputs, chosen, g[:, None] * h)
                np.add.at(inputs, read, error)
                signed = np.where(np.arange(len(chosen)) == 0, scores, -scores).astype(np.float64)
                total, count = total + float(np.log1p(np.exp(-signed)).sum()), count + 1
    return total, count


@pytest.mark.slow
@pytest.mark.parametrize("how", [(2, False, 3, 0.1), (4, True, 5, 0.3), (30, True, 1, 0.05), (1, False, 8, 0.2)])
@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
@pytest.mark.few(4)
def test_a_loop_takes_the_steps_of_plain_numpy(architecture: str, how: Any) -> None:
    texts = texts_of((9, 1, 14, 2, 25, 6))
    keep, table = np.array([0.0] * SPECIALS + [0.4, 0.7] + [1.0] * 8), alias_table(SHARES)
    exact = [DRAW.standard_normal((VOCAB, 21)) for _ in range(2)]
    ours, plain, plain32, ours32 = ([each.astype(kind) for each in exact] for kind in ("f8", "f8", "f4", "f4"))
    wanted = reference(architecture, texts, plain, keep, table, how)
    found = loops.get_training_kernel(architecture, "f8")(*texts, *ours, keep, table, *how)
    assert found[1] == wanted[1] > 20
    assert found[0] == pytest.approx(wanted[0], rel=1e-12)
    for one, other, before in zip(ours, plain, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
        assert (one[:SPECIALS] == before[:SPECIALS]).all()
        assert np.abs(one - before).mean() > 1e-2
    lower = reference(architecture, texts, plain32, keep, table, how)
    of_loop = loops.get_training_kernel(architecture, "f4")(*texts, *ours32, keep, table, *how)
    three = ([torch.from_numpy(each) for each in weights] for weights in (ours32, plain32, plain))
    assert_rounds_like(*three)
    sums = torch.tensor([of_loop[0]]), torch.tensor([lower[0]]), torch.tensor([wanted[0]], dtype=torch.float64)
    assert_rounds_like(*sums)


def test_a_step_is_along_the_gradient_of_equation_4() -> None:
    """Also where a noise word comes twice."""
    chosen = np.array([3, 1, 5, 1, 1, 7, 5])
    hidden, outputs = DRAW.standard_normal(19), DRAW.standard_normal((VOCAB, 19))
    h, weight = (torch.from_numpy(each.copy()).requires_grad_() for each in (hidden, outputs))
    scores = weight[torch.from_numpy(chosen)] @ h
    loss = negative_sampling_losses(scores[:1], scores[None, 1:]).sum()
    of_h, of_weight = torch.autograd.grad(loss, (h, weight))
    error, before = np.empty(19), outputs.copy()
    found = loops.negative_sampling_step(
        hidden, outputs, chosen, 0.125, np.empty(len(chosen) + loops.ROWS_PER_MULTIPLICATION), error
    )
    assert found == pytest.approx(float(loss.detach()), rel=1e-13)
    np.testing.assert_allclose(error, -0.125 * of_h.numpy(), rtol=0, atol=1e-13)
    np.testing.assert_allclose(outputs - before, -0.125 * of_weight.numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("score", [-1e4, -60.0, 0.0, 60.0, 1e4])
def test_large_scores_have_a_loss(score: float) -> None:
    hidden, outputs = np.ones(1), np.array([[score], [score]])
    found = loops.negative_sampling_step(
        hidden, outputs, np.array([0, 1]), 0.0, np.empty(2 + loops.ROWS_PER_MULTIPLICATION), np.empty(1)
    )
    exact = torch.tensor([score], dtype=torch.float64)
    assert found == pytest.approx(float(negative_sampling_losses(exact, exact[None])), rel=1e-14)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1e-12, 1e-6, 0.1, 1 / 3, 0.9, 1.0]), min_size=1, max_size=40))
def test_the_alias_table_has_the_shares(shares: list[float]) -> None:
    given_shares = np.array(shares)
    if not given_shares.any():
        return
    table = alias_table(given_shares)
    size, bars = len(shares), table[:, 0] / 2**32
    found = np.bincount(np.concatenate([np.arange(size), table[:, 1]]), np.concatenate([bars, 1 - bars]), size) / size
    np.testing.assert_allclose(found, given_shares / given_shares.sum(), rtol=0, atol=1e-9)
    assert (found[given_shares > 0] > 0).all()
    rounding = 2**-32  # of bars that mean 1
    assert (found[given_shares == 0] <= rounding).all()


def test_noise_words_are_others_and_come_by_their_shares() -> None:
    table, outputs, chosen = alias_table(SHARES), np.zeros((VOCAB, 3), np.float32), np.full(40_001, 4)
    loops.draw_noise_words(chosen, table, outputs, np.uint64(5))
    found, wanted = np.bincount(chosen[1:], minlength=VOCAB) / 40_000, np.where(np.arange(VOCAB) == 4, 0, SHARES)
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=0, atol=8e-3)
    assert (found[wanted == 0] == 0).all()


def test_the_only_word_is_its_own_noise_word() -> None:
    shares = np.zeros(6)
    shares[5] = 1.0
    chosen = np.array([5, 0, 0])
    loops.draw_noise_words(chosen, alias_table(shares), np.zeros((6, 2), np.float32), np.uint64(5))
    assert chosen.tolist() == [5, 5, 5]


def test_hashes_are_those_of_all_draws() -> None:
    keys = DRAW.integers(0, 1 << 63, 20).astype(np.uint64)
    with np.errstate(over="ignore"):
        found = [loops.hash_pair.py_func(key, place) for place, key in enumerate(keys)]
    assert found == hash_numbers(keys, np.arange(20)).tolist()
