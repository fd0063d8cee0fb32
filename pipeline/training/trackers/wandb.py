"""A run of Weights & Biases: on its server, or in files beside the runs where nobody is logged in (`wandb sync`)."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfm.pipeline.training.trackers.tracker import MetricsLine, TrackedRun, scalars, tracker_project_from_env


def wandb_server_and_project(runs_folder: Path) -> str:
    """The server and project of the tracked runs.

    Args:
        runs_folder: the folder of all runs, which has the files of a run that is not sent.
    """
    server = os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai"
    return f"{server}/{os.environ.get('WANDB_ENTITY', '')}/{tracker_project_from_env('WANDB_PROJECT')}"


class WandbTracker:
    """Tracker that writes to Weights & Biases.

    A line of metrics.jsonl is one row of the run, whose horizontal axis is the step of the training: rows sent later
    for earlier steps are drawn at their place.

    Args:
        run: the run to track.
        run_id: its identifier of an earlier session; None for a new run.
    """

    def __init__(self, run: TrackedRun, run_id: str | None) -> None:
        import wandb

        folder = Path(os.environ.get("WANDB_DIR") or run.runs_folder)
        mode: Any = os.environ.get("WANDB_MODE") or ("online" if wandb.login(prompt=False) else "offline")
        self._run: Any = wandb.init(
            project=tracker_project_from_env("WANDB_PROJECT"),
            name=run.name,
            id=run_id,
            resume=None if run_id is None else "allow",
            config={**run.config, **run.tags},
            dir=folder,
            mode=mode,
            settings=wandb.Settings(console="off", silent=True, save_code=False, disable_git=True),
        )
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")
        self.run_id = str(self._run.id)

    def log(self, lines: Sequence[MetricsLine]) -> None:
        """Send the figures of lines of metrics.jsonl."""
        for line in lines:
            self._run.log({**dict(scalars(line)), "step": int(line["step"])})

    def save(self, files: Sequence[Path], tags: Mapping[str, str]) -> None:
        """Send files and tags."""
        self._run.config.update(dict(tags), allow_val_change=True)
        for file in files:
            shutil.copy(file, self._run.dir)  # its files are sent when the run is closed

    def finish(self, *, is_finished: bool) -> None:
        """Close the run; `is_finished` where the training reached its end."""
        self._run.finish(exit_code=0 if is_finished else 1)
