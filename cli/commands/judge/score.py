"""`tfm judge score`: what the answers of a campaign say of the systems, of the judges, and of automatic metrics."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.streams import print_json


def score(
    campaign: Annotated[
        Path, typer.Argument(metavar="CAMPAIGN", help="The folder that `tfm judge make` wrote, or its campaign.json.")
    ],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Answers: of the page, filled-in tables (CSV), or Pearmut's output."),
    ],
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="JUDGE", help="Leave out this judge's answers; repeatable."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option("--reference", metavar="FILE", help="References for metrics, by line; default: the campaign's."),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option("--run", metavar="RUN", help="Run of a judged system, for its external metrics; repeatable."),
    ] = None,
    wordnet: Annotated[
        Path | None, typer.Option("--wordnet", metavar="DIR", help="WordNet's files, for METEOR's synonyms.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Score the answers of judges: systems with intervals and tests, agreement, judges, metrics beside them.

    Nobody is left out but by --without: judges who seem careless are named, with the reasons.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.judging.analysis import analyze_answers
    from tfm.pipeline.judging.answer_files import read_answers
    from tfm.pipeline.judging.campaign import read_campaign
    from tfm.pipeline.judging.findings_tables import tables_of_findings
    from tfm.pipeline.judging.metric_correlation import (
        CORRELATED_METRICS,
        add_correlations,
        campaign_references,
        judged_texts,
        read_references,
    )
    from tfm.pipeline.judging.recorded_metrics import read_recorded_metrics
    from tfm.pipeline.text_files import check_text_file

    loaded_campaign, reporter = read_campaign(campaign), make_reporter()
    if reference is not None:
        check_text_file(reference, reporter)
    references = (
        campaign_references(loaded_campaign) if reference is None else read_references(loaded_campaign, reference)
    )
    config = EvaluationConfig(metrics=CORRELATED_METRICS, wordnet=None if wordnet is None else str(wordnet))
    findings = analyze_answers(loaded_campaign, read_answers(loaded_campaign, files, partial=True), without or ())
    recorded_metrics, notes = read_recorded_metrics(run or (), judged_texts(findings))
    num_metrics = len(recorded_metrics) + (len(config.metrics) if references else 0)
    with reporter.bar("metrics beside the judges", num_metrics, "metrics") if num_metrics else nullcontext() as bar:
        on_done = (lambda metric: bar.advance(1, metric)) if bar else (lambda metric: None)
        findings = add_correlations(findings, references, config, recorded_metrics, on_done)
    if as_json:
        print_json(findings.as_json(), indent=2)
    else:
        out = make_reporter(tables_on_stdout=True)
        for table in tables_of_findings(findings):
            out.table(table.title, table.columns, table.rows)
    for note in (*findings.notes, *notes):
        reporter.warn(note)
