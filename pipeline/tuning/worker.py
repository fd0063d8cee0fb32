"""The workers of a search, which run one trial after another up to a limit."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.no_symlinks import make_folder_below, open_file_below
from tfm.pipeline.cluster.processes import choose_resources, max_processes, run_jobs
from tfm.pipeline.cluster.session import connect_to_cluster
from tfm.pipeline.errors import StoppedError, TfmError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tuning.search import open_search
from tfm.pipeline.tuning.space import Configuration
from tfm.pipeline.tuning.study import ClaimedTrial, Trials
from tfm.pipeline.tuning.trial import TrialOutcome, remove_artifacts_of_worse_trials, run_trial
from tfm.pipeline.tuning.trial_progress import TrialLog
from tfm.pipeline.tuning.trial_records import WAITING_STATUS

POLL_INTERVAL_SECONDS = 0.5
PROGRESS_LABEL = "searching"


@dataclass(frozen=True)
class WorkerJob:
    """The job of a worker: the trials, the recipe they vary, and the texts about them."""

    trials: Trials
    base: Path
    sets: Sequence[str]
    command: Sequence[str]
    reporter: Reporter


def run_worker(job: WorkerJob) -> None:
    """Run trials up to the limit. Raises StoppedError when asked to stop; the next worker resumes the trial."""
    num_finished = sum(each.state.is_finished() for each in job.trials.all_trials())
    total = num_remaining_trials(job.trials.config.trials, num_finished)
    with job.reporter.bar(PROGRESS_LABEL, total, "trials", done=num_finished) as bar:
        while True:
            with job.trials.claim_trial() as claimed_trial:
                if claimed_trial is None:
                    # The worker of the last trial may have been killed before it did so.
                    remove_artifacts_of_worse_trials(job.trials)
                    job.reporter.line(f"the search is over: {job.trials.stop_reason()}")
                    return
                outcome = _run_trial(job, claimed_trial)
                job.reporter.line(describe_outcome(job.trials, claimed_trial, outcome))
            bar.advance(outcome.ended != WAITING_STATUS, describe_best_trial(job.trials))


def num_remaining_trials(limit: int | None, num_finished: int) -> int | None:
    """Return the number of trials that there will be in all; the limit may have been lowered below those that are
    done.
    """
    return None if limit is None else max(limit, num_finished)


def _run_trial(job: WorkerJob, claimed_trial: ClaimedTrial) -> TrialOutcome:
    folder = claimed_trial.folder
    with ExitStack() as resources:
        with convert_os_errors(folder):
            make_folder_below(job.trials.folder, folder)
            log = resources.enter_context(open_file_below(job.trials.folder, folder / "log.txt", "a", encoding="utf-8"))
        return run_trial(job.trials, claimed_trial, job.base, job.sets, command=job.command, log=TrialLog(log))


def describe_outcome(trials: Trials, claimed_trial: ClaimedTrial, outcome: TrialOutcome) -> str:
    """Return the line about a trial that has ended.

    Args:
        trials: the trials of the search.
        claimed_trial: the trial.
        outcome: its end.
    """
    trial = next(each for each in trials.all_trials() if each.number == claimed_trial.number)
    settings = describe_configuration(trial.user_attrs.get("configuration", {}))
    figure = "" if outcome.value is None else f" {trials.config.metric} {outcome.value:.4f}"
    best = trials.finished_trials()[:1]
    mark = " (best so far)" if best and best[0].number == claimed_trial.number else ""
    reason = f": {outcome.reason}" if outcome.reason else ""
    return f"trial {claimed_trial.number}: {outcome.ended}{reason}{figure}{mark}: {settings}"


def describe_configuration(configuration: Configuration) -> str:
    """Return the settings as text: key = value, ..."""
    texts = {key: f"{each:.4g}" if isinstance(each, float) else each for key, each in configuration.items()}
    return ", ".join(f"{key} = {each}" for key, each in texts.items())


def describe_best_trial(trials: Trials) -> str:
    """Return as text the best figure so far and the number of running trials."""
    finished_trials = trials.finished_trials()
    running = sum(each.state.name == "RUNNING" for each in trials.all_trials())
    best = (
        f"best {trials.config.metric} {finished_trials[0].value:.4f} (trial {finished_trials[0].number})"
        if finished_trials
        else "none finished"
    )
    return f"{best}, {running} running"


def is_search_over(trials: Trials) -> bool:
    """Whether every trial has ended and none is to begin: then there is no work for further processes."""
    return all(each.state.is_finished() for each in trials.all_trials()) and trials.stop_reason() is not None


def run_workers(job: WorkerJob, num_workers: int, arguments: Sequence[str]) -> None:
    """Run the same command in several processes, each a worker with its share of the processors, and wait for them.
    None is started for a search that is over.

    Args:
        job: the job of the workers.
        num_workers: number of processes.
        arguments: the arguments of `tfm` for one worker.

    Raises:
        StoppedError: a worker was stopped.
        TfmError: a worker failed.
    """
    if is_search_over(job.trials):
        run_worker(job)
        return
    share = max(1, (os.cpu_count() or 1) // num_workers)
    environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(share))}
    command = [sys.executable, "-m", "tfm.cli.app", *arguments]
    with (
        watch_trials(job) as show,
        _start_processes(command, environment, num_workers, job.reporter) as all_of_them,
    ):
        while any(each.poll() is None for each in all_of_them):
            time.sleep(POLL_INTERVAL_SECONDS)
            show()
    codes = [each.returncode for each in all_of_them]
    if StoppedError.exit_code in codes:
        raise StoppedError("the search was stopped; the same command goes on with it")
    if any(codes):
        raise TfmError(f"{sum(code != 0 for code in codes)} of {num_workers} workers failed; their errors are above")


@contextmanager
def watch_trials(job: WorkerJob) -> Iterator[Callable[[], None]]:
    """Open the bar of a search, and yield a function that moves it to the trials which others have finished."""
    num_finished = sum(each.state.is_finished() for each in job.trials.all_trials())
    total = num_remaining_trials(job.trials.config.trials, num_finished)
    with job.reporter.bar(PROGRESS_LABEL, total, "trials", done=num_finished) as bar:

        def show() -> None:
            nonlocal num_finished
            count = sum(each.state.is_finished() for each in job.trials.all_trials())
            if count > num_finished:
                bar.advance(count - num_finished, describe_best_trial(job.trials))
                num_finished = count

        yield show


@contextmanager
def _start_processes(
    command: Sequence[str], environment: Mapping[str, str], number: int, reporter: Reporter
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Run a command in `number` processes while the body runs, and show their messages.

    If the body fails the processes are asked to stop. None of them is part of the terminal's group, as Ctrl-C is
    passed on to them, and of a second signal they would die at once. The stdout of these processes is dropped: data go
    there once, from this process.
    """
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    started: list[subprocess.Popen[str]] = []
    listeners: list[threading.Thread] = []
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # nothing else informs them that the terminal was closed
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        for _ in range(number):
            started.append(subprocess.Popen(command, env=environment, process_group=0, **pipes))
            listeners.append(threading.Thread(target=_forward_output, args=(started[-1].stderr, reporter), daemon=True))
            listeners[-1].start()
        yield started
    except BaseException:
        _ask_to_stop(started)
        raise
    finally:
        try:
            _wait_for_processes(started, listeners)
        except KeyboardInterrupt:  # once more: at once
            _ask_to_stop(started)
            _wait_for_processes(started, listeners)
            raise


def _ask_to_stop(processes: Sequence["subprocess.Popen[str]"]) -> None:
    for process in processes:
        process.terminate()


def _wait_for_processes(processes: Sequence["subprocess.Popen[str]"], listeners: Sequence[threading.Thread]) -> None:
    for wait in (*(process.wait for process in processes), *(listener.join for listener in listeners)):
        wait()


def _forward_output(stream: IO[str], reporter: Reporter) -> None:
    """Show the lines of a worker, but for those of its bar, which counts the same as ours."""
    with stream:
        for line in stream:
            if not line.startswith(f"{PROGRESS_LABEL}: "):
                reporter.line(line.rstrip("\n"))


@dataclass(frozen=True)
class SearchArguments:
    """A search by its file, its settings on the command line, its database (None: its folder) and its folds."""

    file: Path
    sets: Sequence[str]
    url: str | None
    folds: int | None


def run_workers_on_cluster(
    job: WorkerJob, search_arguments: SearchArguments, address: str, num_workers: int | None
) -> None:
    """Run workers on a cluster, whose nodes have the folder of the search under the same path, and wait for them. No
    cluster is started or asked for a search that is over.

    Args:
        job: the job of the workers.
        search_arguments: the search.
        address: of the cluster.
        num_workers: the number of workers; None for as many as there is room for.

    Raises:
        StoppedError: on SIGTERM, Ctrl-C or SIGHUP.
        TfmError: a worker failed.
    """
    if is_search_over(job.trials):
        run_worker(job)
        return
    device = load_recipe(job.base, job.sets).training.device
    with connect_to_cluster(address) as cluster:
        resources = choose_resources(cluster, device)
        number = num_workers or max(1, max_processes(cluster, resources))
        work = partial(_run_search_worker, search_arguments, job.command)
        pieces = {f"worker {each}": work for each in range(1, number + 1)}
        with watch_trials(job) as show:
            errors = run_jobs(cluster, pieces, resources, reporter=job.reporter, on_poll=lambda running: show())
    for error in errors.values():
        raise error


def _run_search_worker(search_arguments: SearchArguments, command: Sequence[str], *, reporter: Reporter) -> None:
    search = open_search(
        search_arguments.file, search_arguments.sets, search_arguments.url, folds=search_arguments.folds
    )
    run_worker(WorkerJob(search.trials, search.base, search.sets, command, reporter))
