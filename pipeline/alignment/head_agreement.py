"""The head that aligns, chosen without gold alignments: by how well models of both directions agree.

    agreement = 2 |A and B| / (|A| + |B|)

A: the links of a head of one model; B: those of a head of the model of the other direction. It is 1 - AER with either
as gold, by which Chen et al. 2020 choose a layer. Two heads that are wrong in the same way agree too: only gold
alignments tell how good a head is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner
from tfm.pipeline.alignment.symmetrization import reverse_links

CHUNK_PAIRS = 512
MAX_HEAD_SELECTION_PAIRS = 1000
"""Pairs by which heads are chosen, the first ones."""


@dataclass(frozen=True)
class HeadAgreement:
    """How well a head and one of the model of the other direction agree, in percent."""

    head: AlignmentHead
    back: AlignmentHead
    agreement: float

    def describe(self) -> str:
        """Return a line that names both heads and their agreement."""
        forward, back = (
            f"layer {layer}, head {head}, the row that {row}"
            for layer, head, row in (each.table_row() for each in (self.head, self.back))
        )
        return f"{forward}; of the other direction {back}: {self.agreement:.2f} % of their links agree"


def rank_head_agreements(
    forward: WordAligner,
    backward: WordAligner,
    pairs: Sequence[SentencePair],
    heads: tuple[Sequence[AlignmentHead], Sequence[AlignmentHead]],
) -> list[HeadAgreement]:
    """Return how well each head of one model agrees with each of the other, the best first; of equals the first.

    Args:
        forward: the model from source to target.
        backward: the model from target to source.
        pairs: the texts.
        heads: those of both models that are compared.
    """
    num_shared, sizes = np.zeros((len(heads[0]), len(heads[1]))), [np.zeros(len(each)) for each in heads]
    for first in range(0, len(pairs), CHUNK_PAIRS):
        chunk = pairs[first : first + CHUNK_PAIRS]
        backward_alignments = backward.align(
            [SentencePair(target, source) for source, target in chunk], heads[1], first + 1, truncate=True
        )
        for links, reversed_links in zip(
            forward.align(chunk, heads[0], first + 1, truncate=True), backward_alignments, strict=True
        ):
            backward_links = [reverse_links(each) for each in reversed_links]
            sizes[0] += [len(each) for each in links]
            sizes[1] += [len(each) for each in backward_links]
            num_shared += [[len(each & other) for other in backward_links] for each in links]
    rates = 200 * num_shared / np.maximum(sizes[0][:, None] + sizes[1], 1)
    agreements = [
        HeadAgreement(head, other, float(rates[row, column]))
        for row, head in enumerate(heads[0])
        for column, other in enumerate(heads[1])
    ]
    return sorted(agreements, key=lambda each: -each.agreement)
