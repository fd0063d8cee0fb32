"""The differences of systems from a baseline: all breakdowns of each test set, and its sentences that changed most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tfm.data.errors import format_count
from tfm.data.scripts import has_spaceless_script
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.comparison.differences.breakdowns import (
    Breakdown,
    average_columns,
    breakdown_by_label,
    breakdown_by_ngram_order,
    breakdown_by_source_length,
    largest_differences,
)
from tfm.pipeline.comparison.differences.changed_sentences import SentenceChanges, find_sentence_changes
from tfm.pipeline.comparison.differences.word_frequency import (
    WordSplitter,
    breakdown_by_training_frequency,
    choose_word_splitter,
    collect_words,
    count_training_words,
)
from tfm.pipeline.comparison.systems import System, text_mismatch_reason
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.evaluation_report import metric_label
from tfm.pipeline.reports.run_summary import RunSummary
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.breakdown import has_label_metrics
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.bleu_tokenizer import MECAB_PACKAGES, choose_tokenizer
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics

MAX_ROWS = 40  # of a table, where there are many labels
MAX_SENTENCES = 10
NO_DATASET_MESSAGE = (
    "F1 of words by how often training has them is not shown: {} has no dataset/ that its model was trained on"
)
UNKNOWN_TRAINING_TEXTS_MESSAGE = "the tokenizer of {} does not know {} of its training texts, which its words lack"
SINGLE_LETTERS_MESSAGE = "of scripts without spaces between words each letter is counted as a word"
NO_TEST_TRANSLATIONS_MESSAGE = "{} is skipped: there are no translations of test sets beside its model"
FIRST_RUNS_MESSAGE = "sentences are those of the first run of each system"


@dataclass(frozen=True)
class SystemDifferences:
    """Differences on one test set.

    Args:
        test: the name of the test set.
        columns: names of the systems, the baseline first.
        tables: breakdowns, with a column of each system.
        words: F1, precision and recall of words by training frequency, likewise.
        changes: by name of a system, from the baseline to it; of the first run of each.
        notes: figures that are left out, and why.
    """

    test: str
    columns: Sequence[str]
    tables: Sequence[Breakdown]
    words: Sequence[Breakdown]
    changes: Mapping[str, SentenceChanges]
    notes: Sequence[str]


@dataclass(frozen=True)
class TrainingWordCounts:
    """The number of times that each word occurs in training, by the words of `split`."""

    counts: Mapping[str, int]
    split: WordSplitter


def find_differences(
    rows: Mapping[str, Sequence[System]], baseline: RunSummary, reporter: Reporter
) -> list[SystemDifferences]:
    """Find the differences on each test set of the baseline, the main one first.

    Figures are means over the runs of a system, which are scored as the first run of the baseline was. Runs that were
    not given its texts are left out, with a note.

    Args:
        rows: by name the runs of a system, the baseline first; nothing is found where that has none.
        baseline: the run whose training data is counted.
        reporter: shows progress.
    """
    of_baseline = next(iter(rows.values()))
    if not of_baseline:
        return []
    first, notes = of_baseline[0], list[str]()
    training = None if has_label_metrics(first.evaluation) else _training_words(rows, baseline, notes, reporter)
    return [_compare_on_test(rows, test, first, training, notes, reporter) for test in first.tests]


def _training_words(
    rows: Mapping[str, Sequence[System]], baseline: RunSummary, notes: list[str], reporter: Reporter
) -> TrainingWordCounts | None:
    """Counts of the words of all test sets in the training targets of the baseline."""
    dataset, folder = baseline.model.inputs.get("dataset"), baseline.folder
    texts = [each for row in rows.values() for system in row for each in system.tests.values()]
    if not texts:
        return None
    if folder is None or dataset is None or not (folder / "dataset").exists():
        notes.append(NO_DATASET_MESSAGE.format(baseline.name))
        return None
    if open_artifact(folder / "dataset", "preprocess").fingerprint != dataset.fingerprint:
        notes.append(NO_DATASET_MESSAGE.format(baseline.name))
        return None
    split = choose_word_splitter(texts[0].references)
    words = collect_words(texts, split)
    counts, unknown = count_training_words(folder / "dataset", dataset, words, split, reporter)
    if has_spaceless_script(words) and choose_tokenizer(texts[0].references).name not in MECAB_PACKAGES:
        notes.append(SINGLE_LETTERS_MESSAGE)
    if unknown:
        notes.append(UNKNOWN_TRAINING_TEXTS_MESSAGE.format(baseline.name, format_count(unknown, "piece")))
    return TrainingWordCounts(counts, split)


def _compare_on_test(
    rows: Mapping[str, Sequence[System]],
    test: str,
    baseline: System,
    training: TrainingWordCounts | None,
    notes: Sequence[str],
    reporter: Reporter,
) -> SystemDifferences:
    base, config, remarks = baseline.tests[test], baseline.evaluation, list(notes)
    segments_by_system: dict[str, list[Segments]] = {}
    for name, systems in rows.items():
        remarks += [] if systems else [NO_TEST_TRANSLATIONS_MESSAGE.format(name)]
        for system in systems:
            system_segments = system.tests.get(test)
            if (
                reason := f"has no translations of {test}"
                if system_segments is None
                else text_mismatch_reason(system_segments, base)
            ):
                remarks.append(f"{system.name} is skipped: {reason}")
            elif system_segments is not None:
                segments_by_system.setdefault(name, []).append(system_segments)
    texts = [each for runs in segments_by_system.values() for each in runs]
    groups = [range(*ends) for ends in pairwise(accumulate(map(len, segments_by_system.values()), initial=0))]
    tables = [average_columns(each, groups) for each in _breakdowns(texts, config, remarks, test, reporter)]
    long = [each for each in tables if len(each.rows) > MAX_ROWS]
    remarks += [
        f"{table.title}: the {MAX_ROWS} of {len(table.rows):,} rows in which systems differ most" for table in long
    ]
    tables = [largest_differences(each, MAX_ROWS) if each in long else each for each in tables]
    words = [] if training is None else breakdown_by_training_frequency(texts, training.counts, training.split)
    words = [average_columns(each, groups) for each in words]
    remarks += [FIRST_RUNS_MESSAGE] if any(len(runs) > 1 for runs in segments_by_system.values()) else []
    first_runs = {name: runs[0] for name, runs in list(segments_by_system.items())[1:]}
    changes: dict[str, SentenceChanges] = {}
    for name, segments in first_runs.items():
        with reporter.bar(f"comparing sentences of {test}", len(base.hypotheses), "segments") as bar:
            changes[name] = find_sentence_changes(base, segments, config, MAX_SENTENCES, bar.advance)
    return SystemDifferences(test, list(segments_by_system), tables, words, changes, remarks)


def _breakdowns(
    texts: Sequence[Segments], config: EvaluationConfig, notes: list[str], test: str, reporter: Reporter
) -> list[Breakdown]:
    """Tables by length, and by n-gram order or label, without metrics that cannot be computed for these texts."""
    by_texts = config.model_copy(update={"metrics": ("bleu", "chrf")})
    skip_reasons: dict[str, str] = {}
    if not has_label_metrics(config):
        for segments in texts:
            skip_reasons |= inapplicable_metrics(segments.hypotheses, segments.references, by_texts)
        notes += [f"{metric_label(name)} is not shown: {reason}" for name, reason in skip_reasons.items()]
    with reporter.bar(f"scoring {test} by length", len(texts), "runs") as bar:
        tables = breakdown_by_source_length(texts, config, skip_reasons, bar.advance)
    if has_label_metrics(config):
        tables.append(breakdown_by_label(texts, config))
    elif "bleu" not in skip_reasons:
        tables.append(breakdown_by_ngram_order(texts, config))
    return tables
