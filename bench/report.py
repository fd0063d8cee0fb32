"""The output of a bench: tables on stdout, progress on stderr, JSON into a file if asked."""

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bench import compare
from bench.compare import Contestant, Figures
from tfm.cli.console import make_reporter
from tfm.pipeline.artifacts.provenance import describe_hardware, git_commit, package_versions
from tfm.pipeline.runtime.progress import Reporter

Extra = Mapping[str, Mapping[str, object]]


def table_reporter() -> Reporter:
    """The reporter of a bench."""
    return make_reporter(tables_on_stdout=True)


def contest(
    title: str,
    contestants: Sequence[Contestant],
    *,
    rounds: int,
    unit: str,
    extra: Callable[[Mapping[str, Sequence[Figures]]], Extra] = lambda figures_by_name: {},
    say_ratios: bool = True,
) -> list[dict[str, object]]:
    """Run the contestants in turn and print their table; what was found, as JSON.

    extra: further columns of the table, from the figures of all rounds.
    """
    out = table_reporter()
    rounds_by_name = compare.alternate(contestants, rounds, out.line)
    summaries = compare.summarize(contestants, rounds_by_name)
    out.table(title, *compare.summary_table(summaries, unit, extra(rounds_by_name)))
    if say_ratios:
        for sentence in compare.prediction_verdicts(summaries, unit):
            print(sentence)
    return compare.as_json(summaries, rounds_by_name)


def write_json(file: Path | None, bench: str, options: Mapping[str, object], figures: object) -> None:
    """Write the settings, figures and machine of a bench to a file, if one is given."""
    if file is None:
        return
    machine = {"hardware": describe_hardware(), "versions": package_versions(), "commit": git_commit()}
    content = {"bench": bench, "options": dict(options), **machine, "found": figures}
    file.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


def curves_svg(curves: Iterable[tuple[str, Sequence[float], Sequence[float]]], x: str, y: str) -> str:
    """One set of axes with a line a contestant, from its name, xs and ys; the same figures give the same bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    from tfm.pipeline.reports.training_curves import PLOT_STYLE

    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        for name, xs, ys in curves:
            axes.plot(xs, ys, marker="o", markersize=3, label=name)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
