"""A run of MLflow: in a SQLite file beside the runs, or on the server that MLFLOW_TRACKING_URI names."""

import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfm.pipeline.training.trackers.tracker import MetricsLine, TrackedRun, scalars, tracker_project_from_env

MAX_METRICS = 1000
MAX_PARAMS = 100
MAX_PARAM_CHARS = 6000
"""Limits of MLflow's REST interface: items of one request, characters of a parameter."""


def mlflow_tracking_uri(runs_folder: Path) -> str:
    """The address of the tracking store.

    Args:
        runs_folder: the folder of all runs, which has the SQLite file where the environment names no server.
    """
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{runs_folder.resolve() / 'mlflow.db'}"


class MlflowTracker:
    """Tracker that writes to MLflow.

    Args:
        run: the run to track.
        run_id: the identifier that MLflow gave it in an earlier session; None for a new run.
    """

    def __init__(self, run: TrackedRun, run_id: str | None) -> None:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)  # they tell each step of making the tables
        # A server that does not answer is tried again by the sink: MLflow's own seven tries take minutes.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        self._client = MlflowClient(mlflow_tracking_uri(run.runs_folder))
        try:
            earlier_run = None if run_id is None else self._client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            earlier_run = None
        if earlier_run is not None and earlier_run.info.lifecycle_stage == "active":
            self.run_id = str(earlier_run.info.run_id)
            self._client.update_run(self.run_id, status="RUNNING")
        else:
            new_run = self._client.create_run(
                self._get_or_create_experiment_id(run.runs_folder), run_name=run.name, tags=dict(run.tags)
            )
            self.run_id = str(new_run.info.run_id)
            self._log_config(run.config)

    def _get_or_create_experiment_id(self, runs_folder: Path) -> str:
        """The identifier of the experiment, which is made where it does not exist."""
        from mlflow.exceptions import MlflowException

        name = tracker_project_from_env("MLFLOW_EXPERIMENT_NAME")
        if experiment := self._client.get_experiment_by_name(name):
            return str(experiment.experiment_id)
        is_local = "MLFLOW_TRACKING_URI" not in os.environ
        try:
            return str(
                self._client.create_experiment(
                    name, artifact_location=(runs_folder.resolve() / "mlflow-artifacts").as_uri() if is_local else None
                )
            )
        except MlflowException:  # another training made it meanwhile
            if experiment := self._client.get_experiment_by_name(name):
                return str(experiment.experiment_id)
            raise

    def _log_config(self, config: Mapping[str, object]) -> None:
        from mlflow.entities import Param

        params = [Param(_mlflow_name(key), str(value)[:MAX_PARAM_CHARS]) for key, value in config.items()]
        for first in range(0, len(params), MAX_PARAMS):
            self._client.log_batch(self.run_id, params=params[first : first + MAX_PARAMS])

    def log(self, lines: Sequence[MetricsLine]) -> None:
        """Send the figures of lines of metrics.jsonl."""
        from mlflow.entities import Metric

        timestamp = int(1000 * time.time())
        metrics = [
            Metric(_mlflow_name(name), value, timestamp, int(line["step"]))
            for line in lines
            for name, value in scalars(line)
        ]
        for first in range(0, len(metrics), MAX_METRICS):
            self._client.log_batch(self.run_id, metrics=metrics[first : first + MAX_METRICS])

    def save(self, files: Sequence[Path], tags: Mapping[str, str]) -> None:
        """Send files and tags."""
        for key, value in tags.items():
            self._client.set_tag(self.run_id, _mlflow_name(key), value)
        for file in files:
            self._client.log_artifact(self.run_id, str(file))

    def finish(self, *, is_finished: bool) -> None:
        """Close the run; `is_finished` where the training reached its end."""
        self._client.set_terminated(self.run_id, "FINISHED" if is_finished else "KILLED")


def _mlflow_name(name: str) -> str:
    """The name with the characters that MLflow allows: chrf++ is "chrfpp"."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("+", "p"))
