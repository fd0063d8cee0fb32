"""A trial while it runs: its log in a file of its folder, its costs and figures in the study."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tfm.pipeline.errors import format_for_terminal
from tfm.pipeline.runtime.progress import Bar, NullReporter
from tfm.pipeline.training.early_stopping import Validation
from tfm.pipeline.tuning.study import ClaimedTrial, Trials

PRUNE_ATTR = "behind"
"""The attribute of a trial that is to be pruned."""


class TrialPruned(Exception):
    """Raised within a training that falls behind the others."""


class TrialProgress:
    """The costs and figures of a trial so far, kept in the study as it goes on; and whether it is worth going on."""

    def __init__(self, trials: Trials, claimed_trial: ClaimedTrial) -> None:
        self._trial, self._metric = claimed_trial.trial, trials.config.metric
        self._prunes = trials.config.pruning != "none"
        self._seconds = float(claimed_trial.earlier.get("seconds", 0.0))
        self._updates: dict[str, int] = dict(claimed_trial.earlier.get("updates_of", {}))
        self._validated: list[int] = list(claimed_trial.earlier.get("validated", []))
        self._reported = set(trials.all_trials()[claimed_trial.number].intermediate_values)
        self._is_behind = bool(claimed_trial.earlier.get(PRUNE_ATTR))
        self._clock = time.monotonic()
        self._run, self._is_first = "", True

    @property
    def updates(self) -> int:
        """The number of updates of all runs together."""
        return sum(self._updates.values())

    def start_run(self, run: str, *, is_first: bool) -> None:
        """Start to record a run; only validations of the first run are compared with those of other trials."""
        self._run, self._is_first = run, is_first

    def raise_if_pruned(self) -> None:
        """Raise TrialPruned if this was decided before, and the worker died before it was told."""
        if self._is_behind:
            raise TrialPruned

    def record_cost(self, updates: int) -> None:
        """Write down that the present run has had so many updates, and the seconds since this was last done."""
        now = time.monotonic()
        self._seconds, self._clock = self._seconds + now - self._clock, now
        self._updates[self._run] = max(updates, self._updates.get(self._run, 0))
        self._trial.set_user_attr("updates_of", self._updates)
        self._trial.set_user_attr("updates", self.updates)
        self._trial.set_user_attr("seconds", round(self._seconds, 3))

    def exclude_waiting_time(self, seconds: float) -> None:
        """Leave out seconds in which this worker waited for another one: they are no work of this trial."""
        self._clock += seconds

    def on_validation(self, validation: Validation, is_last: bool) -> None:
        """Write a validation down. Raises TrialPruned if the first run falls behind other trials, and is not done.

        Trials are compared by the number of their validations, which are of one age also where batches differ. After a
        kill a validation may be heard again.
        """
        self.record_cost(validation.step)
        if not self._is_first:
            return
        if validation.step not in self._validated:
            self._validated.append(validation.step)
            self._trial.set_user_attr("validated", self._validated)
        number, value = self._validated.index(validation.step) + 1, validation.value(self._metric)
        if value is None or not math.isfinite(value):
            return
        if number not in self._reported:
            self._reported.add(number)
            self._trial.report(value, number)
        is_newest = number == len(self._validated)
        if self._prunes and is_newest and not is_last and self._trial.should_prune():
            self._trial.set_user_attr(PRUNE_ATTR, True)
            raise TrialPruned


class TrialLog(NullReporter):
    """Reporter that writes lines down, and counts updates: its `updates` are those of the training that ran last."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.updates = 0

    def line(self, text: str) -> None:
        self._file.write(format_for_terminal(text) + "\n")
        self._file.flush()

    def warn(self, text: str) -> None:
        self.line(f"warning: {text}")

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        """Open a bar that shows nothing; that of training moves by updates.

        Args:
            label: its label.
            total: number of units; None if it is not known.
            unit: name of the units.
            done: units done before.
        """
        if label == "training":
            self.updates = done
            yield self
        else:
            with super().bar(label, total, unit, done) as quiet:
                yield quiet

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Count updates."""
        self.updates += amount
