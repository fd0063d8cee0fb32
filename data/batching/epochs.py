"""The batches of each epoch of a training, and how many there are, which is found without making them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.data.batching.buckets import draw_bucket_jitter, make_batches, repeat_rows_by_weight
from tfm.data.batching.padding_cost import num_batches_of_histogram
from tfm.data.batching.shards import ShardedBatches, Shards
from tfm.data.dataset.split import Split
from tfm.data.errors import DataError


@dataclass(frozen=True)
class EpochBatches:
    """The batches of an epoch, by its number; and how many there are, which is found without making them.

    num_tokens: those of the larger side of every example.
    """

    batches: Callable[[int], Sequence[Ints]]
    num_batches: Callable[[int], int]
    num_tokens: int

    def __call__(self, epoch: int) -> Sequence[Ints]:
        return self.batches(epoch)


def empty_epoch_error(epoch: int) -> DataError:
    """Return the error about an epoch, counted from 0, in which no example comes up."""
    return DataError(
        f"no example is used in epoch {epoch + 1}: raise the weights of the training corpora, or use one "
        "in it (`epochs` of data.train)"
    )


class ExampleLengths(Protocol):
    """Interface of a task, as batches need it."""

    def lengths(self, split: Split) -> tuple[Ints, Ints]: ...
    def num_predictions(self, split: Split) -> Ints: ...


def make_sharded_epochs(task: ExampleLengths, split: Split, budget: int, seed: int) -> EpochBatches:
    """Return the batches of each epoch of training data of many rows, shard by shard.

    Args:
        task: the task, which knows how long examples are.
        split: the examples.
        budget: tokens of a batch.
        seed: seed of the order.
    """
    shards = Shards(len(split), split.shard_rows)
    histograms, uniform = _shard_histograms_and_uniformity(task, split, shards)

    def shard_lengths_rows_weights(
        shard: int, epoch: int
    ) -> tuple[tuple[Ints, Ints], Ints, NDArray[np.float64] | None]:
        rows = shards.rows(shard)
        part = split.select_training_rows(rows)
        weights = part.weights[:] * (task.num_predictions(part) > 0) * split.is_active(rows, epoch)
        return task.lengths(part), rows, None if (weights == 1).all() else weights

    def make_shard_batches(shard: int, epoch: int) -> Sequence[Ints]:
        lengths, rows, weights = shard_lengths_rows_weights(shard, epoch)
        batches = make_batches(*lengths, budget=budget, seed=seed, epoch=epoch, weights=weights, shard=shard)
        return [rows[batch] for batch in batches]

    @cache
    def num_unweighted_batches(shard: int, first_budget: int) -> int:
        return num_batches_of_histogram(histograms[shard], budget, first_budget)

    @cache
    def num_shard_batches(shard: int, epoch: int) -> int:
        first = max(int(draw_bucket_jitter(seed, epoch, shard)[0] * budget), 1)
        if uniform[shard] and not split.corpus_epochs:
            return num_unweighted_batches(shard, first)
        lengths, _, weights = shard_lengths_rows_weights(shard, epoch)
        larger = np.maximum(*lengths)
        if weights is not None:
            larger = larger[repeat_rows_by_weight(weights, seed=seed, epoch=epoch, shard=shard)]
        return num_batches_of_histogram(np.bincount(larger), budget, first)

    def num_batches_by_shard(epoch: int) -> list[int]:
        batches = [num_shard_batches(number, epoch) for number in shards.draw_shard_order(seed, epoch)]
        if not any(batches):
            raise empty_epoch_error(epoch)
        return batches

    def make_epoch_batches(epoch: int) -> Sequence[Ints]:
        order = shards.draw_shard_order(seed, epoch)
        return ShardedBatches(num_batches_by_shard(epoch), lambda place: make_shard_batches(order[place], epoch))

    num_tokens = int(histograms.sum(0) @ np.arange(histograms.shape[1]))
    return EpochBatches(make_epoch_batches, lambda epoch: sum(num_batches_by_shard(epoch)), num_tokens)


def _shard_histograms_and_uniformity(
    task: ExampleLengths, split: Split, shards: Shards
) -> tuple[Ints, NDArray[np.bool_]]:
    """The rows of each shard by the tokens of their larger side (shards, longest + 1); and of each shard (shards,)
    whether each row of it occurs once in an epoch.
    """
    histograms, uniform, begin = np.zeros((len(shards), 1), np.int64), np.ones(len(shards), np.bool_), 0
    for part in split.iterate_parts():
        larger, numbers = np.maximum(*task.lengths(part)), shards.shard_of_each_row(begin, begin + len(part))
        width = max(int(larger.max(initial=0)) + 1, histograms.shape[1])
        counts = np.bincount(numbers * width + larger, minlength=len(shards) * width)
        histograms = np.pad(histograms, ((0, 0), (0, width - histograms.shape[1]))) + counts.reshape(len(shards), width)
        uniform[numbers[(part.weights[:] != 1) | (task.num_predictions(part) == 0)]] = False
        begin += len(part)
    return histograms, uniform
