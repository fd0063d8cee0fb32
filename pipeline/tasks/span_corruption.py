"""Span corruption (Raffel et al. 2020, section 3.1.4; of bytes Xue et al. 2022): spans of a text are to be written.

    text     Thank you for inviting me to your party last week
    source   Thank you <0> me to your party <1> week </s>
    target   <0> for inviting <1> last </s>

A text of n tokens has h = round(share n) hidden ones, one at least, in s = round(h / mean_length) spans, one at least.
The lengths of both sides thus follow from n alone, n - h + s and h + s, and batches are made before anything is drawn.
The places of the spans are drawn again at each update: all ways to divide h tokens among s spans, and the others among
the gaps between them, are equally likely. Two spans never touch. (T5's own program always hides a text's last tokens,
and never its first; here both may be hidden.)
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from tfm.data.arrays import Floats, Ints
from tfm.data.batching.batches import PairBatch, TextBatch, make_text_batch
from tfm.data.batching.example_keys import example_rng_keys, text_rng_keys
from tfm.data.dataset.split import Dataset, Split
from tfm.data.errors import DataError
from tfm.model.config import ModelConfig, SpanCorruptionConfig
from tfm.pipeline.tasks.criteria import Criterion, make_criterion
from tfm.pipeline.tasks.task import (
    NUM_EVALUATION_DRAWS,
    EvaluationSums,
    LossSums,
    PairTask,
    Rows,
    TaskContext,
    add_evaluation_sums,
)
from tfm.pipeline.tasks.translation import Translation, flat_rows_of_task
from tfm.tokenizer.sampled import RandomKeys, hash_numbers
from tfm.tokenizer.special import BOS_ID

_SPAN_STREAM, _GAP_STREAM = np.array([0]), np.array([1])


class SpanCorruption(PairTask):
    """The task of writing the hidden spans of the target side of each pair; the source is not looked at.

    Args:
        spans: share and mean length of the spans.
        sentinels: the ids that stand for hidden spans, the first for the first of a text.
        criterion: the loss.
        flat_rows: number of rows a side up to which a batch is filled, so that it is not padded; None for padded
            batches.
    """

    empty_message = "no text of two tokens, of which one could be hidden"
    num_draws = NUM_EVALUATION_DRAWS

    def __init__(
        self,
        spans: SpanCorruptionConfig,
        sentinels: Sequence[int],
        criterion: Criterion,
        flat_rows: int | None = None,
    ) -> None:
        self.writing = Translation(criterion, flat_rows)
        self.spans, self.sentinels = spans, torch.tensor(sentinels, dtype=torch.long)

    @classmethod
    def from_context(cls, context: TaskContext) -> Self:
        """The task as a recipe has it."""
        settings = make_criterion(context.config), flat_rows_of_task(context)
        return cls(context.model.span_corruption, context.target.sentinels, *settings)

    def lengths(self, split: Split) -> tuple[Ints, Ints]:
        hidden, spans = num_noise_tokens_and_spans(split.target_lengths, self.spans)
        return split.target_lengths - hidden + spans + 1, hidden + spans + 1

    def num_predictions(self, split: Split) -> Ints:
        """Return (rows,) the number of hidden tokens of each text."""
        return num_noise_tokens_and_spans(split.target_lengths, self.spans)[0]

    def expected_predictions(self, split: Split) -> Floats:
        """Return (rows,) the tokens of each target: its hidden tokens, sentinels and end token."""
        return self.lengths(split)[1].astype(np.float64)

    def batch(self, split: Split, rows: Rows) -> TextBatch:
        return make_text_batch(split.target, rows)

    def loss(self, model: Any, batch: TextBatch) -> LossSums:
        """Return the loss of the targets, summed; the hidden spans of a text follow from (seed, step, row)."""
        keys = example_rng_keys(model.dropout_rng.update_key, batch.rows, batch.repeats)
        return self.writing.loss(model, self.corrupt(batch, keys))

    def evaluate(self, model: Any, batch: TextBatch) -> EvaluationSums:
        """-log p and accuracy of the targets of several draws, each of which follows from the text and its number."""
        keys = text_rng_keys(batch.tokens_out.cpu().numpy(), batch.lengths.numpy())
        draws = (hash_numbers(keys, np.array([number])) for number in range(self.num_draws))
        return add_evaluation_sums([self.writing.evaluate(model, self.corrupt(batch, each)) for each in draws])

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError also if a text may have more spans than there are sentinels."""
        longest = int(max(each.target_lengths.max(initial=model.max_length - 1) for each in (data.train, data.valid)))
        num_required = num_spans(longest, self.spans)
        if len(self.sentinels) < num_required:
            raise DataError(
                f"a text of {longest} tokens (model.max_length = {model.max_length}) has {num_required} hidden spans, "
                f"and the tokenizer has {len(self.sentinels)} sentinels: make tokenizer and dataset with "
                f"tokenizer.sentinels = {num_required}"
            )
        super().check_data(data, model)

    def corrupt(self, batch: TextBatch, keys: RandomKeys) -> PairBatch:
        """Return texts as sources with their spans hidden, and these as targets; the spans follow from a text's key
        (B,).
        """
        device = batch.tokens_out.device
        source, target, *sizes = split_into_source_and_target(batch.lengths.numpy(), self.spans, keys)
        source_lengths, target_lengths = (torch.from_numpy(each) for each in sizes)
        # what both sides are taken from: the texts, then each sentinel, then the start token
        extra_tokens = torch.cat([self.sentinels, torch.tensor([BOS_ID])]).to(device, non_blocking=True)
        tokens = torch.cat([batch.tokens_out, extra_tokens])
        shifted = np.insert(target[:-1], 0, 0)
        shifted[np.cumsum(sizes[1]) - sizes[1]] = len(tokens) - 1
        source_ids, target_in, target_out = (
            tokens.index_select(0, torch.from_numpy(indices).to(device, non_blocking=True))
            for indices in (source, shifted, target)
        )
        return PairBatch(source_ids, source_lengths, target_in, target_out, target_lengths, batch.rows)


def num_noise_tokens_and_spans(lengths: Ints, config: SpanCorruptionConfig) -> tuple[Ints, Ints]:
    """Return the number of hidden tokens of texts of these lengths (rows,), end tokens not counted, and the number of
    spans.

    A text of less than two tokens has none: nothing would be left to tell it from.
    """
    hidden = np.minimum(np.maximum(np.rint(config.share * lengths).astype(np.int64), 1), np.maximum(lengths - 1, 0))
    spans = np.maximum(np.rint(hidden / config.mean_length).astype(np.int64), 1)
    return hidden, np.minimum(spans, hidden)


def num_spans(length: int, config: SpanCorruptionConfig) -> int:
    """Return the number of spans of the hidden tokens of a text of this length, its end token not counted."""
    return int(num_noise_tokens_and_spans(np.array([length]), config)[1][0])


def split_into_source_and_target(
    lengths: Ints, config: SpanCorruptionConfig, keys: RandomKeys
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the tokens of sources and targets as places in the N tokens of all texts, with sentinels from N on.

    Args:
        lengths: (B,), of each text with its end token, which is never hidden and ends both sides.
        config: share and mean length of the spans.
        keys: (B,), of the draws.

    Returns:
        The places of all sources end to end, those of all targets, and the lengths of each source and of each target
        (B,).
    """
    hidden, spans = num_noise_tokens_and_spans(lengths - 1, config)
    # gaps and spans in turn, gap first and last: these two may be empty, and the last has the end token
    parts = np.repeat(np.arange(len(lengths)), 2 * spans + 1)
    part = np.arange(len(parts)) - np.searchsorted(parts, parts)
    is_span = part % 2 == 1
    sizes = np.empty(len(parts), np.int64)
    sizes[is_span] = draw_compositions(hidden, spans, hash_numbers(keys, _SPAN_STREAM))
    sizes[~is_span] = draw_compositions(lengths - 1 - hidden + 2, spans + 1, hash_numbers(keys, _GAP_STREAM))
    sizes -= part == 0
    text, part_index = np.repeat(parts, sizes), np.repeat(np.arange(len(parts)), sizes)
    is_hidden, is_end = is_span[part_index], np.zeros(len(text), np.bool_)
    is_end[np.cumsum(lengths) - 1] = True
    is_span_start = is_hidden & np.diff(part_index, prepend=-1).astype(np.bool_)
    places, sentinel = np.arange(len(text)), len(text) + part[part_index] // 2
    in_source, in_target = ~is_hidden | is_span_start, is_hidden | is_end
    source = np.where(is_span_start, sentinel, places)[in_source]
    target = np.insert(places[in_target], np.flatnonzero(is_span_start[in_target]), sentinel[is_span_start])
    return source, target, np.bincount(text[in_source], minlength=len(lengths)), hidden + spans + 1


def draw_compositions(totals: Ints, parts: Ints, keys: RandomKeys) -> NDArray[np.int64]:
    """Return each total as a sum of parts of 1 or more, end to end: all ways are equally likely, as keys say.

    A total is cut at the parts - 1 of its total - 1 places whose hashes are lowest.

    Args:
        totals: (B,).
        parts: (B,), the number of parts of each total.
        keys: (B,), of the draws.
    """
    num_gaps = np.maximum(totals - 1, 0)
    row = np.repeat(np.arange(len(totals)), num_gaps)
    position = np.arange(len(row)) - np.repeat(np.cumsum(num_gaps) - num_gaps, num_gaps)
    order = np.lexsort((hash_numbers(keys[row], position), row))
    boundaries = order[position < (parts - 1)[row]]  # each row's places in the order of their hashes: the first ones
    nonempty = np.flatnonzero(parts)
    rows, ends = (
        np.concatenate([row[boundaries], nonempty]),
        np.concatenate([position[boundaries] + 1, totals[nonempty]]),
    )
    order = np.lexsort((ends, rows))
    rows, ends = rows[order], ends[order]
    begins = np.insert(ends[:-1], 0, 0)
    begins[np.diff(rows, prepend=-1) != 0] = 0
    sizes: NDArray[np.int64] = ends - begins
    return sizes
