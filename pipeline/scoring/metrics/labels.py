"""Scores of labels: accuracy, macro F1, and for each label precision, recall and confusions.

A label is a whole line, or each of its words (`EvaluationConfig.labels`).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tfm.data.errors import format_count, format_names, format_share
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.score import Score

NO_LABEL = ""
"""Mark for a label that one side lacks."""


@dataclass(frozen=True)
class LabelScore:
    """Scores of one label.

    Args:
        precision: in 0..100.
        recall: in 0..100.
        f1: in 0..100.
        support: the number of times that the references have the label.
    """

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class LabelScores:
    """Scores of all labels, and their confusions, both in the order of the labels' names.

    by_label: the scores of each label. confusion: label of the reference -> label given -> count; NO_LABEL where a side
    has no label.
    """

    by_label: Mapping[str, LabelScore]
    confusion: Mapping[str, Mapping[str, int]]


def label_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> LabelScores:
    """Score each label, held against the one at its place in the first reference.

    The scores are scikit-learn's `precision_recall_fscore_support(labels=..., zero_division=0)` over the labels of both
    sides. A place where one side has no label counts as wrong: it lowers the recall of a label that is missing, and
    the precision of one that is too many; it makes no label of its own.

    Args:
        hypotheses: labels of each segment.
        references: one or more lists as long; the first is read.
        config: `labels` is read: whether a line is one label, or has labels between spaces.
    """
    pairs = Counter(label_pairs(hypotheses, references[0], config))
    num_hypothesis: Counter[str] = Counter()
    num_reference: Counter[str] = Counter()
    for (hypothesis_label, reference_label), count in pairs.items():
        num_hypothesis[hypothesis_label] += count
        num_reference[reference_label] += count
    names = sorted({*num_hypothesis, *num_reference})
    by_label = {
        name: label_score(pairs[name, name], num_hypothesis[name], num_reference[name])
        for name in names
        if name != NO_LABEL
    }
    confusion: dict[str, dict[str, int]] = {name: {} for name in names if num_reference[name]}
    for hypothesis_label, reference_label in sorted(pairs):
        confusion[reference_label][hypothesis_label] = pairs[hypothesis_label, reference_label]
    return LabelScores(by_label, confusion)


def label_score(num_correct: int, num_predicted: int, num_gold: int) -> LabelScore:
    """Compute precision, recall and F1 = 2 TP / (2 TP + FP + FN) in 0..100; 0 / 0 is 0.

    Args:
        num_correct: TP.
        num_predicted: TP + FP.
        num_gold: TP + FN.
    """
    precision, recall, f1 = (
        num_correct / max(num_predicted, 1),
        num_correct / max(num_gold, 1),
        2 * num_correct / max(num_predicted + num_gold, 1),
    )
    return LabelScore(100 * precision, 100 * recall, 100 * f1, num_gold)


def accuracy(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the percentage of labels that are right; one that is missing or too many counts as wrong.

    Args:
        hypotheses: labels of each segment.
        references: one or more lists as long; the first is read.
        config: `labels` is read: whether a line is one label, or has labels between spaces.
    """
    pairs = label_pairs(hypotheses, references[0], config)
    num_right = sum(label == reference_label for label, reference_label in pairs)
    return Score(100 * num_right / max(len(pairs), 1), f"unit:{_label_unit(config)}|count:{len(pairs)}|stat:share*100")


def macro_f1(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the mean of the labels' F1 in 0..100: scikit-learn's `f1_score(average="macro", zero_division=0)`.

    The labels are those of the hypotheses and of the (first) reference: one that is only given has an F1 of 0.

    Args:
        hypotheses: labels of each segment.
        references: one or more lists as long; the first is read.
        config: `labels` is read: whether a line is one label, or has labels between spaces.
    """
    by_label = label_scores(hypotheses, references, config).by_label
    mean = math.fsum(each.f1 for each in by_label.values()) / max(len(by_label), 1)
    return Score(
        mean, f"unit:{_label_unit(config)}|labels:{len(by_label)}|of:hypotheses-and-references|stat:mean-f1*100"
    )


def _label_unit(config: EvaluationConfig) -> str:
    """The name of the unit of a label in a signature."""
    return "line" if config.labels == "line" else "label"


def line_accuracy(hypothesis: str, reference: str, config: EvaluationConfig) -> float:
    """Compute the share of the labels of a line that are right, in 0..1; 1 where neither side has any.

    Args:
        hypothesis: labels of the line.
        reference: the right labels.
        config: `labels` is read: whether a line is one label, or has labels between spaces.
    """
    pairs = label_pairs([hypothesis], [reference], config)
    return sum(label == reference_label for label, reference_label in pairs) / len(pairs) if pairs else 1.0


def label_pairs(
    hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig
) -> list[tuple[str, str]]:
    """Pair each label with its reference; NO_LABEL fills the shorter side.

    Args:
        hypotheses: labels of each segment.
        references: the right labels, as many lines.
        config: `labels` is read: whether a line is one label, or has labels between spaces.
    """
    lines = zip(hypotheses, references, strict=True)
    if config.labels == "line":
        return [pair for hypothesis, reference in lines if any(pair := (hypothesis.strip(), reference.strip()))]
    return [
        pair
        for hypothesis, reference in lines
        for pair in zip_longest(hypothesis.split(), reference.split(), fillvalue=NO_LABEL)
    ]


def label_count_warning(hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig) -> str | None:
    """A warning that sentences have more or fewer labels than words, whose labels are compared one by one; None if none
    of those with labels has.

    Args:
        hypotheses: labels of each segment.
        references: the right labels, as many lines.
        config: `labels` is read: where it was not chosen, a line may be one label of several words.
    """
    counts = [(len(given.split()), len(text.split())) for given, text in zip(hypotheses, references, strict=True)]
    differing = [(number, pair) for number, pair in enumerate(counts, 1) if pair[0] and pair[0] != pair[1]]
    if not differing:
        return None
    number, (given, wanted) = differing[0]
    have = "has" if len(differing) == 1 else "have"
    share = f"{len(differing):,} of {len(counts):,} hypotheses {have}"
    place = f"the first in line {number:,} ({given} and {wanted})"
    remedy = "are they of the same sentences, with all words?"
    if config.labels == "auto":
        remedy += ' If a line is one label, set evaluation.labels = "line"'
    return f"{share} more or fewer labels than the reference, {place}: {remedy}"


def unknown_labels_warning(
    hypotheses: Sequence[str], references: Sequence[str], config: EvaluationConfig
) -> str | None:
    """A warning that labels are written otherwise than in the references, so that none of them can be right: all of
    them, or some but for their case; None if they are not.

    Args:
        hypotheses: labels of each segment.
        references: the right labels, as many lines.
        config: `labels` is read: whether a line is one label, or has labels between spaces.
    """
    given, wanted = (
        {label for text in column for label in _split_labels(text, config)} for column in (hypotheses, references)
    )
    if not given or not wanted:
        return None
    if wanted.isdisjoint(given):
        names, others = (format_names(sorted(labels), max_chars=60) for labels in (given, wanted))
        problem = f"no label of the hypotheses ({names}) is one of the references ({others})"
        return f"{problem}, so that all count as wrong: spell them alike"
    labels_by_folded = {label.casefold(): label for label in sorted(wanted)}
    by_case = [
        f"{label} for {labels_by_folded[folded]}"
        for label in sorted(given - wanted)
        if (folded := label.casefold()) in labels_by_folded
    ]
    if not by_case:
        return None
    problem = f"labels of the hypotheses differ from those of the references in case ({format_names(by_case)})"
    return f"{problem}, and count as wrong: spell them alike"


def _split_labels(text: str, config: EvaluationConfig) -> list[str]:
    """The labels of a line."""
    return text.split() if config.labels != "line" else [text.strip()] if text.strip() else []


def label_warnings(references: Sequence[str], config: EvaluationConfig) -> list[str]:
    """Warnings about the labels of a test set: lines without labels, or only one distinct label."""
    lines = [[text.strip()] if config.labels == "line" else text.split() for text in references]
    names = {label for line in lines for label in line if label}
    num_empty = sum(not any(line) for line in lines)
    warnings = []
    if num_empty:
        share = format_share(num_empty, len(lines), "line", "has", "have")
        warnings.append(f"{share} no label, and what is said there counts as wrong")
    if len(names) == 1:
        label = names.pop()
        num_lines = format_count(len(lines), "line")
        warnings.append(f'"{label}" is the only label of {num_lines}: a model that always gives it is 100 % right')
    return warnings
