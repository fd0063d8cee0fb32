"""The table of entities to read: precision, recall and F1 of each type, and averages."""

from tfm.pipeline.scoring.metrics.entities.scores import EntityScores
from tfm.pipeline.scoring.metrics.labels import LabelScore
from tfm.pipeline.scoring.tables.labels import MAX_LABELS, Table


def entity_tables(scores: EntityScores) -> list[Table]:
    """Scores of each type, the commonest if they are many, and below them the averages over all."""
    names = sorted(scores.by_type, key=lambda name: -scores.by_type[name].support)[:MAX_LABELS]
    rows = [_score_row(name, scores.by_type[name]) for name in names]
    rows += [_score_row(f"{name} average", each) for name, each in scores.averages.items()]
    num_types = len(scores.by_type)
    title = "entities" if len(names) == num_types else f"entities: the {len(names)} commonest of {num_types:,} types"
    return [(title, ("type", "precision", "recall", "F1", "support"), rows)]


def _score_row(name: str, score: LabelScore) -> list[str]:
    shares = (score.precision, score.recall, score.f1)
    return [name, *(f"{share:.2f}" for share in shares), f"{score.support:,}"]
