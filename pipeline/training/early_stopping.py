"""The validations of a training so far: which were best, and whether to stop early."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER
from tfm.pipeline.training_config import ValidationMetric


class HypothesisScore(BaseModel):
    """A score of the model's hypotheses of the validation split, and its signature."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float
    signature: str


class ValidationMetrics(BaseModel):
    """Figures of one validation of a model. Loss is a target token's, in nats. scores: the scores beside BLEU, by
    metric.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    loss: float
    perplexity: float | None = None
    accuracy: float
    bleu: float | None = None
    bleu_signature: str | None = None
    scores: dict[str, HypothesisScore] = Field(default_factory=dict)

    def value(self, metric: str) -> float | None:
        """A figure by its name; None if there is none."""
        if metric in self.scores:
            return self.scores[metric].score
        figure = getattr(self, metric, None)
        return None if figure is None else float(figure)

    def describe(self) -> str:
        """The figures as a person reads them."""
        perplexity = "" if self.perplexity is None else f", perplexity {self.perplexity:.2f}"
        bleu = "" if self.bleu is None else f", BLEU {self.bleu:.2f}"
        other_scores = "".join(f", {name} {each.score:.2f}" for name, each in self.scores.items())
        return f"loss {self.loss:.4f}{perplexity}, accuracy {100 * self.accuracy:.1f} %{bleu}{other_scores}"


class Validation(ValidationMetrics):
    """Figures of one validation, after `step` updates, in epoch `epoch` (from 1).

    directions: those of each direction by its name ("eng-deu"), where there are several; the others are their means.
    """

    step: int
    epoch: int
    directions: dict[str, ValidationMetrics] = Field(default_factory=dict)

    def minimized_value(self, metric: ValidationMetric) -> float:
        """The metric turned so that lower is better; a figure that is missing or not a number is worst."""
        value = self.value(metric)
        if value is None or math.isnan(value):
            return math.inf
        return float(value) if metric in LOWER_IS_BETTER else -value

    def as_log_entry(self) -> dict[str, Any]:
        """Return the figures of metrics.jsonl; the loss of a direction is "eng-deu/loss"."""
        direction_entries = {
            f"{name}/{figure}": value
            for name, metrics in self.directions.items()
            for figure, value in _finite_metrics(metrics).items()
        }
        return {"step": self.step, "epoch": self.epoch, **_finite_metrics(self), **direction_entries}

    def report_lines(self, *, is_best: bool) -> list[str]:
        """The figures as a person reads them, those of each direction on a line of its own."""
        directions_note = f", the mean of {len(self.directions)} directions" if self.directions else ""
        best_note = " (best so far)" if is_best else ""
        parts = [f"  {name}: {each.describe()}" for name, each in self.directions.items()]
        return [f"step {self.step:,}: validation {self.describe()}{directions_note}{best_note}", *parts]


def _finite_metrics(metrics: ValidationMetrics) -> dict[str, Any]:
    scores = {name: each.score for name, each in metrics.scores.items()}
    return metrics.model_dump(include={"loss", "perplexity", "accuracy", "bleu"}) | scores


ValidationCallback: TypeAlias = Callable[[Validation, bool], None]
"""Called with each validation, and whether it is the last of its training."""


def sort_best_first(history: Sequence[Validation], metric: ValidationMetric) -> list[Validation]:
    """The validations from best to worst; of equal ones the earlier first."""
    return sorted(history, key=lambda validation: (validation.minimized_value(metric), validation.step))


def validations_since_best(history: Sequence[Validation], metric: ValidationMetric) -> int:
    """Return the number of validations that have passed since the best one."""
    if not history:
        return 0
    best = sort_best_first(history, metric)[0]
    return sum(validation.step > best.step for validation in history)


def is_patience_exhausted(history: Sequence[Validation], metric: ValidationMetric, patience: int | None) -> bool:
    """Return whether the metric has not become better for `patience` validations.

    Args:
        history: the validations so far.
        metric: the metric of early stopping.
        patience: number of validations; None: never exhausted.
    """
    return patience is not None and validations_since_best(history, metric) >= patience


class Validator(Protocol):
    """Interface of validation, as the loop needs it."""

    def compute_metrics(self, model: Any, world: World, check_interrupt: Callable[[], None]) -> dict[str, Any]:
        """Return the figures of a validation by name.

        Args:
            model: the network.
            world: the processes among which the work is divided.
            check_interrupt: called now and then; raises where the training is to stop.
        """
