"""`tfm compare`: trained models side by side, and whether they differ, in tables and one plot."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tfm.cli.evaluate_options import metrics_of_texts
from tfm.cli.options import RecipeOverrides, config_section, reject_flags
from tfm.cli.streams import print_data, print_json
from tfm.pipeline.errors import format_count

if TYPE_CHECKING:
    from tfm.pipeline.comparison.metric_tests import SignificanceResults
    from tfm.pipeline.comparison.runs import Comparison
    from tfm.pipeline.comparison.tables.columns import Column


class OutputFlags(NamedTuple):
    """The forms in which a comparison is given: a page, Markdown, LaTeX, JSON, or tables for a terminal."""

    html: Path | None
    markdown: bool
    latex: bool
    as_json: bool


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|NAME=FILE...",
            help="Folders of runs, or their model/; or outputs of any system: NAME=FILE, or folders of evaluate --out.",
        ),
    ],
    source: Annotated[
        Path | None, typer.Option("--source", metavar="FILE", help="Of outputs: the source text, if it is known.")
    ] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option("--reference", metavar="FILE", help="Of outputs: what they are held against; repeatable."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="RUN", help="What the others are tested against (the first run)."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test",
            metavar="NAME",
            help="Test set to show (default: the main one), or valid for the validation split.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="A score of the test set to show: bleu, chrf, ...; repeatable."),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="METRIC",
            help="Best first: loss, accuracy, bleu of validation, seconds, ..., test.bleu; default: as given.",
        ),
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="One row per run. Default: runs that differ only in the seed share a row.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw validation loss over updates and seconds: .svg or .png."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page: scores, tests, and where the runs differ."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print the scores as a LaTeX table for a paper.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures and tests as JSON.")] = False,
    sets: RecipeOverrides = None,
) -> None:
    """Compare trained models or outputs of any system, and say which scores really differ.

    Settings, costs and scores of models stand side by side.
    """
    if sum((markdown, latex, as_json)) > 1:
        reject_flags({"--latex": latex, "--markdown": markdown}, "give one of --json, --markdown and --latex")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.artifacts.place import check_output_files
    from tfm.pipeline.comparison.curves_plot import draw_curves
    from tfm.pipeline.comparison.metric_tests import run_significance_tests
    from tfm.pipeline.comparison.outputs import are_outputs
    from tfm.pipeline.comparison.runs import compare_runs
    from tfm.pipeline.comparison.seeds import group_by_seed, one_row_per_run
    from tfm.pipeline.comparison.tables.columns import all_metrics, match_metric_names
    from tfm.pipeline.label_fonts import missing_glyphs_warning

    flags = OutputFlags(html, markdown, latex, as_json)
    inputs = (*runs, *(Path(str(each).partition("=")[2]) for each in runs), source, *(reference or ()))
    check_output_files({"--plot": plot, "--html": html}, inputs)
    if reference or source is not None or are_outputs(runs):
        reject_flags(
            {"--test": test, "--each": each, "--plot": plot},
            "applies to runs: outputs have one test set and no training",
        )
        _compare_outputs(runs, source, reference or [], baseline, metric or [], sort, sets, flags)
        return
    reject_flags({"--set": sets}, "is for outputs: a run was scored by its recipe")
    comparison = compare_runs(
        runs, sort, baseline=baseline, test=test, group_runs=one_row_per_run if each else group_by_seed
    )
    metrics = match_metric_names(metric or [], comparison)
    if plot is not None:
        draw_curves(comparison.runs, plot)
    reporter = make_reporter()
    if (
        plot is not None
        and (warning := missing_glyphs_warning(plot, (run.name for run in comparison.runs))) is not None
    ):
        reporter.warn(warning)
    significance = run_significance_tests(
        comparison, all_metrics(comparison) if as_json and not metric else metrics, reporter, each_run=as_json
    )
    _show_and_write_comparison(comparison, significance, metrics, flags)


def _show_and_write_comparison(
    comparison: "Comparison",
    significance: "SignificanceResults",
    metrics: Sequence[str],
    flags: OutputFlags,
) -> None:
    """Print a comparison, and write its page."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.comparison.tables.as_json import comparison_as_json
    from tfm.pipeline.comparison.tables.latex import comparison_latex

    if flags.as_json:
        print_json(comparison_as_json(comparison, significance), indent=2)
    elif flags.latex:
        print_data(comparison_latex(comparison, significance, metrics))
    else:
        _print_comparison(comparison, significance, metrics, markdown=flags.markdown)
    if flags.html is not None:
        _write_page(comparison, significance, metrics, flags.html)
    for entry in significance.looked_at:
        make_reporter().line(str(entry))
    for note in (*comparison.notes, *significance.notes):
        make_reporter().warn(note)


def _compare_outputs(
    output_arguments: Sequence[Path],
    source: Path | None,
    references: Sequence[Path],
    baseline: Path | None,
    metrics: Sequence[str],
    sort: str | None,
    sets: list[str] | None,
    flags: OutputFlags,
) -> None:
    """Compare outputs: score them, test them, enter the look, and show the result."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.comparison.metric_tests import run_significance_tests
    from tfm.pipeline.comparison.outputs import (
        check_metrics_of_texts,
        compare_outputs,
        parse_outputs,
        record_test_set_usage,
    )
    from tfm.pipeline.comparison.tables.columns import all_metrics, match_metric_names
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.scoring.evaluation.full_evaluation import check_metrics

    if not references:
        reject_flags(
            {"--source": source, "--set": sets},
            "is for texts that are scored by --reference: folders of evaluate --out keep their scores",
        )
    evaluation = config_section(
        EvaluationConfig, sets, {"evaluation.metrics": metrics_of_texts(metrics, sets) if references else None}
    )
    check_metrics(evaluation)
    if references:
        check_metrics_of_texts(metrics)
    reporter, outputs = make_reporter(), parse_outputs([*map(str, output_arguments)])
    scored_outputs = compare_outputs(
        outputs,
        source=source,
        references=references,
        evaluation=evaluation,
        baseline=None if baseline is None else str(baseline),
        sort=sort,
        reporter=reporter,
    )
    known_metrics = all_metrics(scored_outputs.comparison)
    external = [each.name for each in scored_outputs.evaluation.external if each.name in known_metrics]
    names = match_metric_names([*metrics, *external], scored_outputs.comparison) if metrics else known_metrics
    significance = run_significance_tests(scored_outputs.comparison, names, reporter, systems=scored_outputs.systems)
    _show_and_write_comparison(
        scored_outputs.comparison,
        replace(significance, looked_at=record_test_set_usage(scored_outputs, outputs, reporter)),
        names,
        flags,
    )


def _print_comparison(
    comparison: "Comparison", significance: "SignificanceResults", metrics: Sequence[str], *, markdown: bool
) -> None:
    """The table of the rows, that of the tests if there are any, and the meaning of their marks."""
    from tfm.cli.console import format_duration, make_reporter
    from tfm.pipeline.comparison.tables.columns import comparison_columns, difference_columns
    from tfm.pipeline.comparison.tables.legend import agreement_legend, legend_sentences
    from tfm.pipeline.comparison.tables.settings import settings_beside_figures, settings_columns

    num_rows = len(comparison.rows)
    columns = comparison_columns(comparison, significance, metrics, format_duration=format_duration)
    tables = {
        f"{num_rows} {'row' if len(comparison.runs) > num_rows else 'run'}{'s' if num_rows > 1 else ''}": [
            *columns,
            *(settings_beside_figures(comparison) if markdown else ()),
        ]
    }
    if not markdown and (settings := settings_columns(comparison)):
        tables[f"what differs from {comparison.baseline.name}"] = settings
    if tests := difference_columns(comparison, significance, metrics):
        tables[
            f"{significance.test}: {format_count(significance.num_segments, 'segment')}, "
            f"differences from {comparison.baseline.name}"
        ] = tests
    for number, (title, table_columns) in enumerate(tables.items()):
        if markdown:
            print_data("\n".join([""] * (number > 0) + markdown_lines(table_columns)))
        else:
            cells = list(zip(*(map(str, column.cells) for column in table_columns), strict=True))
            make_reporter(tables_on_stdout=True).table(title, [column.heading for column in table_columns], cells)
    for sentence in (
        *legend_sentences(comparison, significance, metrics, columns),
        *agreement_legend(comparison, significance, metrics),
    ):
        make_reporter().line(sentence)


def _write_page(
    comparison: "Comparison", significance: "SignificanceResults", metrics: Sequence[str], file: Path
) -> None:
    from tfm.cli.console import format_duration, make_reporter
    from tfm.pipeline.comparison.page import comparison_page, write_page
    from tfm.pipeline.comparison.tables.columns import comparison_columns

    reporter = make_reporter()
    write_page(
        file,
        comparison_page(
            comparison,
            significance,
            metrics,
            comparison_columns(comparison, significance, metrics, format_duration=format_duration),
            reporter,
        ),
    )
    reporter.line(f"written: {file}")


def markdown_lines(columns: Sequence["Column"]) -> list[str]:
    """The lines of a table; figures are right-aligned."""
    from tfm.cli.console import as_single_line

    lines = [
        [as_single_line(each.heading) for each in columns],
        ["---:" if each.numeric else "---" for each in columns],
    ]
    lines += map(list, zip(*([as_single_line(str(cell)) for cell in each.cells] for each in columns), strict=True))
    return ["| " + " | ".join(each.replace("|", "\\|") for each in line) + " |" for line in lines]
