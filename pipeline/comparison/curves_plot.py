"""The plot of a comparison: validation loss of every run over updates, and over seconds."""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

from tfm.pipeline.artifacts.files import convert_os_errors, write_bytes_atomically
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.label_fonts import font_rc_params
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.reports.training_curves import PLOT_STYLE, escape_label

PLOT_FORMATS = ("svg", "png")
LINE_STYLES = ("-", "--", ":", "-.")  # ten colors, then the same dashed


def draw_curves(runs: Sequence[RunSummary], file: Path) -> None:
    """Draw the curves of the runs into a file, by its ending an SVG or a PNG.

    Raises RecipeError for another ending, DataError where no run has a curve, WriteError.
    """
    kind = file.suffix.removeprefix(".").lower()
    if kind not in PLOT_FORMATS:
        raise RecipeError(f"--plot {file}: a plot is a .svg or a .png")
    if all(run.curve is None for run in runs):
        raise DataError("has no curve: training/metrics.jsonl of the run is missing", file=runs[0].model.path.parent)
    content = render_curves(runs, kind)
    with convert_os_errors(file):
        write_bytes_atomically(file, content)


def render_curves(runs: Sequence[RunSummary], image_format: str) -> bytes:
    """The plot as an SVG or PNG: the same runs give the same bytes."""
    # matplotlib takes most of a second to import: only a drawing pays for it
    import matplotlib
    from matplotlib.figure import Figure

    style = PLOT_STYLE | font_rc_params(run.name for run in runs)
    with matplotlib.rc_context(style), warnings.catch_warnings():  # type: ignore[arg-type]
        # a character that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(11, max(4.5, 0.2 * len(runs) + 0.5)), layout="constrained")  # room for the legend
        by_step, by_second = figure.subplots(1, 2, sharey=True)
        for number, (name, curve) in enumerate((run.name, run.curve) for run in runs):
            if curve is None:
                continue
            look = {"color": f"C{number % 10}", "linestyle": LINE_STYLES[number // 10 % len(LINE_STYLES)]}
            by_step.plot(curve.steps, curve.losses, marker=".", linewidth=1.3, label=escape_label(name), **look)
            by_second.plot(curve.seconds, curve.losses, marker=".", linewidth=1.3, **look)
        for axes, label in ((by_step, "updates"), (by_second, "seconds of updates")):
            axes.set_xlabel(label)
            axes.grid(alpha=0.25)
        by_step.set_title("validation loss a prediction (nats)", loc="left")
        figure.legend(loc="outside right upper", frameon=False)
        buffer = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if image_format == "svg" else {"Software": None}
        figure.savefig(buffer, format=image_format, metadata=metadata, dpi=150)
    return buffer.getvalue()
