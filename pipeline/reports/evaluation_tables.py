"""All tables of an evaluation beside its scores: by label, by kind of error."""

from tfm.pipeline.scoring.error_tables import error_tables
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.label_tables import Table, label_tables


def tables_of(evaluation: Evaluation, widest: int) -> list[Table]:
    """The tables in the order in which they are shown; widest: most columns of a confusion matrix."""
    labels = [] if evaluation.labels is None else label_tables(evaluation.labels, widest)
    return [*labels, *error_tables(evaluation.errors)]
