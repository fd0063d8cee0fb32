"""Tables of labels to read: scores of each label, and the confusion matrix."""

from collections.abc import Sequence

from tfm.pipeline.scoring.metrics.labels import LabelScores

MAX_LABELS = 30  # that a table by label shows: those that the references have most often
MAX_CONFUSIONS = 10
NO_LABEL = "(none)"

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, headings and rows; the first cell of a row is a name."""


def label_tables(scores: LabelScores, max_columns: int) -> list[Table]:
    """Scores by label, and the confusion matrix; beyond `max_columns` columns, the commonest confusions."""
    tables = [_label_table(scores)]
    given_labels = sorted({name for row in scores.confusion.values() for name in row})
    if len(given_labels) > max_columns or len(scores.confusion) > max_columns:
        return [*tables, *_commonest_confusion_tables(scores)]
    rows = [
        [_label_name(each), *(str(row.get(name, 0)) for name in given_labels)] for each, row in scores.confusion.items()
    ]
    return [*tables, ("confusion matrix", ["reference ↓ given →", *map(_label_name, given_labels)], rows)]


def _label_table(scores: LabelScores) -> Table:
    names = sorted(scores.by_label, key=lambda name: -scores.by_label[name].support)[:MAX_LABELS]
    rows = []
    for name in names:
        score = scores.by_label[name]
        shares = (score.precision, score.recall, score.f1)
        rows.append([name, *(f"{share:.2f}" for share in shares), f"{score.support:,}"])
    all_of_them = len(scores.by_label)
    title = "labels" if len(names) == all_of_them else f"the {len(names)} commonest of {all_of_them:,} labels"
    return title, ("label", "precision", "recall", "F1", "support"), rows


def _commonest_confusion_tables(scores: LabelScores) -> list[Table]:
    """Table of the most frequent confusions of labels; none if all are right."""
    wrong = [
        (count, reference, hypothesis)
        for reference, row in scores.confusion.items()
        for hypothesis, count in row.items()
        if hypothesis != reference
    ]
    commonest = sorted(wrong, key=lambda each: -each[0])[:MAX_CONFUSIONS]
    rows = [
        [_label_name(reference), _label_name(hypothesis), f"{count:,}"] for count, reference, hypothesis in commonest
    ]
    return [("commonest confusions", ("reference", "given", "count"), rows)] if rows else []


def _label_name(label: str) -> str:
    return label or NO_LABEL
