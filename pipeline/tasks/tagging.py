"""Tagging: a tag for each word of a text, predicted at the first piece of the word.

The words are those of the corpus, between its spaces, however the tokenizer splits them.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from tfm.data.arrays import Ints
from tfm.data.batching.batches import PairBatch
from tfm.data.dataset.split import Dataset, Split
from tfm.data.errors import DataError, format_count
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.pipeline.tasks.criteria import Criterion, Predictions, make_criterion
from tfm.pipeline.tasks.task import (
    EvaluationSums,
    LossSums,
    PairTask,
    PredictedLabels,
    TaskContext,
    best_log_prob_and_label,
    check_known_labels,
    count_correct_labels,
)
from tfm.tokenizer.special import EOS_ID

REMAKE_FOR_TAGGING_ADVICE = 'make tokenizer and dataset again, with model.task = "tagging" in the recipe'


class Tagging(PairTask):
    """Source -> target, whose pieces are the tags of the source's words.

    begins_word: of each source piece whether it begins a word; asked only for datasets that do not say how many pieces
    each word has, as those made in former times do not. The first piece of a text does anyway.
    """

    empty_message = "no sentence with words"

    def __init__(self, criterion: Criterion, begins_word: Callable[[], Sequence[bool]]) -> None:
        self.criterion, self._begins_word = criterion, begins_word

    @cached_property
    def word_start_mask(self) -> Tensor:
        """Return (V,) whether a source piece begins a word."""
        return torch.tensor(self._begins_word())

    @classmethod
    def from_context(cls, context: TaskContext) -> Self:
        """The task as a recipe has it."""
        return cls(make_criterion(context.config), context.source.word_start_mask)

    def loss(self, model: Any, batch: PairBatch) -> LossSums:
        """Return the loss of the tags, summed."""
        tags = _tag_tensor(batch)
        return self.criterion.loss(
            model.output, lambda: Predictions(self._hidden_states(model, batch), tags, len(tags))
        )

    def evaluate(self, model: Any, batch: PairBatch) -> EvaluationSums:
        """-log p and accuracy of the tags: a share of words."""
        return count_correct_labels(model.output(self._hidden_states(model, batch)), _tag_tensor(batch))

    def predict(self, model: Any, batch: PairBatch, n_best: int) -> list[list[PredictedLabels]]:
        """Return the likeliest tag of each word of each source; `n_best` has no effect.

        Args:
            model: the network.
            batch: the sources.
            n_best: unused.
        """
        log_probs, tags = best_log_prob_and_label(model.output(self._hidden_states(model, batch)))
        sentence = torch.repeat_interleave(batch.source_lengths)[self._first_pieces(batch).cpu()]
        lengths = torch.bincount(sentence, minlength=len(batch.source_lengths)).tolist()
        parts = zip(torch.split(tags.cpu(), lengths), torch.split(log_probs.cpu(), lengths), strict=True)
        return [[PredictedLabels(labels.tolist(), float(label_log_probs.sum()))] for labels, label_log_probs in parts]

    def num_predictions(self, split: Split) -> Ints:
        """Return (rows,) the number of tags of each sentence."""
        return split.target_lengths

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError also where a sentence has not as many tags as words."""
        super().check_data(data, model)
        for name, split in {"train": data.train, "valid": data.valid, **data.tests}.items():
            words = self.num_words(split)
            bad_rows = (words != split.target_lengths).nonzero()[0]
            if len(bad_rows):
                row = bad_rows[0]
                subject = "sentence has" if len(bad_rows) == 1 else "sentences have"
                sizes = f"{format_count(words[row], 'word')}, {format_count(split.target_lengths[row], 'tag')}"
                raise DataError(
                    f"{len(bad_rows)} {name} {subject} not a tag for each word (the first: row {row}, {sizes}): tags "
                    "stand between spaces as the words do; "
                    + ("mend these lines" if split.words is not None else REMAKE_FOR_TAGGING_ADVICE)
                )
        check_known_labels(data.valid)

    def num_words(self, split: Split) -> np.ndarray:
        """Return (rows,) the number of words of each source."""
        if split.words is not None:
            return np.asarray(split.words.lengths)
        ids, lengths = split.source.take(np.arange(len(split)))
        is_start = self.word_start_mask.numpy()[ids]
        first = np.zeros(len(ids), np.bool_)
        first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
        sentence = np.repeat(np.arange(len(split)), lengths)
        return np.bincount(sentence[is_start | first], minlength=len(split))

    def _first_pieces(self, batch: PairBatch) -> Tensor:
        """The rows of the source that begin words (n,)."""
        if batch.word_starts is not None:
            return batch.word_starts
        source, device = batch.source, batch.source.device
        firsts = (batch.source_lengths.cumsum(0) - batch.source_lengths).to(device)
        is_start = self.word_start_mask.to(device)[source].index_fill(0, firsts, True)
        return (is_start & (source != EOS_ID)).nonzero().squeeze(1)

    def _hidden_states(self, model: Any, batch: PairBatch) -> Tensor:
        layout = Layout.from_lengths(batch.source_lengths, batch.source.device)
        hidden: Tensor = model(batch.source, layout, self._first_pieces(batch))
        return hidden


def _tag_tensor(batch: PairBatch) -> Tensor:
    """The target without its end tokens (n,)."""
    tags = torch.ones(len(batch.target_out), dtype=torch.bool)
    tags[batch.target_lengths.cumsum(0) - 1] = False
    return batch.target_out[tags.nonzero().squeeze(1).to(batch.target_out.device, non_blocking=True)]
