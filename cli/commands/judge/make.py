"""`tfm judge make`: what several models said of a test set, as pages and tables for people to judge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfm.cli.options import reject_flags

if TYPE_CHECKING:
    from tfm.pipeline.judging.campaign import Campaign


def make(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN...]", help="Folders of runs, with translations/ of their tests."),
    ] = None,
    *,
    kind: Annotated[
        Literal["likert", "esa", "pairwise", "best"],
        typer.Option(
            "--kind",
            help="likert: adequacy and fluency, 1 to 5; esa: errors marked and a score, 0 to 100; "
            "pairwise: which of two; best: which of all.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder for the campaign.")],
    segments: Annotated[
        int | None,
        typer.Option(
            "--segments", metavar="N", min=1, help="Segments drawn from the test set; default: 100, or all of fewer."
        ),
    ] = None,
    judges: Annotated[int, typer.Option("--judges", metavar="J", min=1, help="How many people judge.")] = 2,
    each: Annotated[
        int | None,
        typer.Option(
            "--each",
            metavar="K",
            min=1,
            help="K judges per text; a judge sees each segment once. Default: everyone judges everything.",
        ),
    ] = None,
    repeats: Annotated[
        float, typer.Option("--repeats", metavar="X", min=0, max=0.5, help="Share of items that come twice.")
    ] = 0.1,
    checks: Annotated[
        float, typer.Option("--checks", metavar="X", min=0, max=0.5, help="Attention checks, as a share of the items.")
    ] = 0.1,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of what is drawn.")] = 1,
    test: Annotated[
        str | None, typer.Option("--test", metavar="NAME", help="Test set of the runs; default: the main one.")
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="NAME=FILE", help="Another system's translations, one a line; repeatable."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", metavar="FILE", help="Sources of --system, where there is no run.")
    ] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option("--reference", metavar="FILE", help="References of --source; repeatable."),
    ] = None,
    show_reference: Annotated[
        bool, typer.Option("--show-reference", help="Show judges the first reference beside the source.")
    ] = False,
) -> None:
    """Make a campaign in which people judge the outputs of systems without knowing the systems.

    DIR gets a page and a table (CSV) for each judge, pearmut.json for Pearmut, and campaign.json, the key: keep it.
    """
    files = dict(_parse_system(each) for each in system or ())
    if runs:
        reject_flags(
            {"--source": source, "--reference": reference}, "not allowed with RUN, which has sources and references"
        )
    else:
        reject_flags({"--test": test}, "give RUN, whose test set it names")
        if not files or source is None:
            raise typer.BadParameter("give it, or --source FILE and --system NAME=FILE", param_hint="RUN")
    if len(files) < len(system or ()):
        raise typer.BadParameter("two systems have the same name", param_hint="--system")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.judging.making.assembly import CampaignSpec, default_num_segments, make_campaign
    from tfm.pipeline.judging.making.folder import write_campaign_folder
    from tfm.pipeline.judging.making.texts import image_source_warning, read_systems

    systems = read_systems(
        runs or (), files, test=test, source=source, references=reference or (), reporter=make_reporter()
    )
    num_segments = default_num_segments(systems) if segments is None else segments
    spec = CampaignSpec(kind, num_segments, judges, each, repeats, checks, seed, show_reference)
    campaign = make_campaign(spec, systems)
    write_campaign_folder(campaign, out)
    reporter = make_reporter()
    reporter.table(f"{kind}: {', '.join(campaign.systems)}", *_workload_table(campaign))
    reporter.line(f"written: {out}; campaign.json is the key: keep it from judges")
    if (warning := image_source_warning(systems[0])) is not None:
        reporter.warn(warning)


def _parse_system(text: str) -> tuple[str, Path]:
    name, separator, file = text.partition("=")
    if not (name.strip() and separator and file):
        raise typer.BadParameter(f"{text!r} is not NAME=FILE", param_hint="--system")
    return name.strip(), Path(file)


def _workload_table(campaign: "Campaign") -> tuple[list[str], list[list[object]]]:
    """Return a table of the items of each judge."""
    rows: list[list[object]] = []
    for judge in campaign.judges:
        items = [campaign.items_by_id[name] for name in judge.items]
        counts = [sum(item.is_counted for item in items), sum(item.repeat_of is not None for item in items)]
        checks = sum(item.check is not None for item in items)
        rows.append([judge.name, len(items), *counts, checks, len(judge.ties)])
    return ["judge", "items", "asked once", "again", "attention checks", "ties not shown"], rows
