"""Classification: the label of a text."""

from typing import Any, Self

import numpy as np
from torch import Tensor

from tfm.data.arrays import Floats
from tfm.data.batching.batches import PairBatch
from tfm.data.dataset.split import Dataset, Split
from tfm.data.errors import DataError, format_count
from tfm.model.config import ModelConfig
from tfm.pipeline.tasks.criteria import Criterion, Predictions, make_criterion
from tfm.pipeline.tasks.task import (
    EvaluationSums,
    LossSums,
    PairTask,
    PredictedLabels,
    TaskContext,
    best_labels,
    check_has_sources,
    check_known_labels,
    count_correct_labels,
)

EMPTY_LABEL_REMEDY = "remove these texts, or fill in their labels, and make the dataset again"


class Classification(PairTask):
    """Source -> the one piece of the target."""

    def __init__(self, criterion: Criterion, image_tokens: int = 1) -> None:
        self.criterion, self.image_tokens = criterion, image_tokens

    @classmethod
    def from_context(cls, context: TaskContext) -> Self:
        """The task as a recipe has it."""
        return cls(make_criterion(context.config), context.image_tokens)

    def expected_predictions(self, split: Split) -> Floats:
        """Return (rows,) 1: the label."""
        return np.ones(len(split))

    def loss(self, model: Any, batch: PairBatch) -> LossSums:
        """Return the loss of the labels, summed."""
        labels = _label_tensor(batch)
        return self.criterion.loss(model.output, lambda: Predictions(_hidden_states(model, batch), labels, len(labels)))

    def evaluate(self, model: Any, batch: PairBatch) -> EvaluationSums:
        """-log p and accuracy of the labels."""
        return count_correct_labels(model.output(_hidden_states(model, batch)), _label_tensor(batch))

    def predict(self, model: Any, batch: PairBatch, n_best: int) -> list[list[PredictedLabels]]:
        """Return the `n_best` likeliest labels of each source, best first.

        Args:
            model: the network.
            batch: the sources.
            n_best: number of answers of each source.
        """
        return best_labels(model.output(_hidden_states(model, batch)), n_best)

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError also if a label is not one piece."""
        super().check_data(data, model)
        check_has_sources(data, model.task)
        for name, split in (("train", data.train), ("valid", data.valid)):
            bad_rows = (split.target_lengths != 1).nonzero()[0]
            if len(bad_rows):
                are = "label is" if len(bad_rows) == 1 else "labels are"
                if not split.target_lengths[bad_rows].any():
                    raise DataError(
                        f"{len(bad_rows)} {name} {are} empty (the first: row {bad_rows[0]}): {EMPTY_LABEL_REMEDY}"
                    )
                pieces = format_count(int(split.target_lengths[bad_rows[0]]), "piece")
                raise DataError(
                    f"{len(bad_rows)} {name} {are} not one piece (the first: {pieces}, "
                    f'row {bad_rows[0]}): make tokenizer and dataset with model.task = "classification" in the recipe'
                )
        check_known_labels(data.valid)


def _hidden_states(model: Any, batch: PairBatch) -> Tensor:
    hidden: Tensor = model(batch.source, model.source_layout(batch.source, batch.source_lengths))
    return hidden


def _label_tensor(batch: PairBatch) -> Tensor:
    """The first token of each target (B,)."""
    firsts = batch.target_lengths.cumsum(0) - batch.target_lengths
    return batch.target_out.index_select(0, firsts.to(batch.target_out.device, non_blocking=True))
