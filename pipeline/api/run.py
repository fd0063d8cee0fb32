"""A training in Python: `tfm.read_run` returns its settings, its results, and its curves as arrays.

Legend: n points of a curve.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import format_count
from tfm.pipeline.api import arguments
from tfm.pipeline.page_frame import inline_svg
from tfm.pipeline.reports import run_summary
from tfm.pipeline.reports.training_curves import curve_points, curves_svg, read_metrics
from tfm.pipeline.scoring.metrics.score import Score


@dataclass(frozen=True)
class Curve:
    """A figure of training or validation: values (n,), and the number of updates before each measurement (n,)."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """A run as far as it is, which draws its curves in a notebook.

    curves: by event and figure, train.loss, valid.bleu, ...

    Args:
        name: of the run.
        config: every setting by dotted key.
        figures: by name, valid.loss, test.bleu, updates, seconds, ..., each with the signature by which it compares
            with others.
        metrics: the lines of training/metrics.jsonl.
        notes: figures that are left out, and why.
    """

    name: str
    config: Mapping[str, object]
    figures: Mapping[str, Score]
    metrics: Sequence[Mapping[str, object]]
    notes: Sequence[str] = ()

    @property
    def curves(self) -> dict[str, Curve]:
        """The curves of all figures; a value that is missing or not finite leaves a gap."""
        figure_keys = {
            (str(line.get("event")), key) for line in self.metrics for key in line if key not in ("event", "step")
        }
        points = {f"{event}.{key}": curve_points(self.metrics, event, key) for event, key in sorted(figure_keys)}
        return {
            name: Curve(np.array(steps, np.int64), np.array(values))
            for name, (steps, values) in points.items()
            if steps
        }

    def _repr_html_(self) -> str:
        return f"<figure>{inline_svg(curves_svg(self.metrics))}</figure>"

    def __repr__(self) -> str:
        sizes = f"{format_count(len(self.figures), 'figure')}, {format_count(len(self.curves), 'curve')}"
        return f"<tfm.Run {self.name}: {sizes}>"


def read_run(folder: str | os.PathLike[str]) -> Run:
    """The run in a folder, or that of a model's folder: the model verified, its figures, its scores, its curves.

    A training that goes on, or was stopped, has curves and no more. Raises DataError if there is neither.
    """
    path = arguments.check_folder(folder, "folder")
    metrics = path / "training" / "metrics.jsonl"
    if not (path / "model").exists() and metrics.exists():
        note = "has no model yet: its training goes on, or was stopped"
        return Run(run_summary.run_name(path), {}, {}, read_metrics(metrics), [note])
    summary = run_summary.read_run(path, run_summary.run_name(path))
    lines = [] if summary.folder is None else run_summary.read_training_metrics(summary.folder, summary.model, [])
    return Run(summary.name, summary.config, summary.figures, lines, summary.notes)
