"""All tables of an evaluation beside its scores: by type of entity, by label, by kind of error."""

from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.tables.entities import entity_tables
from tfm.pipeline.scoring.tables.errors import error_tables
from tfm.pipeline.scoring.tables.labels import Table, label_tables
from tfm.pipeline.scoring.tables.summaries import summary_tables


def evaluation_tables(evaluation: Evaluation, max_columns: int) -> list[Table]:
    """The tables in the order in which they are shown. max_columns: maximum number of columns of a confusion matrix."""
    labels = [] if evaluation.labels is None else label_tables(evaluation.labels, max_columns)
    entities = [] if evaluation.entities is None else entity_tables(evaluation.entities)
    return [*entities, *labels, *error_tables(evaluation.errors), *summary_tables(evaluation.summaries)]
