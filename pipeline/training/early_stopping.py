"""The validations of a training so far: which were best, and whether to stop early."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict

from tfm.pipeline.config import Metric
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER


class Validation(BaseModel):
    """Figures of one validation, after `step` updates, in epoch `epoch` (from 1). Loss is a target token's, in nats."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int
    epoch: int
    loss: float
    perplexity: float | None = None
    accuracy: float
    bleu: float | None = None
    bleu_signature: str | None = None

    def badness(self, metric: Metric) -> float:
        """The metric turned so that lower is better; a figure that is missing or not a number is worst."""
        value = getattr(self, metric)
        if value is None or math.isnan(value):
            return math.inf
        return float(value) if metric in LOWER_IS_BETTER else -value

    def in_words(self) -> str:
        """The figures as a person reads them."""
        perplexity = "" if self.perplexity is None else f", perplexity {self.perplexity:.2f}"
        bleu = "" if self.bleu is None else f", BLEU {self.bleu:.2f}"
        return f"validation loss {self.loss:.4f}{perplexity}, accuracy {100 * self.accuracy:.1f} %{bleu}"


Heard: TypeAlias = Callable[[Validation, bool], None]
"""Called with each validation, and whether it is the last of its training."""


def best_first(history: Sequence[Validation], metric: Metric) -> list[Validation]:
    """The validations from best to worst; of equal ones the earlier first."""
    return sorted(history, key=lambda validation: (validation.badness(metric), validation.step))


def since_best(history: Sequence[Validation], metric: Metric) -> int:
    """How many validations have passed since the best one."""
    if not history:
        return 0
    best = best_first(history, metric)[0]
    return sum(validation.step > best.step for validation in history)


def is_exhausted(history: Sequence[Validation], metric: Metric, patience: int | None) -> bool:
    """Whether the metric has not become better for `patience` validations (none: never)."""
    return patience is not None and since_best(history, metric) >= patience
