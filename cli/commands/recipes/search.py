"""`tfm search`: settings of a recipe chosen by validation."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.options import ClusterAddress, RecipeOverrides, command_line
from tfm.cli.streams import print_json
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError, format_count

if TYPE_CHECKING:
    from tfm.pipeline.runtime.progress import Reporter
    from tfm.pipeline.tuning.results import SearchResults
    from tfm.pipeline.tuning.search import Search
    from tfm.pipeline.tuning.worker import SearchArguments

MAX_TRIALS_SHOWN = 10  # trials in the table on a terminal
TRIAL_STORAGE_ENV_VAR = "TFM_STORAGE"


def search(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file with [search]: base, space, method, ...")],
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            max=1000,
            help="Processes that run trials, each with a share of the CPUs (1; with --cluster: as many as it has room "
            "for).",
        ),
    ] = None,
    cluster: ClusterAddress = None,
    report: Annotated[bool, typer.Option("--report", help="Run no trial: only report those that were run.")] = False,
    final: Annotated[
        bool,
        typer.Option("--final", help="Run no trial: finish the best one as NAME-final, and score its tests, once."),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="With --final: even if the tests were used before.")] = False,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            metavar="N",
            min=2,
            max=1000,
            help="Cross-validate each trial on the training data; search.folds.",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage",
            metavar="URL",
            envvar=TRIAL_STORAGE_ENV_VAR,
            show_envvar=False,
            help="A database for the trials; default: a file in the run. With a password: set TFM_STORAGE instead, as "
            "anybody on the machine can list the options of a process.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all trials as JSON.")] = False,
    sets: RecipeOverrides = None,
) -> None:
    """Search for the settings of a recipe that validate best.

    The same command goes on where it stopped.
    """
    _check_flags(report=report, final=final, again=again, workers=workers, cluster=cluster)
    try:
        from tfm.pipeline.tuning.search import open_search, publish_results, train_best
        from tfm.pipeline.tuning.worker import SearchArguments
    except ModuleNotFoundError as error:
        if error.name not in ("optuna", "sklearn"):
            raise
        raise RecipeError(f"tfm search needs {error.name}: {install_command('search')}") from None
    from tfm.cli.console import make_reporter

    reporter = make_reporter(tables_on_stdout=not as_json)
    search_run = open_search(file, sets or (), storage, folds=folds, create=not (report or final))
    if not report and not final:
        _run_trials(search_run, SearchArguments(file, sets or (), storage, folds), cluster, workers, reporter)
    if final:
        train_best(search_run, command_line(), reporter, allow_rescoring=again)
    results = publish_results(search_run, command_line(), reporter)
    if as_json:
        print_json(results.as_json(), indent=1)
    else:
        columns, rows = trials_table(results, list(search_run.config.space))
        count = len(results.trials)
        reporter.table(
            f"{search_run.config.name}: {format_count(count, 'trial')}, the best {describe_trials_shown(count)}",
            columns,
            rows,
        )


def _check_flags(*, report: bool, final: bool, again: bool, workers: int | None, cluster: str | None) -> None:
    """Raise BadParameter for flags that exclude each other."""
    if report and final:
        raise typer.BadParameter("give either --report or --final", param_hint="--final")
    if again and not final:
        raise typer.BadParameter("is for --final", param_hint="--again")
    if report or final:
        for name, value in (("--workers", workers), ("--cluster", cluster)):
            if value is not None:
                raise typer.BadParameter(f"has no effect with {'--report' if report else '--final'}", param_hint=name)


def _run_trials(
    search_run: "Search", arguments: "SearchArguments", cluster: str | None, workers: int | None, reporter: "Reporter"
) -> None:
    """Run trials in this process, in several, or on a cluster, until the search ends."""
    from tfm.pipeline.tuning.worker import WorkerJob, run_worker, run_workers, run_workers_on_cluster

    job = WorkerJob(search_run.trials, search_run.base, search_run.sets, command_line(), reporter)
    if search_run.config.method == "grid":
        reporter.line(f"grid: {format_count(len(search_run.trials.all_trials()), 'configuration')}")
    if cluster is not None:
        run_workers_on_cluster(job, arguments, cluster, workers)
    elif workers is not None and workers > 1:
        if arguments.url is not None:
            os.environ[TRIAL_STORAGE_ENV_VAR] = arguments.url
        run_workers(job, workers, _worker_arguments(sys.argv[1:]))
    else:
        run_worker(job)


def _worker_arguments(arguments: list[str]) -> list[str]:
    """Return the same command for one worker, which has the storage from the environment: `ps` shows the arguments."""
    worker_arguments, skip = [], False
    for argument in arguments:
        if skip or argument.startswith(("--workers=", "--storage=")):
            skip = False
        elif argument in ("--workers", "--storage"):
            skip = True
        else:
            worker_arguments.append(argument)
    return worker_arguments


def describe_trials_shown(num_trials: int) -> str:
    """The words after "the best" in the table's title, which say where trials are left out."""
    return "first" if num_trials <= MAX_TRIALS_SHOWN else f"{MAX_TRIALS_SHOWN} of them"


def trials_table(results: "SearchResults", keys: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The best trials, those without a figure last; keys: of the space, of which those that a trial has are shown."""
    rest = [trial for trial in results.trials if trial.value is None]
    keys = [key for key in keys if any(key in trial.configuration for trial in results.trials)]
    rows = []
    for trial in [*results.ranked, *rest][:MAX_TRIALS_SHOWN]:
        settings = [trial.configuration.get(key, "–") for key in keys]
        formatted_settings = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in settings]
        figure = "–" if trial.value is None else f"{trial.value:.4f}"
        outcome = f"{trial.ended}: {trial.reason}" if trial.reason else trial.ended
        rows.append(
            [str(trial.number), figure, *formatted_settings, f"{trial.updates:,}", f"{trial.seconds:,.0f}", outcome]
        )
    return ["trial", results.metric, *keys, "updates", "seconds", "ended"], rows
