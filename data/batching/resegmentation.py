"""Batches with texts that are segmented again at each update (`tokenizer.sampled`), within the limits of plain batches.

Plain lengths decide the rows of a batch. A text that gets longer than a model may read keeps its plain pieces, and a
batch that gets larger than the budget is read in parts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.tokenizer.sampled import SegmentationSampler, hash_numbers


@dataclass(frozen=True)
class Resegmenter:
    """Settings by which the texts of training batches are segmented again.

    Args:
        source: draws the pieces of the source; None: the source stays as it is.
        target: draws the pieces of the target; None: the target stays as it is.
        seed: of all draws.
        max_tokens: the most tokens of a text, end token included.
        budget: the most rows times longest text of a part of a batch.
    """

    source: SegmentationSampler | None
    target: SegmentationSampler | None
    seed: int
    max_tokens: int
    budget: int

    def iterate_resegmented_parts(self, split: Split, rows: Ints, step: int) -> Iterator[tuple[Split, Ints]]:
        """Yield examples with the pieces that they have at an update, in parts within the budget.

        Each example is a pure function of (seed, step, row).

        Args:
            split: the training data.
            rows: (B,) row numbers of a batch.
            step: the number of the update.

        Yields:
            A part, and the indices of its examples in `rows`.
        """
        sides = (split.source, split.target)
        source, target = (
            column if sampler is None else self._resegment(column, rows, sampler, (step, side))
            for side, (column, sampler) in enumerate(zip(sides, (self.source, self.target), strict=True))
        )
        source_rows, target_rows = (
            rows if sampler is None else np.arange(len(rows)) for sampler in (self.source, self.target)
        )
        larger = np.maximum(source.lengths[source_rows], target.lengths[target_rows]) + 1
        for part in split_within_budget(larger, self.budget):
            source_part, target_part = (
                TokenIdColumn(tokens.values, tokens.starts[token_rows[part]], tokens.lengths[token_rows[part]])
                for tokens, token_rows in ((source, source_rows), (target, target_rows))
            )
            images = None if split.images is None else split.images.select_rows(rows[part])
            yield Split(source_part, target_part, np.ones(len(part)), images=images), part

    def _resegment(
        self, column: TokenIdColumn, rows: Ints, sampler: SegmentationSampler, step_and_side: tuple[int, int]
    ) -> TokenIdColumn:
        """The texts of some rows with new pieces, or, where they would be too long, their old ones."""
        ids, lengths = column.take(rows)
        key = np.array([self.seed], np.uint64)
        for number in step_and_side:
            key = hash_numbers(key, np.array([number]))
        new_ids, new_lengths = sampler(ids, lengths, hash_numbers(np.repeat(key, len(rows)), rows))
        is_too_long = new_lengths + 1 > self.max_tokens
        starts = np.where(is_too_long, np.cumsum(lengths) - lengths, len(ids) + np.cumsum(new_lengths) - new_lengths)
        return TokenIdColumn(np.concatenate([ids, new_ids]), starts, np.where(is_too_long, lengths, new_lengths))


def split_within_budget(larger: Ints, budget: int) -> list[Ints]:
    """Split texts of these lengths into as few parts as the budget allows, of about equal numbers, given as positions;
    a text over the budget is a part alone. A single part keeps the order.
    """
    if len(larger) * int(larger.max(initial=0)) <= budget:
        return [np.arange(len(larger))]
    order = np.argsort(larger, kind="stable")
    for count in range(2, len(larger)):
        parts = np.array_split(order, count)
        if all(len(part) * int(larger[part[-1]]) <= budget for part in parts):
            return parts
    return np.array_split(order, len(larger))
