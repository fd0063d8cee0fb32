"""The study behind a search: Optuna's trials in a file or a database, and which worker runs which of them.

A trial belongs to the worker that holds the lock of its folder; the operating system frees it when the worker dies,
however it dies, and the next worker that looks goes on with the trial. Workers ask for trials one at a time.
"""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from tfm.data.errors import format_count
from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.folder_lock import FolderLockedError, lock_folder
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks, make_folder_below
from tfm.pipeline.errors import WriteError
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.journal import hold_lock
from tfm.pipeline.tuning.samplers.registry import PRUNERS, make_sampler
from tfm.pipeline.tuning.space import Configuration, Parameter
from tfm.pipeline.tuning.storage import raise_storage_errors
from tfm.pipeline.tuning.trial_records import CONFIGURATION_ATTR, DUPLICATE_OF_ATTR, check_trials, read_trial_attributes

optuna.logging.set_verbosity(optuna.logging.ERROR)

SEARCH_ATTR = "search"
"""The attribute of a study that describes its search."""
MAX_IDLE_TRIALS = 100
"""Trials in a row without an update, after which nothing new is to be expected."""


@dataclass(frozen=True)
class ClaimedTrial:
    """A trial that this worker runs; its numbers begin at 0. earlier: its state when another worker left it."""

    trial: Trial
    folder: Path
    earlier: Mapping[str, Any]

    @property
    def number(self) -> int:
        return self.trial.number


@dataclass(frozen=True)
class Trials:
    """The trials of a search, all workers' together.

    folder: where the runs of the trials lie. shares_folder: whether all workers see it, as those of a journal do;
    those of a database may be on machines of their own. source: the name of the place of the trials in messages.
    """

    config: SearchConfig
    parameters: tuple[Parameter, ...]
    folder: Path
    study: Study
    shares_folder: bool
    source: str = "the study"

    def trial_folder(self, number: int) -> Path:
        """The folder of a trial."""
        return self.folder / "trials" / f"{number:04}"

    def all_trials(self) -> list[FrozenTrial]:
        """Every trial so far, in order. Raises DataError if one of them is none of this search."""
        with raise_storage_errors(self.source):
            trials = self.study.get_trials(deepcopy=False)
            check_trials(trials, self.parameters, (self.config.folds or 1) * self.config.repeats)
        return trials

    def finished_trials(self) -> list[FrozenTrial]:
        """The trials with a figure of validation, the best first; of equals one that was trained, then the earlier."""
        trials = [each for each in self.all_trials() if each.state == TrialState.COMPLETE]
        sign = 1 if self.config.metric in LOWER_IS_BETTER else -1
        return sorted(
            trials, key=lambda each: (sign * (each.value or 0.0), DUPLICATE_OF_ATTR in each.user_attrs, each.number)
        )

    def stop_reason(self) -> str | None:
        """Return the limit that the search has reached, in words; None if more trials are to begin."""
        trials, config = self.all_trials(), self.config
        started_trials = [each for each in trials if each.state != TrialState.WAITING]
        attributes = [read_trial_attributes(each) for each in trials]
        seconds, updates = sum(each.seconds for each in attributes), sum(each.updates for each in attributes)
        if config.trials is not None and len(started_trials) >= config.trials:
            lowered = "" if len(started_trials) == config.trials else f" (search.trials is {config.trials:,})"
            return f"{format_count(len(started_trials), 'trial')}{lowered}"
        if config.hours is not None and seconds >= 3600 * config.hours:
            return f"{config.hours:g} {'hour' if config.hours == 1 else 'hours'}"
        if config.updates is not None and updates >= config.updates:
            return f"{format_count(config.updates, 'update')}"
        if config.method == "grid":
            return "every configuration" if len(started_trials) == len(trials) else None
        idle_trials = [
            each
            for each in started_trials
            if each.state.is_finished() or read_trial_attributes(each).waits_for is not None
        ]
        last = idle_trials[-MAX_IDLE_TRIALS:]
        if len(last) == MAX_IDLE_TRIALS and not any(read_trial_attributes(each).updates for each in last):
            return f"{MAX_IDLE_TRIALS} trials in a row without an update"
        return None

    @contextmanager
    def claim_trial(self) -> Iterator[ClaimedTrial | None]:
        """Yield a trial for this worker: an unfinished one of a dead worker, or a new one; None if there is none.

        No other worker takes the trial while the body runs.
        """
        with ExitStack() as stack:
            with hold_lock(self.folder / ".claim.lock"):
                claimed_trial = self._resume_abandoned_trial(stack) or self._claim_new_trial(stack)
            yield claimed_trial

    def _resume_abandoned_trial(self, stack: ExitStack) -> ClaimedTrial | None:
        """The first trial that no worker runs, unless finished and running trials reach `search.trials`, which may have
        been lowered. A trial is skipped while a worker runs the same configuration under another number.
        """
        trials = self.all_trials()
        running = [each for each in trials if each.state == TrialState.RUNNING]
        with ExitStack() as locks:
            candidates = [each for each in running if self._is_claimable(each.number, locks)]
            other_trials = [each for each in running if each not in candidates]
        visible_trials = [each for each in other_trials if self._is_visible(each.number)]
        running_configurations = [
            each.user_attrs[CONFIGURATION_ATTR] for each in visible_trials if CONFIGURATION_ATTR in each.user_attrs
        ]
        abandoned_trial = next(
            (each for each in candidates if each.user_attrs.get(CONFIGURATION_ATTR) not in running_configurations), None
        )
        room = math.inf if self.config.trials is None else self.config.trials
        room -= sum(each.state.is_finished() for each in trials) + len(other_trials)
        if abandoned_trial is None or room <= 0 or not self._is_claimable(abandoned_trial.number, stack):
            return None
        self._reset_samplers(abandoned_trial.number)
        trial = Trial(self.study, abandoned_trial._trial_id)
        self._replay_draws(trial, abandoned_trial)
        return ClaimedTrial(trial, self.trial_folder(abandoned_trial.number), dict(abandoned_trial.user_attrs))

    def _is_claimable(self, number: int, stack: ExitStack) -> bool:
        """Return whether this worker could take a trial, whose lock it now has until `stack` ends."""
        folder = self.trial_folder(number)
        check_no_symlinks(self.folder, folder)
        return self._is_visible(number) and _try_lock(folder, stack)

    def _is_visible(self, number: int) -> bool:
        """Return whether the lock of a trial can be seen here: that of one in another machine's folder cannot."""
        return self.shares_folder or self.trial_folder(number).exists()

    def has_work(self) -> bool:
        """Return whether a trial has ended, has trained, or is being run by a worker now; who asks has the claim."""
        with ExitStack() as locks:
            return any(
                each.state.is_finished()
                or each.intermediate_values
                or read_trial_attributes(each).updates
                or (each.state == TrialState.RUNNING and not self._is_claimable(each.number, locks))
                for each in self.study.get_trials(deepcopy=False)
            )

    def find_running_duplicate(self, number: int, configuration: Configuration) -> FrozenTrial | None:
        """Return an earlier trial of the same configuration that another worker is running; None if there is none.

        Args:
            number: number of the trial to compare.
            configuration: its values of the keys that vary.
        """
        with hold_lock(self.folder / ".claim.lock"), ExitStack() as locks:
            duplicates = [
                trial
                for trial in self.all_trials()[:number]
                if trial.user_attrs.get(CONFIGURATION_ATTR) == configuration
            ]
            running = [
                each for each in duplicates if each.state == TrialState.RUNNING and self._is_visible(each.number)
            ]
            return next((each for each in running if not self._is_claimable(each.number, locks)), None)

    def _reset_samplers(self, number: int) -> None:
        """Let the study have sampler and pruner for a trial: they remember nothing of others, as in a new process."""
        self.study.sampler = make_sampler(self.config, number)
        self.study.pruner = PRUNERS[self.config.pruning]()

    def _replay_draws(self, trial: Trial, abandoned_trial: FrozenTrial) -> None:
        """Bring the sampler's generator to the place at which a worker died between two keys of a trial."""
        if CONFIGURATION_ATTR in abandoned_trial.user_attrs:
            return
        for parameter in self.parameters:
            distribution = abandoned_trial.distributions.get(parameter.key)
            if distribution is not None and not distribution.single() and parameter.key not in trial.relative_params:
                self.study.sampler.sample_independent(self.study, abandoned_trial, parameter.key, distribution)

    def _claim_new_trial(self, stack: ExitStack) -> ClaimedTrial | None:
        if self.stop_reason() is not None:
            return None
        with convert_os_errors(self.folder):
            make_folder_below(self.folder, self.folder / "trials")
        self._reset_samplers(len(self.all_trials()))
        trial = self.study.ask()
        folder = self.trial_folder(trial.number)
        check_no_symlinks(self.folder, folder)
        if not _try_lock(folder, stack):
            raise WriteError(f"{folder}: another search writes there; give this one another name")
        make_folder_below(self.folder, folder)
        trial.set_user_attr("began", time.time())
        return ClaimedTrial(trial, folder, {})


def _try_lock(path: Path, stack: ExitStack) -> bool:
    """Return whether this process has the lock of a folder now, until the stack ends."""
    try:
        stack.enter_context(lock_folder(path))
    except FolderLockedError:
        return False
    return True


def find_duplicate(trials: Trials, number: int, configuration: Configuration) -> FrozenTrial | None:
    """Return an earlier trial of the same configuration that has a figure or failed; None if there is none.

    One that was pruned is none: beside the trials of today it may go on.

    Args:
        trials: the trials of the search.
        number: number of the trial to compare.
        configuration: its values of the keys that vary.
    """
    candidates = (
        trial
        for trial in trials.all_trials()
        if trial.number != number
        and (trial.state == TrialState.COMPLETE or (trial.state == TrialState.FAIL and "ended" in trial.user_attrs))
    )
    return next((each for each in candidates if each.user_attrs.get(CONFIGURATION_ATTR) == configuration), None)
