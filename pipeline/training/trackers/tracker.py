"""The interface of a tracker, and the run that it tracks."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tfm.pipeline.artifacts.canonical_json import flatten_keys

MetricsLine = Mapping[str, Any]
DEFAULT_PROJECT = "tfm"


@dataclass(frozen=True)
class TrackedRun:
    """A run as trackers show it.

    Attributes:
        folder: the folder of the run, whose name is that of the tracked run.
        config: the settings by dotted key.
        tags: what else identifies it, as the fingerprints of its inputs.
    """

    folder: Path
    config: Mapping[str, Any]
    tags: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def runs_folder(self) -> Path:
        """The folder of all runs, which has the trackers' local files."""
        return self.folder.parent


class Tracker(Protocol):
    """A run of a tracking service, open for writing. Each method may raise whatever the service's client raises."""

    run_id: str

    def log(self, lines: Sequence[MetricsLine]) -> None:
        """Send the figures of lines of metrics.jsonl."""

    def save(self, files: Sequence[Path], tags: Mapping[str, str]) -> None:
        """Send files and tags."""

    def finish(self, *, is_finished: bool) -> None:
        """Close the run; `is_finished` where the training reached its end."""


def scalars(line: MetricsLine) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a line of metrics.jsonl by name, as "valid/loss" or "valid/scores.chrf.score"."""
    for key, value in flatten_keys(line):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and key != "step":
            yield f"{line['event']}/{key}", float(value)


def tracker_project_from_env(env_var: str) -> str:
    """The name of the project that an environment variable gives; "tfm" where it gives none."""
    return os.environ.get(env_var) or DEFAULT_PROJECT
