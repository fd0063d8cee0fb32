"""The clean stage: training pairs that pass the rules of a recipe, and what was dropped, with the reason."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tfm.data.config import DataConfig
from tfm.data.corpora.portions import Corpus, flatten_portions
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.sources import describe_corpus, read_rows, resolve_splits
from tfm.data.corpora.splits import Splits
from tfm.data.corpora.unseen_characters import is_removed_by_cleaning
from tfm.data.errors import DataError
from tfm.data.lines import chunk_rows
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish
from tfm.pipeline.artifacts.canonical_json import JSON, sha256_of_json
from tfm.pipeline.artifacts.corpus_inputs import corpus_inputs, download_corpora, text_changing_settings
from tfm.pipeline.artifacts.files import write_text_atomically
from tfm.pipeline.artifacts.no_symlinks import remove_path_below
from tfm.pipeline.artifacts.place import check_output_files
from tfm.pipeline.cleaning.cleaner import Cleaner
from tfm.pipeline.cleaning.cluster_measurement import ClusterMeasurer, MeasurerSettings
from tfm.pipeline.cleaning.config import CleanConfig, ExternalScorer
from tfm.pipeline.cleaning.corpora import CLEAN_STAGE
from tfm.pipeline.cleaning.decisions import Decisions
from tfm.pipeline.cleaning.measurement import CHUNK_ROWS, PairChunk
from tfm.pipeline.cleaning.output import CleanTextSummary, ScoreTable, write_clean_text
from tfm.pipeline.cleaning.previous_scores import (
    PreviousScores,
    check_commands,
    find_previous_scores,
    remove_late_limits,
)
from tfm.pipeline.cleaning.recipe_check import MODEL_RULES
from tfm.pipeline.cleaning.report import (
    CORPUS_COLUMNS,
    TABLE_COLUMNS,
    corpus_rows,
    lost_corpus_warnings,
    nothing_left_problem,
    report_as_json,
    report_page,
    rule_rows,
    spaceless_warning,
    summary_line,
)
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys
from tfm.pipeline.cleaning.rules.registry import RULES_REVISION, TextChange, make_rules, make_text_changes
from tfm.pipeline.cluster.session import connect_to_cluster
from tfm.pipeline.config import Device
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.metrics.external.scores import external_metric_inputs
from tfm.pipeline.text_files import show_remarks

REPORT_PAGE = "report.html"


def plan_clean(config: CleanConfig, data: DataConfig, out: Path, *, whole_corpora: bool = False) -> Plan:
    """Return the plan of `clean`.

    Args:
        config: the [clean] part of a recipe.
        data: the [data] part of a recipe.
        out: the folder of the artifact.
        whole_corpora: whether no validation and test data are cut from the training data, if there are none.

    Raises:
        DataError: a corpus or a model is not there.
    """
    splits = _find_splits(data, whole_corpora=whole_corpora)
    corpora_by_split: dict[str, Sequence[Corpus]] = {"train": splits.train}
    if config.overlap is not None:
        corpora_by_split |= {name: corpora for name, corpora in splits.corpora_by_split().items() if name != "train"}
    inputs = corpus_inputs(corpora_by_split, online=data.online)
    for rule in MODEL_RULES:
        for name in ("forward", "backward") if (rule_config := getattr(config, rule)) is not None else ():
            folder = resolve_model_folder(Path(getattr(rule_config, name)))
            inputs[f"{name} model of {rule}"] = Input.from_artifact(folder, "train")
    inputs |= external_metric_inputs(config.external)
    settings: dict[str, JSON] = {
        name: [text_changing_settings(each) for each in corpora] for name, corpora in corpora_by_split.items()
    }
    # a model is known by its fingerprint, wherever it is; what a command printed in time does not depend on its limit
    default_limit = ExternalScorer.model_fields["limit"].default
    clean_settings = config.model_copy(
        update={"external": tuple(each.model_copy(update={"limit": default_limit}) for each in config.external)}
    ).model_dump(mode="json", exclude_none=True, exclude={rule: {"forward", "backward"} for rule in MODEL_RULES})
    values: dict[str, JSON] = {"clean": clean_settings, "rules": RULES_REVISION, "data": settings}
    return Plan(CLEAN_STAGE, out, values, inputs, seed=None)


def clean(
    config: CleanConfig,
    data: DataConfig,
    out: Path,
    *,
    whole_corpora: bool = False,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    cluster: str | None = None,
) -> None:
    """Apply the rules to the training corpora of a recipe, and publish what passes.

    train.N.source.txt and train.N.target.txt have the pairs of corpus N that stay, scores.parquet the scores of all,
    dropped.jsonl those that were dropped, with the rule; report.json and report.html say how many, with examples.
    Stopped at any moment, the same command goes on with what was measured.

    Args:
        config: the [clean] part of a recipe.
        data: the [data] part of a recipe.
        out: the folder of the artifact.
        whole_corpora: as for `plan_clean`.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: of the models of a rule.
        cluster: the address of a cluster that measures the pairs; None for this machine. Models and commands of rules
            run on this one in either case.

    Raises:
        DataError: a corpus is not in order, or no pair is left.
        RecipeError: a rule needs a package that is not installed.
    """
    download_corpora(data, reporter)
    plan = plan_clean(config, data, out, whole_corpora=whole_corpora)
    if is_fresh(plan, reporter):
        return
    with publish(plan, command=command) as draft, show_remarks(_show_unremoved(config, reporter)):
        work_folder = plan.folder.absolute().parent / f".{plan.folder.name}.work"
        splits = _find_splits(data, whole_corpora=whole_corpora)
        result = _clean_splits(config, splits, data.online, plan, work_folder, draft.folder, device, reporter, cluster)
        report = report_as_json(result.decisions.results, result.text, result.corpora)
        text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
        (draft.folder / "report.json").write_text(text, encoding="utf-8", errors="surrogatepass")
        page = report_page(result.decisions.results, result.text, result.corpora, is_dry=False)
        (draft.folder / REPORT_PAGE).write_text(page, encoding="utf-8")
        draft.figures["read"], draft.figures["kept"] = list(result.text.read), list(result.text.kept)
        draft.figures["dropped"] = {each.name: each.dropped for each in result.decisions.results}
    remove_path_below(work_folder.parent, work_folder)
    _show_results(config, result, reporter)
    reporter.line(f"clean: {out}; report: {out / REPORT_PAGE}")


def show_dry_run(
    config: CleanConfig,
    data: DataConfig,
    page: Path | None,
    *,
    whole_corpora: bool = False,
    reporter: Reporter,
    device: Device = "auto",
    cluster: str | None = None,
) -> None:
    """Show what each rule would drop, by itself and after the rules before it; every rule measures every pair.

    Args:
        config: the [clean] part of a recipe.
        data: the [data] part of a recipe.
        page: the file of an HTML page with examples; None for none.
        whole_corpora: as for `plan_clean`.
        reporter: receives the table.
        device: of the models of a rule.
        cluster: as for `clean`.
    """
    plan, splits = (
        plan_clean(config, data, Path("dry-run"), whole_corpora=whole_corpora),
        _find_splits(data, whole_corpora=whole_corpora),
    )
    check_output_files({"--html": page}, [Path(each.path) for each in plan.inputs.values() if each.path is not None])
    with tempfile.TemporaryDirectory(prefix="tfm-clean-") as folder, show_remarks(_show_unremoved(config, reporter)):
        result = _clean_splits(
            config, splits, data.online, plan, Path(folder) / "work", None, device, reporter, cluster
        )
    _show_results(config, result, reporter)
    if page is not None:
        text = report_page(result.decisions.results, result.text, result.corpora, is_dry=True)
        write_text_atomically(page, text)
        reporter.line(f"report: {page}")


@dataclass(frozen=True)
class _CleanResult:
    decisions: Decisions
    text: CleanTextSummary
    corpora: list[str]


def _find_splits(data: DataConfig, *, whole_corpora: bool) -> Splits:
    return Splits(data.train, data.valid, dict(data.tests)) if whole_corpora else resolve_splits(data)


def _clean_splits(
    config: CleanConfig,
    splits: Splits,
    online: bool,
    plan: Plan,
    work_folder: Path,
    out: Path | None,
    device: str,
    reporter: Reporter,
    cluster: str | None,
) -> _CleanResult:
    """Measure, decide and write. out: the folder of the texts; None: a dry run."""
    previous_scores = None if out is None else find_previous_scores(plan, config)
    corpora = list(flatten_portions(splits.train))
    _check_late_rules(config, corpora, work_folder, previous_scores, reporter, online=online)
    size = check_and_count_splits(splits, online=online)["train"]
    fingerprints = {
        "config": remove_late_limits(plan.config),
        "inputs": {name: each.fingerprint for name, each in plan.inputs.items()},
    }
    held_out = _held_out_keys(config, splits, online=online)
    cleaner = Cleaner(
        make_rules(config, held_out),
        corpora,
        online,
        fingerprints,
        work_folder,
        device,
        reporter,
        everything=out is None,
        previous_scores=previous_scores,
    )
    with ExitStack() as stack:
        if cluster is not None:
            settings = MeasurerSettings(sha256_of_json(fingerprints), config, held_out, cleaner.everything)
            measurer = ClusterMeasurer(stack.enter_context(connect_to_cluster(cluster)), settings)
            cleaner = replace(cleaner, measure=measurer.measure_chunks)
        work = cleaner.measure_pairs(size)
    with ExitStack() as files:
        files.callback(work.close)
        decisions = cleaner.apply_rules(work)
        is_refused = out is not None and work.rows > 0 and bool(decisions.dropped_by.all())
        table = ScoreTable(cleaner.rules, work, decisions)
        with reporter.bar("writing" if out else "choosing examples", work.rows, "pairs") as bar:

            def read_with_progress() -> Iterator[PairChunk]:
                for chunk in cleaner.read_changed_pairs(work):
                    yield chunk
                    bar.advance(len(chunk))

            text = write_clean_text(read_with_progress(), table, decisions, len(corpora), None if is_refused else out)
    if is_refused:
        raise DataError(nothing_left_problem(config, decisions, text))
    return _CleanResult(decisions, text, [describe_corpus(corpus) for corpus in corpora])


def _check_late_rules(
    config: CleanConfig,
    corpora: Sequence[Corpus],
    work_folder: Path,
    previous_scores: PreviousScores | None,
    reporter: Reporter,
    *,
    online: bool,
) -> None:
    """Check the commands and models of rules before all pairs are measured; raises DataError for one that cannot be."""
    check_commands(config.external, work_folder, previous_scores)
    if any(getattr(config, rule) is not None for rule in MODEL_RULES):
        from tfm.pipeline.cleaning.rules.pairs.model_check import check_rule_models  # here, as it loads tokenizers

        check_rule_models(config, corpora, reporter, online=online)


def _held_out_keys(config: CleanConfig, splits: Splits, *, online: bool) -> HeldOutKeys:
    if config.overlap is None:
        return HeldOutKeys.from_pairs(())
    corpora = [
        each for name, split_corpora in splits.corpora_by_split().items() if name != "train" for each in split_corpora
    ]
    rows = (row for corpus in corpora for row in read_rows(corpus, online=online))
    pairs = ((source, target) for source, *targets in rows for target in targets)
    return HeldOutKeys.from_pairs(
        _change_pairs(pairs, make_text_changes(config)),
        both_ways=any(corpus.languages is not None for corpus in splits.train),
    )


def _change_pairs(pairs: Iterable[tuple[str, str]], changes: Sequence[TextChange]) -> Iterator[tuple[str, str]]:
    """The pairs as rules change them: training texts are compared with held-out ones after the same changes."""
    for rows in chunk_rows(pairs, CHUNK_ROWS):
        sides: list[Sequence[str]] = list(zip(*rows, strict=True))
        for change in changes:
            sides = [change(side) for side in sides]
        yield from zip(*sides, strict=True)


def _show_unremoved(config: CleanConfig, reporter: Reporter) -> Callable[[str], None]:
    """Return what shows a remark, but not of characters that the rule `controls` removes."""

    def show(remark: str) -> None:
        if config.controls is None or not is_removed_by_cleaning(remark):
            reporter.line(remark)

    return show


def _show_results(config: CleanConfig, result: _CleanResult, reporter: Reporter) -> None:
    reporter.table("rules", TABLE_COLUMNS, rule_rows(result.decisions.results))
    if len(result.corpora) > 1:
        reporter.table("corpora", CORPUS_COLUMNS, corpus_rows(result.text, result.corpora))
    reporter.line(summary_line(result.text))
    for warning_text in lost_corpus_warnings(result.decisions, result.text, result.corpora):
        reporter.warn(warning_text)
    if (warning := spaceless_warning(config, result.text)) is not None:
        reporter.warn(warning)
