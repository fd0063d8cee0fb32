"""Alignment error rate of each head against gold alignments, to choose the head that aligns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner
from tfm.pipeline.alignment.pharaoh import GoldLinks
from tfm.pipeline.scoring.alignment.error_rate import LinkCounts
from tfm.pipeline.scoring.metrics.score import Score

CHUNK_PAIRS = 512
HEAD_TABLE_COLUMNS = ("layer", "head", "row that asks", "AER ↓", "precision", "recall")


@dataclass(frozen=True)
class HeadScores:
    """The scores of the links by one head: aer, precision and recall, in percent."""

    head: AlignmentHead
    scores: dict[str, Score]

    def table_row(self) -> tuple[object, ...]:
        """Return the cells of COLUMNS."""
        return *self.head.table_row(), *(f"{each.score:.2f}" for each in self.scores.values())

    def as_json(self) -> dict[str, Any]:
        """Return the scores with the head."""
        return {**self.head.as_json(), **{name: each.score for name, each in self.scores.items()}}


def score_heads(
    aligner: WordAligner, pairs: Sequence[SentencePair], gold: Sequence[GoldLinks], heads: Sequence[AlignmentHead]
) -> list[HeadScores]:
    """Return the scores of heads against gold alignments, the lowest error rate first.

    Args:
        aligner: the model.
        pairs: the texts.
        gold: the links of each pair.
        heads: those that are scored.
    """
    counts = [LinkCounts() for _ in heads]
    for first in range(0, len(pairs), CHUNK_PAIRS):
        chunk = slice(first, first + CHUNK_PAIRS)
        for head_links, gold_links in zip(aligner.align(pairs[chunk], heads, first + 1), gold[chunk], strict=True):
            counts = [
                so_far + LinkCounts.from_links(links, gold_links.sure, gold_links.possible)
                for so_far, links in zip(counts, head_links, strict=True)
            ]
    head_scores = [HeadScores(head, total.scores()) for head, total in zip(heads, counts, strict=True)]
    return sorted(head_scores, key=lambda each: each.scores["aer"].score)
