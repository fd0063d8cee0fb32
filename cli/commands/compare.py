"""`tfm compare`: trained models side by side, in one table and one plot."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tfm.pipeline.comparison.runs import Comparison
    from tfm.pipeline.reports.run_summary import Trained

NOTHING = "–"
DIFFERS = "differs"
WORDS = ("run", "architecture", "task")
SAID = ("model.architecture", "model.task")  # they have columns of their own
MARK = "*"  # marks a figure that is not comparable with that of the first row


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or their model/.")],
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="METRIC",
            help="Best first: loss, accuracy, bleu of validation, seconds, ..., test.bleu; default: as given.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw validation loss over updates and seconds: .svg or .png."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Compare trained models: their differences, costs and scores."""
    if markdown and as_json:
        raise typer.BadParameter("give either --json or --markdown", param_hint="--markdown")
    from tfm.cli.console import reporter
    from tfm.pipeline.comparison.curves_plot import draw
    from tfm.pipeline.comparison.runs import compare_runs

    found = compare_runs(runs, sort)
    if plot is not None:
        draw(found.runs, plot)
    columns, rows = table(found)
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    elif markdown:
        print("\n".join(in_markdown(columns, rows)))
    else:
        reporter(tables_on_stdout=True).table(f"{len(rows)} run{'s' if len(rows) > 1 else ''}", columns, rows)
    talk = reporter()
    for note in found.notes:
        talk.warn(note)


def table(found: "Comparison") -> tuple[list[str], list[list[str]]]:
    """Headings and rows, one for each run; empty columns are omitted."""
    columns: dict[str, list[str]] = {"run": [run.name for run in found.runs]}
    columns["architecture"] = [run.architecture for run in found.runs]
    columns["task"] = [run.task for run in found.runs] if len({run.task for run in found.runs}) > 1 else []
    for name, (heading, shown) in _figures(found).items():
        columns[heading] = [_cell(found, run, name, shown) for run in found.runs]
    columns[f"{DIFFERS} from {found.base}"] = [_differs(found.differs[run.name]) for run in found.runs]
    columns = {heading: cells for heading, cells in columns.items() if any(each not in ("", NOTHING) for each in cells)}
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def _figures(found: "Comparison") -> dict[str, tuple[str, Callable[[float], str]]]:
    """The figures of the table: heading, and how a value is shown."""
    from tfm.cli.console import duration
    from tfm.pipeline.reports.evaluation_report import label

    shown: dict[str, tuple[str, Callable[[float], str]]] = {
        "parameters": ("parameters", "{:,.0f}".format),
        "tokens_per_second": ("tokens/s", "{:,.0f}".format),
        "updates": ("updates", "{:,.0f}".format),
        "seconds": ("training", duration),
        "valid.loss": ("valid loss ↓", "{:.4f}".format),
        "valid.perplexity": ("valid perplexity ↓", "{:,.2f}".format),
        "valid.accuracy": ("valid accuracy", lambda share: f"{100 * share:.1f} %"),
        "valid.bleu": ("valid BLEU", "{:.2f}".format),
    }
    return shown | {name: (label(name.partition(".")[2]), "{:,.2f}".format) for name in found.main}


def _cell(found: "Comparison", run: "Trained", name: str, shown: Callable[[float], str]) -> str:
    figure = run.figures.get(name)
    if figure is None:
        return NOTHING
    text = "∞" if figure.score == float("inf") else shown(figure.score)
    return text if found.compares(run, name) else text + MARK


def _differs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key} = {_value(value)}" for key, value in values.items() if key not in SAID)


def _value(value: object) -> str:
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}…"


def in_markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the table; figures are right-aligned."""
    lines = [columns, ["---" if each in WORDS or each.startswith(DIFFERS) else "---:" for each in columns], *rows]
    return ["| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines]
