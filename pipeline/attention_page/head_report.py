"""Measures of heads, and their report: its tables and its JSON."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tfm.data.errors import format_count
from tfm.pipeline.attention_page import head_syntax
from tfm.pipeline.attention_page.attended import AttentionKind
from tfm.pipeline.attention_page.head_syntax import RelationAccuracy

RELATIVE_POSITIONS = {"previous": -1, "same": 0, "next": 1}


@dataclass(frozen=True)
class HeadMeasures:
    """Statistics of one head: means over all tokens that ask, each counted once.

    Args:
        kind: of attention.
        layer: from 1; None for attention that is spread evenly.
        head: from 1; None for attention that is spread evenly.
        queries: the number of tokens that ask.
        previous: the share of attention to the token before, of 1.
        same: the share of attention to the token itself, of 1.
        next: the share of attention to the token behind, of 1.
        separators: the share of attention to tokens that only separate, of 1.
        entropy: in bits.
        of_maximum: the share of the entropy in that of attention spread evenly; None if there was never a choice.
        tags: the share of attention to each tag, of 1; None without tags.
    """

    kind: AttentionKind
    layer: int | None
    head: int | None
    queries: int
    previous: float
    same: float
    next: float
    separators: float
    entropy: float
    of_maximum: float | None
    tags: dict[str, float] | None


class ReportTable(NamedTuple):
    """Rows under headings.

    Args:
        title: of the table.
        columns: the headings.
        rows: the cells of each row.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True)
class HeadReport:
    """Statistics of each head of a model in some sentences, and of attention that is spread evenly.

    Args:
        sentences: their number.
        measures: of each head.
        relations: the best head of each relation, of a corpus with dependencies.
    """

    sentences: int
    measures: tuple[HeadMeasures, ...]
    relations: tuple[RelationAccuracy, ...] = ()

    def tables(self) -> list[ReportTable]:
        """All heads, and where there are tags, the attention of each by tag."""
        identity_columns = ("attention", "layer", "head")
        title = f"What heads do in {format_count(self.sentences, 'sentence')}: percent of attention, entropy in bits"
        columns = (*identity_columns, *RELATIVE_POSITIONS, "separators", "entropy", "% of max")
        tables = [
            ReportTable(title, columns, [(*_head_identity_cells(each), *_measure_row(each)) for each in self.measures])
        ]
        measures_with_tags = [each for each in self.measures if each.tags is not None]
        if measures_with_tags:
            total: Counter[str] = Counter()
            for measures in measures_with_tags:
                total.update(measures.tags or {})
            tags = sorted(total, key=lambda tag: (-total[tag], tag))
            rows = [
                (*_head_identity_cells(measures), *(_format_percent((measures.tags or {}).get(tag, 0)) for tag in tags))
                for measures in measures_with_tags
            ]
            tables.append(ReportTable("Percent of attention by tag", (*identity_columns, *tags), rows))
        if frequent := head_syntax.relation_rows(self.relations):
            title = "Dependencies: how often the word most attended to is the right one, and the best fixed offset"
            tables.append(ReportTable(title, head_syntax.RELATION_COLUMNS, frequent))
        return tables

    def as_json(self) -> dict[str, Any]:
        """Return the output of `tfm attend --head-report FILE --json`."""
        return {
            "sentences": self.sentences,
            "heads": [asdict(each) for each in self.measures],
            "relations": [asdict(each) for each in self.relations],
        }


def _head_identity_cells(measures: HeadMeasures) -> tuple[object, ...]:
    return measures.kind if measures.layer else f"{measures.kind}, evenly", measures.layer or "–", measures.head or "–"


def _measure_row(measures: HeadMeasures) -> tuple[object, ...]:
    shares = (measures.previous, measures.same, measures.next, measures.separators)
    share_of_maximum = "–" if measures.of_maximum is None else _format_percent(measures.of_maximum)
    return *map(_format_percent, shares), f"{measures.entropy:.2f}", share_of_maximum


def _format_percent(share: float) -> str:
    return f"{100 * share:.1f}"
