"""Heads against syntax: does the word that a head attends to most stand in a dependency with the word that asks?

After Clark et al. 2019, "What Does BERT Look At?", section 4. Attention between words: that to a word is the sum over
its pieces, that from a word the mean over its pieces. Attention to a word itself, and to the begin and end of a
sentence, is not looked at.

Legend: H heads · T queries · S keys · W words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.attention_page.attended import AttendedToken, AttentionAxes, AttentionKind
from tfm.pipeline.attention_page.tagged_corpus import TaggedSentence

AttentionShares: TypeAlias = NDArray[np.float64]
ArcEnd = Literal["governor", "dependent"]
MIN_RELATION_COUNT = 20  # words that ask, for a relation to stand in the table: of fewer a share says little
MASKED_SCORE = -1.0  # less than any share of attention


@dataclass(frozen=True)
class RelationAccuracy:
    """The head whose most-attended word is right most often for one relation, and the best fixed offset beside it.

    Args:
        name: of the relation.
        towards: the word that is looked for; "governor": each dependent asks for its governor; "dependent": each
            governor asks for a dependent of this relation, of which it may have several.
        words: the number that ask.
        kind: of attention.
        layer: from 1.
        head: from 1.
        share: of the words that ask, the part that is answered right, of 1.
        offset: the place relative to the word that asks that is right most often.
        offset_share: its share: the best that a head that knows only positions reaches.
        heads: the share of each head.
    """

    name: str
    towards: ArcEnd
    words: int
    kind: AttentionKind
    layer: int
    head: int
    share: float
    offset: int
    offset_share: float
    heads: dict[str, float]


def word_attention(
    weights: AttentionShares, axes: AttentionAxes, words: Sequence[int], num_words: int
) -> AttentionShares:
    """Compute attention between words (H, W, W) from weights between pieces; MASKED_SCORE to a word itself.

    A word without pieces asks nothing and is never attended to most.

    Args:
        weights: (H, T, S) between pieces.
        axes: the tokens of queries and keys.
        words: the word of each piece of the source.
        num_words: the number of words (W).
    """
    to_word, from_word = _word_membership(axes.keys, words, num_words), _word_membership(axes.queries, words, num_words)
    means = from_word / np.maximum(from_word.sum(0), 1)
    attention: AttentionShares = np.einsum("hts,tq,sk->hqk", weights, means, to_word, optimize=True)
    attention[:, np.eye(num_words, dtype=bool)] = MASKED_SCORE
    attention[:, :, to_word.sum(0) == 0] = MASKED_SCORE
    return attention


def _word_membership(tokens: Sequence[AttendedToken], words: Sequence[int], num_words: int) -> AttentionShares:
    """(tokens, W): 1 where a token is a piece of a word."""
    membership = np.zeros((len(tokens), num_words))
    for row, token in enumerate(tokens):
        if token.source_index is not None:
            membership[row, words[token.source_index]] = 1
    return membership


def syntax_probe_targets(sentence: TaggedSentence) -> Iterator[tuple[tuple[str, ArcEnd], int, set[int]]]:
    """Yield the questions of a sentence's words.

    Each is the relation and its direction, the word that asks, and the words that are right.
    """
    dependents: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for word, (governor, relation) in enumerate(zip(sentence.governors, sentence.relations, strict=True)):
        if governor is not None:
            yield (relation, "governor"), word, {governor}
            dependents[relation, governor].add(word)
    for (relation, governor), words in dependents.items():
        yield (relation, "dependent"), governor, words


class SyntaxAccuracyCounts:
    """Counts over sentences: the number of times that each head, and each fixed offset, is right."""

    def __init__(self) -> None:
        self._asked: Counter[tuple[str, ArcEnd]] = Counter()
        self._offsets: defaultdict[tuple[str, ArcEnd], Counter[int]] = defaultdict(Counter)
        self._right: defaultdict[tuple[str, ArcEnd], dict[tuple[AttentionKind, int], NDArray[np.int64]]] = defaultdict(
            dict
        )

    def count_offset_hits(self, sentence: TaggedSentence) -> None:
        """Count the questions of a sentence, and the offsets that answer them."""
        for key, word, right in syntax_probe_targets(sentence):
            self._asked[key] += 1
            self._offsets[key].update(each - word for each in right)

    def count_head_hits(
        self, sentence: TaggedSentence, kind: AttentionKind, layer: int, attention: AttentionShares
    ) -> None:
        """Count the right answers of a layer's heads in a sentence.

        Args:
            sentence: with its dependencies.
            kind: of attention.
            layer: from 1.
            attention: (H, W, W) between the words.
        """
        top_words = attention.argmax(2)
        has_attention = attention.max(2) > 0
        for key, word, right in syntax_probe_targets(sentence):
            hits = np.isin(top_words[:, word], list(right)) & has_attention[:, word]
            hit_counts = self._right[key].get((kind, layer), np.zeros(len(attention), np.int64))
            self._right[key][kind, layer] = hit_counts + hits

    def relations(self) -> Iterator[RelationAccuracy]:
        """Each relation in both directions, the frequent first."""
        for (name, towards), num_queries in sorted(self._asked.items(), key=lambda item: (-item[1], item[0])):
            heads = {
                (kind, layer, head): int(count) / num_queries
                for (kind, layer), counts in self._right[name, towards].items()
                for head, count in enumerate(counts, 1)
            }
            best = max(heads, key=lambda each: (heads[each], -each[1], -each[2]))
            offsets = self._offsets[name, towards]
            offset = max(offsets, key=lambda each: (offsets[each], -abs(each), each))
            shares = {f"{kind} {layer}.{head}": share for (kind, layer, head), share in heads.items()}
            yield RelationAccuracy(
                name,
                towards,
                num_queries,
                *best,
                heads[best],
                offset=offset,
                offset_share=offsets[offset] / num_queries,
                heads=shares,
            )


RelationRow: TypeAlias = tuple[object, ...]
RELATION_COLUMNS = (
    "relation",
    "predicts",
    "words",
    "attention",
    "layer",
    "head",
    "accuracy %",
    "offset",
    "offset accuracy %",
)


def relation_rows(relations: Iterable[RelationAccuracy]) -> list[RelationRow]:
    """A row for each frequent relation, in the direction in which a head finds it more often."""
    best: dict[str, RelationAccuracy] = {}
    for relation in relations:
        if relation.words >= MIN_RELATION_COUNT and (
            relation.name not in best or relation.share > best[relation.name].share
        ):
            best[relation.name] = relation
    return [_relation_row(each) for each in best.values()]


def _relation_row(accuracy: RelationAccuracy) -> RelationRow:
    offset = f"{accuracy.offset:+d}"
    shares = f"{100 * accuracy.share:.1f}", f"{100 * accuracy.offset_share:.1f}"
    return (
        accuracy.name,
        accuracy.towards,
        accuracy.words,
        accuracy.kind,
        accuracy.layer,
        accuracy.head,
        shares[0],
        offset,
        shares[1],
    )


def source_attention_kinds(axes: Mapping[AttentionKind, AttentionAxes]) -> list[AttentionKind]:
    """The kinds of attention between words of the source: those that ask and those that are asked."""
    return [
        kind
        for kind, kind_axes in axes.items()
        if any(each.source_index is not None for each in kind_axes.queries)
        and any(each.source_index is not None for each in kind_axes.keys)
    ]
