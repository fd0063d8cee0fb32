"""Losses of a task's predictions: the cross-entropy of one pass, or of two that are to agree (R-Drop)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from tfm.model.layers.adaptive_softmax import OutputLayer
from tfm.pipeline.tasks.losses import output_loss
from tfm.pipeline.tasks.r_drop import two_pass_loss
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.training_config import TrainingConfig


@dataclass(frozen=True)
class Predictions:
    """The inputs of the output layer at each prediction (N, E), and the targets there (N,).

    count: the number of predictions. row_mask (N,): 1 where a row is one, 0 where it is filler; None if all are.
    """

    hidden: Tensor
    targets: Tensor
    count: int
    row_mask: Tensor | None = None


PredictFunction = Callable[[], Predictions]
"""One pass of a model over a batch; each call draws other dropout."""


class Criterion(Protocol):
    """Loss of predictions, summed, by an output layer."""

    def loss(self, output: OutputLayer, predict: PredictFunction) -> LossSums: ...


@dataclass(frozen=True)
class CrossEntropy:
    """Label-smoothed cross-entropy of one pass."""

    smoothing: float

    def loss(self, output: OutputLayer, predict: PredictFunction) -> LossSums:
        """Return the cross-entropy, summed over predictions."""
        predictions = predict()
        total, nll = output_loss(
            output, predictions.hidden, predictions.targets, smoothing=self.smoothing, row_mask=predictions.row_mask
        )
        return LossSums(total, nll, predictions.count)


@dataclass(frozen=True)
class RDrop:
    """Label-smoothed cross-entropy of two passes, and how far apart they are (Liang et al. 2021).

    Two passes of one batch, not one of a batch twice as large as in the paper: no shape is new, no tensor outgrows the
    pool of dropout masks that does not alone, and without dropout both are the same to the bit.
    """

    smoothing: float
    alpha: float

    def loss(self, output: OutputLayer, predict: PredictFunction) -> LossSums:
        """Return the loss, summed over predictions, each of which counts once; -log p is the mean of both passes."""
        first, second = predict(), predict()
        total, nll = two_pass_loss(
            output,
            first.hidden,
            second.hidden,
            first.targets,
            smoothing=self.smoothing,
            alpha=self.alpha,
            counts=first.row_mask,
        )
        return LossSums(total, nll, first.count)


def make_criterion(config: TrainingConfig) -> Criterion:
    """The criterion that a recipe asks for."""
    smoothing = config.label_smoothing
    return CrossEntropy(smoothing) if config.r_drop is None else RDrop(smoothing, config.r_drop)
