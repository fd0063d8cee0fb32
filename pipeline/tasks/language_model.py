"""Language modeling: predicts each token of a text from those before it, line by line or over running text.

p(x_1 .. x_T) = product over t of p(x_t | x_1 .. x_{t-1})
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.batching.batches import TextBatch, make_text_batch, make_window_batch
from tfm.data.batching.epochs import EpochBatches
from tfm.data.batching.shards import FixedSizeBatches, ShardedBatches, Shards
from tfm.data.batching.token_stream import TokenStream
from tfm.data.dataset.split import Dataset, Ids, Split
from tfm.data.errors import DataError, format_count
from tfm.model.config import ModelConfig
from tfm.model.layout import AnyLayout, FlatLayout, Layout
from tfm.pipeline.tasks.criteria import Criterion, Predictions, make_criterion
from tfm.pipeline.tasks.task import EvaluationSums, LossSums, PairTask, Rows, TaskContext
from tfm.pipeline.tasks.translation import count_correct_tokens, flat_rows_of_task, real_row_mask
from tfm.tokenizer.special import EOS_ID

_WINDOW_RNG_STREAM = 3
JOINED_ROWS = 2**14
"""Rows of a split that become a running text at once."""


class LanguageModel(PairTask):
    """The target side of each pair by itself: the source is not looked at."""

    def __init__(self, criterion: Criterion, flat_rows: int | None = None) -> None:
        self.criterion, self.flat_rows = criterion, flat_rows

    @classmethod
    def from_context(cls, context: TaskContext) -> "LanguageModel":
        """The task of a recipe, on lines or, if `model.block` is set, on windows."""
        settings = make_criterion(context.config), flat_rows_of_task(context)
        return cls(*settings) if context.model.block is None else RunningText(context.model.block, *settings)

    def lengths(self, split: Split) -> tuple[Ints, Ints]:
        return split.target_lengths + 1, split.target_lengths + 1

    def batch(self, split: Split, rows: Rows) -> TextBatch:
        return make_text_batch(split.target, rows)

    def loss(self, model: Any, batch: TextBatch) -> LossSums:
        """Return the loss of the tokens, summed."""
        layout: AnyLayout = Layout.from_lengths(batch.lengths, batch.tokens_in.device)
        if self.flat_rows is not None:
            batch, device = batch.pad_to(self.flat_rows), batch.tokens_in.device
            layout = FlatLayout(batch.lengths, device, self.flat_rows)
        return self.criterion.loss(model.output, lambda: self._predictions(model, batch, layout))

    def evaluate(self, model: Any, batch: TextBatch) -> EvaluationSums:
        """-log p and accuracy of the tokens, without smoothing."""
        layout = Layout.from_lengths(batch.lengths, batch.tokens_in.device)
        return count_correct_tokens(model.output(model.hidden_states(batch.tokens_in, layout)), batch.tokens_out)

    def _predictions(self, model: Any, batch: TextBatch, layout: AnyLayout) -> Predictions:
        hidden, count, row_mask = model.hidden_states(batch.tokens_in, layout), batch.num_tokens, None
        if self.flat_rows is not None:
            row_mask = real_row_mask(self.flat_rows, count, hidden)
        return Predictions(hidden, batch.tokens_out, count, row_mask)


class RunningText(LanguageModel):
    """Windows of one running text: all lines of a split, each with its end token, which stands for the line break.

    A window is known by the place of its first token. Each epoch cuts the text elsewhere, and the tokens left over at
    its ends are not read in that epoch; in validation the windows begin at 0, and the last one is shorter.

    Args:
        block: tokens of a window.
        criterion: the loss.
        flat_rows: number of rows up to which a batch is filled, so that it is not padded; None for padded batches.
    """

    def __init__(self, block: int, criterion: Criterion, flat_rows: int | None = None) -> None:
        super().__init__(criterion, flat_rows)
        self.block = block
        self._texts: list[tuple[Split, Ids | TokenStream]] = []

    def batch(self, split: Split, rows: Rows) -> TextBatch:
        return make_window_batch(self._token_stream(split), rows, self.block)

    def epochs(self, split: Split, budget: int, seed: int) -> EpochBatches:
        """Return the batches of each epoch, by its number, and their number.

        Args:
            split: the examples.
            budget: tokens of a batch.
            seed: seed of the order.
        """
        length, size = len(self._token_stream(split)), max(budget // self.block, 1)

        def epoch_rng_and_offset(epoch: int) -> tuple[np.random.Generator, int]:
            rng = np.random.default_rng([seed, epoch, _WINDOW_RNG_STREAM])
            return rng, int(rng.integers(min(self.block, length - self.block + 1)))

        def epoch(index: int) -> Sequence[Rows]:
            rng, first = epoch_rng_and_offset(index)
            shards = Shards((length - first) // self.block, split.shard_rows)
            if split.is_sharded and len(shards) > 1:
                return self._sharded_batches(shards, first, size, seed, index)
            return FixedSizeBatches(rng.permutation(np.arange(first, length - self.block + 1, self.block)), size)

        def num_batches(epoch: int) -> int:
            shards = Shards((length - epoch_rng_and_offset(epoch)[1]) // self.block, split.shard_rows)
            if split.is_sharded:
                return sum(-(-shards.size(shard) // size) for shard in range(len(shards)))
            return -(-shards.num_rows // size)

        return EpochBatches(epoch, num_batches, length)

    def _sharded_batches(self, shards: Shards, first: int, size: int, seed: int, epoch: int) -> Sequence[Rows]:
        """The batches of an epoch of many windows, shard by shard, each in an order of its own.

        shards: of the windows. first: the place of the first window. size: windows of a batch.
        """
        order = shards.draw_shard_order(seed, epoch)

        def make_shard_batches(shard_position: int) -> Sequence[Rows]:
            rng = np.random.default_rng([seed, epoch, _WINDOW_RNG_STREAM, order[shard_position] + 1])
            return FixedSizeBatches(first + rng.permutation(shards.rows(order[shard_position])) * self.block, size)

        return ShardedBatches([-(-shards.size(shard) // size) for shard in order], make_shard_batches)

    def ordered_batches(self, split: Split, budget: int) -> Sequence[Rows]:
        starts = np.arange(0, len(self._token_stream(split)), self.block)
        return FixedSizeBatches(starts, max(budget // self.block, 1))

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError if there is less text than a window, or corpora have weights."""
        for name, split in (("train", data.train), ("valid", data.valid)):
            length = len(self._token_stream(split))
            if length < self.block:
                raise DataError(
                    f"the {name} split has {format_count(length, 'token')}, fewer than model.block = {self.block}: set "
                    "model.block to fewer, or give more text"
                )
            if split.corpus_epochs or any((part.weights[:] != 1).any() for part in split.iterate_parts()):
                raise DataError(
                    "model.block reads the text once an epoch: each corpus has weight 1, and none has `epochs`"
                )

    def largest_batch(self, split: Split, budget: int) -> Rows:
        return self.ordered_batches(split, budget)[0]

    def num_tokens(self, split: Split, rows: Rows) -> int:
        return len(rows) * self.block

    def describe_batch(self, split: Split, rows: Rows) -> str:
        return f"a batch of {format_count(len(rows), 'window')} x {format_count(self.block, 'token')}"

    def _token_stream(self, split: Split) -> Ids | TokenStream:
        for cached_split, stream in self._texts:
            if cached_split is split:
                return stream
        self._texts.append((split, TokenStream(split) if split.is_sharded else concatenate_targets(split)))
        return self._texts[-1][1]


def concatenate_targets(split: Split) -> Ids:
    """Return all targets of a split end to end, each with its end token.

    They are joined part by part: what finds the ids of a text takes ten times the memory of the ids.
    """
    text, end = np.empty(int((split.target_lengths + 1).sum()), np.int32), 0
    for begin in range(0, len(split), JOINED_ROWS):
        ids, lengths = split.target.take(np.arange(begin, min(begin + JOINED_ROWS, len(split))))
        part = np.insert(ids, np.cumsum(lengths), EOS_ID)
        text[end : end + len(part)] = part
        end += len(part)
    return text
