"""The table of summaries to read: the hypotheses beside the references."""

from collections.abc import Mapping

from tfm.pipeline.scoring.summaries import NGRAM_ORDERS, SummaryStatistics
from tfm.pipeline.scoring.tables.labels import Table

EMPTY_CELL = "–"


def summary_tables(statistics: Mapping[str, SummaryStatistics]) -> list[Table]:
    """Length, compression and novelty of each side, by its name; nothing if there is none."""
    if not statistics:
        return []
    novel = [f"new {order}-grams %" for order in NGRAM_ORDERS]
    rows = [
        [
            side,
            *(
                EMPTY_CELL if value is None else f"{value:.2f}"
                for value in (figures.length, figures.compression, *figures.novelty.values())
            ),
        ]
        for side, figures in statistics.items()
    ]
    return [("summaries", ("texts", "words", "compression", *novel), rows)]
