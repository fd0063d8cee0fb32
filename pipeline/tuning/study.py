"""The study behind a search: Optuna's trials in a file or a database, and which worker runs which of them.

A trial belongs to the worker that holds the lock of its folder; the operating system frees it when the worker dies,
however it dies, and the next worker that looks goes on with the trial. Workers ask for trials one at a time.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from tfm.pipeline.artifacts.files import beginning
from tfm.pipeline.artifacts.folder_lock import lock
from tfm.pipeline.errors import CannotWrite, DataError, RecipeError
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER
from tfm.pipeline.tuning.config import SearchConfig
from tfm.pipeline.tuning.samplers.registry import PRUNERS, sampler
from tfm.pipeline.tuning.space import Configuration, Parameter, every_configuration

optuna.logging.set_verbosity(optuna.logging.ERROR)

ABOUT = "search"
"""The attribute of a study that says what it searches."""
SAME = "same_as"
"""The attribute of a trial that says which earlier one had its configuration, so that it was not trained again."""
IDLE_AT_MOST = 100
"""Trials in a row without an update, after which nothing new is to be expected."""
CONFIGURATION = "configuration"
"""The attribute of a trial that has all its settings, written when all are drawn."""


class _FileLock(JournalFileOpenLock):
    """A lock of the operating system, which does not outlive a killed worker."""

    def __init__(self, file: Path) -> None:
        super().__init__(str(file))
        self._file, self._descriptor = file, -1

    def acquire(self) -> bool:
        with beginning(self._file.parent):
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        os.close(self._descriptor)


class _JournalLock(_FileLock):
    """The lock of a journal. Whoever takes it cuts a last line without its end, since a line that is written behind it
    would be lost with it: its writer died, or the disk was full."""

    def __init__(self, journal: Path) -> None:
        super().__init__(journal.with_name(".trials.lock"))
        self._journal = journal

    def acquire(self) -> bool:
        super().acquire()
        _cut_torn_line(self._journal)
        return True


@contextmanager
def waiting_for(file: Path) -> Iterator[None]:
    """Within, this process alone holds the lock on a file; others wait."""
    held = _FileLock(file)
    held.acquire()
    try:
        yield
    finally:
        held.release()


def storage_at(folder: Path, url: str | None) -> BaseStorage:
    """Where the trials are kept: in the database at a URL, or in a journal in the folder of the search."""
    with beginning(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if url is not None:
        try:
            return RDBStorage(url)
        except Exception as error:  # SQLAlchemy's many, and a driver that is not installed
            raise RecipeError(f"--storage {url}: cannot be opened: {str(error).splitlines()[0]}") from error
    file = folder / "trials.journal"
    with beginning(folder):
        backend = JournalFileBackend(str(file), lock_obj=_JournalLock(file))
    return JournalStorage(backend)


def _cut_torn_line(file: Path) -> None:
    """Remove a last line without its end."""
    with open(file, "r+b") as stream:
        if stream.seek(0, os.SEEK_END) == 0:
            return
        stream.seek(-1, os.SEEK_END)
        if stream.read(1) != b"\n":
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)


@dataclass(frozen=True)
class Claimed:
    """A trial that this worker runs. number: from 0; earlier: what it had done when another worker left it."""

    trial: Trial
    folder: Path
    earlier: Mapping[str, Any]

    @property
    def number(self) -> int:
        return self.trial.number


@dataclass(frozen=True)
class Trials:
    """The trials of a search, all workers' together.

    folder: where the runs of the trials lie. shares_folder: whether all workers see it, as those of a journal do; those
    of a database may be on machines of their own.
    """

    config: SearchConfig
    parameters: tuple[Parameter, ...]
    folder: Path
    study: Study
    shares_folder: bool

    def place(self, number: int) -> Path:
        """The folder of a trial."""
        return self.folder / "trials" / f"{number:04}"

    def all(self) -> list[FrozenTrial]:
        """Every trial so far, in order."""
        return self.study.get_trials(deepcopy=False)

    def finished(self) -> list[FrozenTrial]:
        """The trials with a figure of validation, the best first; of equals one that was trained, then the earlier."""
        done = [each for each in self.all() if each.state == TrialState.COMPLETE]
        sign = 1 if self.config.metric in LOWER_IS_BETTER else -1
        return sorted(done, key=lambda each: (sign * (each.value or 0.0), SAME in each.user_attrs, each.number))

    def over(self) -> str | None:
        """Which limit the search has reached, in words; None where more trials are to begin."""
        trials, config = self.all(), self.config
        begun = [each for each in trials if each.state != TrialState.WAITING]
        seconds = sum(each.user_attrs.get("seconds", 0.0) for each in trials)
        updates = sum(each.user_attrs.get("updates", 0) for each in trials)
        if config.trials is not None and len(begun) >= config.trials:
            return f"{config.trials:,} trials"
        if config.hours is not None and seconds >= 3600 * config.hours:
            return f"{config.hours:g} hours"
        if config.updates is not None and updates >= config.updates:
            return f"{config.updates:,} updates"
        if config.method == "grid":
            return "every configuration" if len(begun) == len(trials) else None
        last = [each for each in begun if each.state.is_finished()][-IDLE_AT_MOST:]
        if len(last) == IDLE_AT_MOST and not any(each.user_attrs.get("updates", 0) for each in last):
            return f"{IDLE_AT_MOST} trials in a row without an update"
        return None

    @contextmanager
    def claim(self) -> Iterator[Claimed | None]:
        """A trial for this worker: one that another left unfinished, or else a new one; None where there is none.

        Within, no other worker takes it.
        """
        with ExitStack() as held:
            with waiting_for(self.folder / ".claim.lock"):
                found = self._left(held) or self._new(held)
            yield found

    def _left(self, held: ExitStack) -> Claimed | None:
        for each in self.all():
            place = self.place(each.number)
            here = self.shares_folder or place.exists()  # else it is another machine's, whose lock cannot be seen
            if each.state == TrialState.RUNNING and here and _take(place, held):
                self._be_about(each.number)
                trial = Trial(self.study, each._trial_id)
                self._draw_again(trial, each)
                return Claimed(trial, place, dict(each.user_attrs))
        return None

    def _be_about(self, number: int) -> None:
        """Let the study have sampler and pruner for a trial: they remember nothing of others, as in a new process."""
        self.study.sampler = sampler(self.config, number)
        self.study.pruner = PRUNERS[self.config.pruning]()

    def _draw_again(self, trial: Trial, left: FrozenTrial) -> None:
        """Where a worker died between two keys of a trial: bring the sampler's generator to where it was."""
        if CONFIGURATION in left.user_attrs:
            return
        for each in self.parameters:
            of = left.distributions.get(each.key)
            if of is not None and not of.single() and each.key not in trial.relative_params:
                self.study.sampler.sample_independent(self.study, left, each.key, of)

    def _new(self, held: ExitStack) -> Claimed | None:
        if self.over() is not None:
            return None
        with beginning(self.folder):
            (self.folder / "trials").mkdir(parents=True, exist_ok=True)
        self._be_about(len(self.all()))
        trial = self.study.ask()
        place = self.place(trial.number)
        if not _take(place, held):
            raise CannotWrite(f"{place}: another search writes there; give this one another name")
        place.mkdir(exist_ok=True)
        trial.set_user_attr("began", time.time())
        return Claimed(trial, place, {})


def _take(place: Path, held: ExitStack) -> bool:
    """Whether this process has the lock of a folder now, until `held` ends."""
    try:
        held.enter_context(lock(place))
    except CannotWrite as error:
        if "is writing it" in str(error):
            return False
        raise
    return True


def open_trials(
    config: SearchConfig, about: Mapping[str, Any], parameters: tuple[Parameter, ...], folder: Path, url: str | None
) -> Trials:
    """The study of a search: begun, or gone on with.

    about: all that makes the search what it is. Raises DataError where the study there is another search.
    """
    storage = storage_at(folder, url)
    direction = StudyDirection.MINIMIZE if config.metric in LOWER_IS_BETTER else StudyDirection.MAXIMIZE
    with waiting_for(folder / ".claim.lock"):
        names = [] if url is not None else optuna.get_all_study_names(storage)
        study = optuna.create_study(
            storage=storage,
            study_name=names[0] if names else config.name,  # a folder may have been renamed
            direction=direction,
            load_if_exists=True,
        )
        said = json.loads(json.dumps(about))
        before = study.user_attrs.get(ABOUT)
        if before is None:
            for configuration in every_configuration(parameters) if config.method == "grid" else ():
                study.enqueue_trial(_drawn_as(configuration, parameters), skip_if_exists=True)
            study.set_user_attr(ABOUT, said)
        elif changed := sorted(_differences(before, said)):
            raise DataError(
                f"holds the trials of another search, which differs in {', '.join(changed[:3])}; give this one another "
                "name, or move that folder away",
                file=folder,
            )
    return Trials(config, parameters, folder, study, shares_folder=url is None)


def _drawn_as(configuration: Configuration, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """A configuration as Optuna keeps it: values with an order as their place."""
    return {
        each.key: (each.values or ()).index(configuration[each.key]) if each.ordered else configuration[each.key]
        for each in parameters
        if each.key in configuration
    }


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], key: str = "") -> Iterator[str]:
    """The keys that differ; of the base recipe one that only one of them has came with a later version."""
    shared = before.keys() & now.keys() if key.startswith("recipe.") else before.keys() | now.keys()
    for name in shared:
        yield from _differ(before.get(name), now.get(name), f"{key}{name}")


def _differ(old: Any, new: Any, key: str) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _differences(old, new, f"{key}.")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from _differ(*pair, f"{key}.{number}")
    elif old != new:
        yield key


def same_as(trials: Trials, number: int, configuration: Configuration) -> FrozenTrial | None:
    """An earlier trial of just this configuration that was finished."""
    able = (each for each in trials.all() if each.number != number and each.state == TrialState.COMPLETE)
    return next((each for each in able if each.user_attrs.get(CONFIGURATION) == configuration), None)
