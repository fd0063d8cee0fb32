"""The trackers that a recipe can name, opened for a training or for the scores of its model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tfm.pipeline.artifacts.canonical_json import flatten_keys, sha256_of_json, to_jsonable
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.training.metrics_log import MetricsSink
from tfm.pipeline.training.trackers.mlflow import MlflowTracker, mlflow_tracking_uri
from tfm.pipeline.training.trackers.sink import TrackerSink, read_sent_state, write_sent_state
from tfm.pipeline.training.trackers.tensorboard import TensorBoardSink
from tfm.pipeline.training.trackers.tracker import MetricsLine, TrackedRun, Tracker
from tfm.pipeline.training.trackers.wandb import WandbTracker, wandb_server_and_project


@dataclass(frozen=True)
class TrackingService:
    """A tracking service: how its run is opened, and where it is, given the folder of all runs."""

    connect: Callable[[TrackedRun, str | None], Tracker]
    address: Callable[[Path], str]


TRACKING_SERVICES: Mapping[str, TrackingService] = {
    "mlflow": TrackingService(MlflowTracker, mlflow_tracking_uri),
    "wandb": TrackingService(WandbTracker, wandb_server_and_project),
}


def check_trackers_installed(names: Sequence[str]) -> None:
    """Raise RecipeError if the package of a tracker is missing."""
    for name in names:
        if name in TRACKING_SERVICES and find_spec(name) is None:
            raise RecipeError(
                f"training.trackers: {name} needs a package that is not installed: {install_command(name)}"
            )


def open_sinks(
    names: Sequence[str],
    run: TrackedRun,
    document: Mapping[str, object],
    lines: Sequence[MetricsLine],
    *,
    step: int,
    reporter: Reporter,
) -> list[MetricsSink]:
    """Open the trackers of a training, each with the lines that it has so far.

    Args:
        names: the trackers' names.
        run: the run to track.
        document: the plan that tells this training from another in the same folder.
        lines: the lines of metrics.jsonl so far.
        step: the update after which training goes on.
        reporter: receives warnings.

    Raises:
        RecipeError: the package of a tracker is missing.
    """
    check_trackers_installed(names)
    sinks: list[MetricsSink] = []
    for name in names:
        if name == "tensorboard":
            sinks.append(TensorBoardSink(run.folder / "training" / "tensorboard", step=step))
            continue
        service, file = TRACKING_SERVICES[name], tracker_state_file(run.folder, name)
        state = read_sent_state(file, sha256_of_json(to_jsonable(document)), service.address(run.runs_folder))
        sink = TrackerSink(name, partial(service.connect, run), state, file, run.folder, reporter)
        for line in lines:
            sink.append(line)
        sinks.append(sink)
    return sinks


def tracker_state_file(run: Path, name: str) -> Path:
    """The file that keeps what a tracker has of the training in a run's folder."""
    return run / "training" / "trackers" / f"{name}.json"


def track_scores(names: Sequence[str], run: TrackedRun, scores: Manifest, reporter: Reporter) -> None:
    """Send the scores of the test sets and their report to the tracked runs of the training.

    Args:
        names: the trackers' names.
        run: the run that was tracked.
        scores: the manifest of the scores.
        reporter: receives warnings.
    """
    for name in names:
        if name not in TRACKING_SERVICES or not (file := tracker_state_file(run.folder, name)).exists():
            continue
        state = read_sent_state(file, None, TRACKING_SERVICES[name].address(run.runs_folder))
        if state.run_id is None or state.scores == scores.fingerprint:
            continue
        figures = dict(flatten_keys({"event": "test", "step": max(state.steps.values(), default=0), **scores.figures}))
        files = [scores.folder / each for each in ("scores.json", "report.html") if (scores.folder / each).exists()]
        try:
            tracker = TRACKING_SERVICES[name].connect(run, state.run_id)
            tracker.log([figures])
            tracker.save(files, {"scores": scores.fingerprint})
            tracker.finish(is_finished=True)
        except Exception as error:  # as in a training: a client library may raise anything
            words = " ".join(str(error).split())[:200]
            reporter.warn(f"training.trackers: {name} does not take the scores ({words}); {scores.folder} has them")
            continue
        state.scores = scores.fingerprint
        write_sent_state(state, file, run.folder)
