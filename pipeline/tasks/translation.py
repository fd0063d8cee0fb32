"""Translation: predicts each target token from the source and the tokens before it, with any architecture."""

from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.data.batching.batches import PairBatch
from tfm.data.dataset.split import Dataset
from tfm.model.config import ModelConfig
from tfm.model.layout import AnyLayout, FlatLayout, Layout
from tfm.pipeline.tasks.criteria import Criterion, Predictions, make_criterion
from tfm.pipeline.tasks.task import AlignmentLoss, EvaluationSums, LossSums, PairTask, TaskContext, check_has_sources

FLAT_ROWS_MULTIPLE = 128


class Translation(PairTask):
    """Source -> target, trained by teacher forcing: each target token from the source and those before it.

    Args:
        criterion: the loss.
        flat_rows: in training, number of rows a side up to which a batch is filled, so that it is not padded; None for
            padded batches.
        image_tokens: number of tokens that the model makes of an image.
        guide: a further loss of training; None for none.
    """

    def __init__(
        self,
        criterion: Criterion,
        flat_rows: int | None = None,
        image_tokens: int = 1,
        guide: AlignmentLoss | None = None,
    ) -> None:
        self.criterion, self.flat_rows, self.image_tokens = criterion, flat_rows, image_tokens
        self.guide = guide

    @classmethod
    def from_context(cls, context: TaskContext) -> Self:
        """The task as a recipe has it."""
        return cls(make_criterion(context.config), flat_rows_of_task(context), context.image_tokens, context.guide)

    def loss(self, model: Any, batch: PairBatch) -> LossSums:
        """Return the loss of the target tokens, summed."""
        if self.flat_rows is not None:
            batch = batch.pad_to(self.flat_rows)

        def compute() -> LossSums:
            return self.criterion.loss(model.output, lambda: self._predictions(model, batch))

        return compute() if self.guide is None else self.guide.add_alignment_loss(model, batch, compute)

    def evaluate(self, model: Any, batch: PairBatch) -> EvaluationSums:
        """-log p and accuracy of the reference tokens, without smoothing."""
        return count_correct_tokens(model.output(_hidden_states(model, batch)), batch.target_out)

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError also if there is nothing to translate."""
        super().check_data(data, model)
        check_has_sources(data, model.task)

    def _predictions(self, model: Any, batch: PairBatch) -> Predictions:
        hidden, count, row_mask = _hidden_states(model, batch, self.flat_rows), batch.num_target_tokens, None
        if self.flat_rows is not None:
            row_mask = real_row_mask(self.flat_rows, count, hidden)
        return Predictions(hidden, batch.target_out, count, row_mask)


def num_flat_rows(batch_tokens: int) -> int:
    """Return the number of rows a side that every flat batch has: the budget, and room for filler."""
    return -(-(batch_tokens + 1) // FLAT_ROWS_MULTIPLE) * FLAT_ROWS_MULTIPLE


def flat_rows_of_task(context: TaskContext) -> int | None:
    """Return the number of rows a side of a task's flat batches; None for padded batches."""
    return None if context.config.layout == "padded" else num_flat_rows(context.batch_tokens)


def real_row_mask(num_rows: int, num_tokens: int, like: Tensor) -> Tensor:
    """Return (N,) 1 for each of the tokens, then 0 for filler; found without waiting for the device.

    Args:
        num_rows: N.
        num_tokens: number of rows that are tokens.
        like: a tensor that has the type and device of the result.
    """
    return (torch.arange(num_rows) < num_tokens).to(like.device, like.dtype, non_blocking=True)


def count_correct_tokens(logits: Tensor, targets: Tensor) -> EvaluationSums:
    """-log p and accuracy of targets (n,) under logits (n, V)."""
    nll = F.cross_entropy(logits, targets, reduction="sum")
    return EvaluationSums(nll, (logits.argmax(-1) == targets).sum(), len(targets))


def _hidden_states(model: Any, batch: PairBatch, flat_rows: int | None = None) -> Tensor:
    """Return the input of the output layer (N_t, E)."""
    device, sides = batch.source.device, (batch.source_lengths, batch.target_lengths)
    source: AnyLayout
    target: AnyLayout
    if flat_rows is None:
        source, target = model.source_layout(batch.source, batch.source_lengths), Layout.from_lengths(sides[1], device)
    else:
        source, target = (FlatLayout(each, device, flat_rows) for each in sides)
    hidden: Tensor = model(batch.source, source, batch.target_in, target)
    return hidden
