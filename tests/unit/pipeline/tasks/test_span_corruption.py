"""Span corruption: what is hidden, counted plainly; lengths known before the draw; draws that need no other row."""

from collections import Counter
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch

from tfm.data.batching.batches import PairBatch
from tfm.data.dataset.split import Dataset, Split, TokenIdColumn
from tfm.data.errors import DataError
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, SpanCorruptionConfig, StackConfig
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.span_corruption import SpanCorruption, draw_compositions, num_noise_tokens_and_spans, num_spans
from tfm.tokenizer.sampled import hash_numbers
from tfm.tokenizer.special import BOS_ID, EOS_ID

STACK = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=24)
SENTINELS = tuple(range(200, 300))
SETTINGS = [(0.15, 3.0), (0.15, 20.0), (0.5, 1.0), (0.01, 1.0), (0.3, 2.5)]


def split_of(*lengths: int) -> Split:
    """Texts of these lengths, whose tokens tell their places; the sources are other texts."""
    texts = [list(range(4, 4 + length)) for length in lengths]
    return Split(
        TokenIdColumn.from_lists([[5, 6]] * len(lengths)), TokenIdColumn.from_lists(texts), np.ones(len(lengths))
    )


def task_of(share: float = 0.15, mean_length: float = 3.0, **more: Any) -> SpanCorruption:
    return SpanCorruption(
        SpanCorruptionConfig(share=share, mean_length=mean_length), SENTINELS, CrossEntropy(0.0), **more
    )


def rows_of(batch: PairBatch) -> list[tuple[list[int], list[int], list[int]]]:
    """Of each text its source, the target that is read and the one that is written."""
    sources = batch.source.split(batch.source_lengths.tolist())
    targets = (each.split(batch.target_lengths.tolist()) for each in (batch.target_in, batch.target_out))
    return [tuple(map(torch.Tensor.tolist, each)) for each in zip(sources, *targets, strict=True)]  # type: ignore[misc]


def put_back(source: list[int], target: list[int]) -> list[int]:
    """The text of a source and its target: by reading the target, sentinel for sentinel, into the source."""
    spans: dict[int, list[int]] = {}
    assert target[-1] == EOS_ID
    for token in target[:-1]:
        if token in SENTINELS:
            assert token == SENTINELS[len(spans)]
            spans[token] = []
        else:
            spans[list(spans)[-1]].append(token)
    assert all(spans.values())
    assert [token for token in source if token in SENTINELS] == list(spans)
    return [token for each in source for token in spans.get(each, [each])]


@pytest.mark.parametrize(("share", "mean_length"), SETTINGS)
def test_spans_put_back_into_their_source_give_the_text(share: float, mean_length: float) -> None:
    lengths = [*range(2, 40), 7, 2, 120]
    split, task = split_of(*lengths), task_of(share, mean_length)
    source_lengths, target_lengths = task.lengths(split)
    for key in range(8):
        batch = task.corrupt(task.batch(split, np.arange(len(lengths))), keys_of(np.arange(len(lengths)), key))
        assert batch.source_lengths.tolist() == source_lengths.tolist(), "known before anything is drawn"
        assert batch.target_lengths.tolist() == target_lengths.tolist()
        for length, (source, target_in, target_out) in zip(lengths, rows_of(batch), strict=True):
            assert put_back(source, target_out) == [*range(4, 4 + length), EOS_ID]
            assert target_in == [BOS_ID, *target_out[:-1]]
            assert all(not {*two} <= {*SENTINELS} for two in pairwise(source)), "two spans never touch"
            hidden = max(1, round(share * length))
            spans = min(max(1, round(hidden / mean_length)), hidden)
            assert len(target_out) == hidden + spans + 1
            assert len(source) == length - hidden + spans + 1
            assert sum(token in SENTINELS for token in source) == spans


def keys_of(rows: Any, key: int = 3) -> Any:
    return hash_numbers(np.array([key], np.uint64), rows)


def test_what_is_hidden_follows_from_the_key_of_the_text_alone() -> None:
    task, split = task_of(0.3), split_of(*range(20, 60))
    some, every = np.array([31, 4, 17]), np.arange(40)
    alone = rows_of(task.corrupt(task.batch(split, some), keys_of(some)))
    whole = rows_of(task.corrupt(task.batch(split, every), keys_of(every)))
    assert alone == [whole[row] for row in some]
    assert rows_of(task.corrupt(task.batch(split, some), keys_of(some, 4))) != alone
    same = split_of(*[30] * 40)
    assert len({str(each) for each in rows_of(task.corrupt(task.batch(same, every), keys_of(every)))}) > 35


def test_each_update_hides_other_spans_and_validation_always_the_same() -> None:
    stacks = {"encoder": STACK, "decoder": STACK, "dropout": DropoutConfig(residual=0, embedding=0)}
    model: Any = build(
        ModelConfig(task="span_corruption", **stacks), source_vocab=300, target_vocab=300, seed=1
    ).double()
    task, split = task_of(), split_of(*[30] * 6)
    batch, found = task.batch(split, np.arange(6)), []
    for step in (1, 2, 1):
        model.dropout_rng.seed_batch(7, step)
        found.append(float(task.loss(model, batch).nll))
    assert found[0] == found[2] != found[1]
    model.dropout_rng.seed_batch(7, 3)
    together = task.evaluate(model, batch)
    apart = [task.evaluate(model, task.batch(split, np.array([row]))) for row in range(6)]
    torch.testing.assert_close(together.nll, torch.stack([each.nll for each in apart]).sum(), rtol=0, atol=1e-10)
    assert together.count == sum(each.count for each in apart) == 7 * 6 * (4 + 1 + 1)


def test_all_ways_to_hide_spans_are_equally_likely() -> None:
    """Of six tokens three are hidden in two spans: 2 ways to divide them, 3 gaps of 3 tokens of which the middle one
    is not empty: 6 ways; counted by trying all 2^6 patterns."""
    ways = [
        pattern
        for pattern in product("_x", repeat=6)
        if pattern.count("x") == 3 and len("".join(pattern).replace("_", " ").split()) == 2
    ]
    assert len(ways) == 12
    task, split = task_of(0.5, 1.6), split_of(*[6] * 6000)
    seen: Counter[str] = Counter()
    for source, _, _ in rows_of(task.corrupt(task.batch(split, np.arange(6000)), keys_of(np.arange(6000)))):
        seen["".join("_" if token in source else "x" for token in range(4, 10))] += 1
    assert set(seen) == {"".join(way) for way in ways}
    expected = 6000 / 12  # standard deviation 21
    assert all(abs(count - expected) < 5 * 21 for count in seen.values())


def test_compositions_sum_to_their_totals() -> None:
    totals, parts = np.array([5, 1, 7, 0, 9]), np.array([2, 1, 7, 0, 3])
    sizes = draw_compositions(totals, parts, hash_numbers(np.array([3], np.uint64), np.arange(5)))
    each = np.split(sizes, np.cumsum(parts)[:-1])
    assert [len(one) for one in each] == parts.tolist()
    assert [int(one.sum()) for one in each] == totals.tolist()
    assert sizes.min() == 1


def test_a_text_of_one_token_or_none_is_in_no_batch_but_does_not_hurt() -> None:
    task, split = task_of(), split_of(0, 1, 5, 1, 2, 0)
    assert task.num_predictions(split).tolist() == [0, 0, 1, 0, 1, 0]
    assert sorted(np.concatenate(task.ordered_batches(split, 64))) == [2, 4]
    batch = task.corrupt(
        task.batch(split, np.arange(6)), keys_of(np.arange(6))
    )  # as other pieces of a text may leave one
    found = rows_of(batch)
    assert found[0] == ([EOS_ID], [BOS_ID], [EOS_ID])
    assert found[1] == ([4, EOS_ID], [BOS_ID], [EOS_ID])
    assert num_noise_tokens_and_spans(np.array([], np.int64), task.spans)[0].tolist() == []


def test_a_text_with_more_spans_than_sentinels_is_refused() -> None:
    config = ModelConfig(task="span_corruption", max_length=1024)
    few = SpanCorruption(config.span_corruption, SENTINELS[:50], CrossEntropy(0.0))
    data = Dataset(split_of(20), split_of(20), {}, 64, None)  # type: ignore[arg-type]
    assert num_spans(1023, config.span_corruption) == 51
    with pytest.raises(
        DataError, match=r"1023 tokens .*has 51 hidden spans.*has 50 sentinels.*tokenizer.sentinels = 51"
    ):
        few.check_data(data, config)
    SpanCorruption(config.span_corruption, SENTINELS[:51], CrossEntropy(0.0)).check_data(data, config)
    long = Dataset(split_of(20), split_of(1100), {}, 64, None)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="1100 tokens"):  # of which 935 are left in the source
        SpanCorruption(config.span_corruption, SENTINELS[:51], CrossEntropy(0.0)).check_data(long, config)


def test_flat_batches_have_the_loss_of_padded_ones() -> None:
    stacks = {"encoder": STACK, "decoder": STACK, "dropout": DropoutConfig(residual=0, embedding=0)}
    model: Any = build(
        ModelConfig(task="span_corruption", **stacks), source_vocab=300, target_vocab=300, seed=1
    ).double()
    split, losses = split_of(9, 30, 2, 17), []
    for task in (task_of(), task_of(flat_rows=128)):
        model.dropout_rng.seed_batch(1, 1)
        found = task.loss(model, task.batch(split, np.arange(4)))
        losses.append((float(found.sum.detach()), float(found.nll), found.count))
    assert losses[0] == pytest.approx(losses[1], abs=1e-10)
