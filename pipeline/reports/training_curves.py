"""The curves of a training, drawn from its metrics.jsonl: loss, learning rate and validation figures, by step."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tfm.data.safe_files import read_log
from tfm.pipeline.artifacts.files import write_text_atomically
from tfm.pipeline.errors import escape_control_characters
from tfm.pipeline.training_config import ValidationScoreName

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# panel title -> lines of (label, event, key)
_PANELS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "loss a target token (nats)": (
        ("train, smoothed", "train", "loss"),
        ("train", "train", "nll"),
        ("validation", "valid", "loss"),
    ),
    "learning rate": (("learning rate", "train", "learning_rate"),),
}
# the first two that there are figures of
_OPTIONAL_PANELS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "perplexity": (("validation", "valid", "perplexity"),),
    "BLEU": (("validation", "valid", "bleu"),),
    **{name: (("validation", "valid", name),) for name in get_args(ValidationScoreName) if name != "bleu"},
    "accuracy": (("validation", "valid", "accuracy"),),
}
_LINE_COLORS = {"train, smoothed": "#9ecae1", "train": "#3182bd", "validation": "#e6550d", "learning rate": "#31a354"}
PLOT_STYLE = {
    "svg.hashsalt": "tfm",  # ids are otherwise drawn at random: the same metrics must give the same bytes
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def escape_label(text: str) -> str:
    """A name as the label of a plot: nothing of it is an equation, or a character that an SVG cannot hold."""
    return escape_control_characters(text, keep="").replace("$", r"\$")


def read_metrics(file: Path) -> list[dict[str, object]]:
    """Read the lines of a metrics.jsonl; one that is damaged or still being written is left out.

    Raises DataError if the file is a link, a special file, or larger than any that tfm writes.
    """
    lines = []
    for text in read_log(file):
        if not text.endswith("\n"):  # the last, still being written, or a piece of what no training wrote
            continue
        try:
            lines.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return [line for line in lines if isinstance(line, dict)]


def draw_curves(metrics: Sequence[Mapping[str, object]], file: Path) -> None:
    """Draw the curves of `metrics` (lines of metrics.jsonl) into RUN/training/curves.svg, whole at every moment."""
    write_text_atomically(file, curves_svg(metrics), root=file.parent.parent)


def curves_svg(metrics: Sequence[Mapping[str, object]]) -> str:
    """The curves of `metrics` as an SVG document: the same lines give the same bytes, whatever the day."""
    # matplotlib takes most of a second to import: only a drawing pays for it
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(10, 6), layout="constrained")
        # which figures of validation there are differs from task to task
        optional_panels = [
            (title, lines) for title, lines in _OPTIONAL_PANELS.items() if curve_points(metrics, *lines[0][1:])[0]
        ]
        panels = [*_PANELS.items(), *(optional_panels or list(_OPTIONAL_PANELS.items()))[:2]]
        for axes, (title, lines) in zip(figure.subplots(2, 2, sharex=True).flat, panels, strict=False):
            _draw_panel(axes, title, lines, metrics)
        for axes in figure.axes[len(panels) :]:
            axes.remove()
            figure.axes[1].tick_params(labelbottom=True)  # nothing is below it any more
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _draw_panel(
    axes: "Axes", title: str, lines: Sequence[tuple[str, str, str]], metrics: Sequence[Mapping[str, object]]
) -> None:
    """One set of axes with the lines that have points."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    num_lines = 0
    for label, event, key in lines:
        steps, values = curve_points(metrics, event, key)
        if steps:
            marker = "." if event == "valid" else ""
            axes.plot(steps, values, label=label, color=_LINE_COLORS[label], marker=marker, linewidth=1.3)
            num_lines += 1
    axes.set_title(title, loc="left")
    axes.set_xlabel("step")
    axes.grid(alpha=0.25)
    if key == "perplexity" and num_lines:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(NullLocator())
    if num_lines > 1:
        axes.legend(frameon=False)
    if not num_lines:
        axes.text(0.5, 0.5, "no figures yet", transform=axes.transAxes, ha="center", color="#777777")


def curve_points(metrics: Sequence[Mapping[str, object]], event: str, key: str) -> tuple[list[int], list[float]]:
    """Return steps and values of one curve; a value that is missing or not finite leaves a gap, not an error.

    Args:
        metrics: lines of metrics.jsonl.
        event: of the lines.
        key: of the value.
    """
    steps: list[int] = []
    values: list[float] = []
    for line in metrics:
        step, value = line.get("step"), line.get(key)
        if line.get("event") != event or not isinstance(step, int) or not isinstance(value, (int, float)):
            continue
        if abs(step) < 2**53 and abs(value) <= sys.float_info.max:
            steps.append(step)
            values.append(float(value))
    return steps, values
