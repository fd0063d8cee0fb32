"""Alignments from cross-attention: each word of the target is linked to the word of the source it attends to most.

Which row asks for a word of the target: the one that predicts it (Bahdanau et al. 2015), or the one that has just read
it, shifted by one (AET: Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine Translation").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfm.data.errors import DataError
from tfm.pipeline.alignment.cross_attention import cross_attention_sizes, cross_attentions
from tfm.pipeline.alignment.pharaoh import Links
from tfm.pipeline.alignment.word_pieces import PieceToWordMapper, Weights, attention_between_words
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel


@dataclass(frozen=True)
class AlignmentHead:
    """The attention that aligns.

    Args:
        layer: from 1.
        head: from 1; None: the mean of the layer's heads.
        shifted: whether the row that has read a piece asks for it, and not the one that predicts it.
    """

    layer: int
    head: int | None = None
    shifted: bool = False

    def table_row(self) -> tuple[object, ...]:
        """Return layer, head and row in words, for tables."""
        return self.layer, self.head or "mean", "reads the word" if self.shifted else "predicts the word"

    def as_json(self) -> dict[str, Any]:
        """Return layer, head and row as a JSON object."""
        return {"layer": self.layer, "head": self.head, "shifted": self.shifted}


class SentencePair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str


class WordAligner:
    """Aligns the words of pairs by a model's cross-attention.

    Args:
        loaded: the model.
        files: of the sources and of the targets, for messages; None: these texts are in no file.

    Raises:
        RecipeError: the model has no cross-attention between pieces.
    """

    def __init__(self, loaded: LoadedModel, files: tuple[Path, Path] | None = None) -> None:
        self.num_heads = cross_attention_sizes(loaded)
        self.truncated_lines: set[int] = set()
        self._loaded = loaded
        self._files = files
        self._source_words, self._target_words = map(
            PieceToWordMapper, (loaded.source_tokenizer, loaded.target_tokenizer)
        )

    @property
    def has_trained_head(self) -> bool:
        """Whether a head of the model was trained to align."""
        return self._loaded.guided is not None

    def choose_head(self, layer: int | None = None, head: int | None = None, *, shifted: bool = False) -> AlignmentHead:
        """Return the head that is asked for; without any the one that was trained to align, or else the mean of the
        heads of the last layer.

        Args:
            layer: from 1.
            head: from 1; None: the mean of all.
            shifted: as of AlignmentHead.

        Raises:
            RecipeError: the model has no such layer or head.
        """
        layers, guided = len(self.num_heads), self._loaded.guided
        if layer is None and head is None and not shifted and guided is not None:
            return AlignmentHead(guided.choose_layer(layers), guided.head, guided.is_shifted)
        if head is not None and layer is None and layers > 1:
            raise RecipeError(f"--head {head}: give the layer too, with --layer 1 to {layers}")
        layer = layers if layer is None else layer
        if not 1 <= layer <= layers:
            raise RecipeError(f"--layer {layer}: the cross-attention has layers 1 to {layers}")
        if head is not None and not 1 <= head <= self.num_heads[layer - 1]:
            raise RecipeError(f"--head {head}: the cross-attention has heads 1 to {self.num_heads[layer - 1]}")
        return AlignmentHead(layer, head, shifted)

    def heads(self) -> list[AlignmentHead]:
        """All heads and the mean of each layer, by both rows."""
        return [
            AlignmentHead(layer, head, shifted)
            for layer, count in enumerate(self.num_heads, 1)
            for head in (None, *range(1, count + 1))
            for shifted in (False, True)
        ]

    def align(
        self,
        pairs: Sequence[SentencePair],
        heads: Sequence[AlignmentHead],
        first_line: int = 1,
        *,
        truncate: bool = False,
    ) -> list[list[Links]]:
        """Return the links of each pair by each of some heads.

        Args:
            pairs: the texts.
            heads: of which each gives links.
            first_line: the number of the first pair, for messages.
            truncate: whether the words behind the pieces that the model reads have no links, in place of an error.

        Raises:
            DataError: a text has more pieces than the model reads.
        """
        return [
            [link_by_argmax(weights) for weights in matrices]
            for matrices in self.attention_weights(pairs, heads, first_line, truncate=truncate)
        ]

    def attention_weights(
        self,
        pairs: Sequence[SentencePair],
        heads: Sequence[AlignmentHead],
        first_line: int = 1,
        *,
        truncate: bool = False,
    ) -> list[list[Weights]]:
        """Return the attention (words of the target, words of the source) of each pair by each of some heads.

        Args:
            pairs: the texts.
            heads: of which each gives attention.
            first_line: the number of the first pair, for messages.
            truncate: whether the words behind the pieces that the model reads are left out, in place of an error.

        Raises:
            DataError: a text has more pieces than the model reads.
        """
        sources, targets = (
            tokenizer.encode_batch([pair[side] for pair in pairs])
            for side, tokenizer in enumerate((self._loaded.source_tokenizer, self._loaded.target_tokenizer))
        )
        limit = self._loaded.model.max_length - 1
        if truncate:
            lengths = enumerate(map(max, map(len, sources), map(len, targets)), first_line)
            self.truncated_lines.update(line for line, length in lengths if length > limit)
            sources, targets = ([ids[:limit] for ids in side] for side in (sources, targets))
        self._check_lengths(sources, targets, first_line)
        attentions: list[list[Weights]] = [[np.zeros((0, 0)) for _ in heads] for _ in pairs]
        rows = [row for row in range(len(pairs)) if sources[row] and targets[row]]
        for number, layers in cross_attentions(
            self._loaded, [sources[row] for row in rows], [targets[row] for row in rows]
        ):
            row = rows[number]
            target_words = self._target_words.word_indices(targets[row], pairs[row].target)
            source_words = self._source_words.word_indices(sources[row], pairs[row].source)
            attentions[row] = [
                attention_between_words(_select_target_rows(layers[head.layer - 1], head), target_words, source_words)
                for head in heads
            ]
        return attentions

    def _check_lengths(self, sources: list[list[int]], targets: list[list[int]], first_line: int) -> None:
        limit = self._loaded.model.max_length - 1
        for row, ids in enumerate(zip(sources, targets, strict=True)):
            for number, pieces in enumerate(ids):
                if len(pieces) > limit:
                    problem = (
                        f"the {('source', 'target')[number]} has {len(pieces)} pieces and the model reads at most "
                        f"{limit}: shorten it"
                    )
                    if self._files is None:
                        raise DataError(problem)
                    raise DataError(problem, file=self._files[number], line=first_line + row)


def _select_target_rows(weights: Weights, head: AlignmentHead) -> Weights:
    """The attention (T, S) of the rows that ask for each piece of the target, of weights (H, T + 1, S)."""
    head_weights: Weights = weights.mean(0) if head.head is None else weights[head.head - 1]
    return head_weights[1:] if head.shifted else head_weights[:-1]


def link_by_argmax(weights: Weights) -> Links:
    """Link each word of the target to the word of the source with the most attention, the first of equals.

    Args:
        weights: (words of the target, words of the source).
    """
    if not weights.size:
        return frozenset()
    best = weights.argmax(1)
    return frozenset((int(source), target) for target, source in enumerate(best) if weights[target, source] > 0)


def align_chunks(
    aligner: WordAligner,
    pairs: Iterator[SentencePair],
    head: AlignmentHead,
    chunk_pairs: int,
    *,
    truncate: bool = False,
) -> Iterator[Links]:
    """Yield the links of each pair, in order, reading some pairs at a time.

    Args:
        aligner: the model.
        pairs: the texts.
        head: the attention that aligns.
        chunk_pairs: how many are read at once.
        truncate: as of WordAligner.align.
    """
    first = 1
    while chunk := list(islice(pairs, chunk_pairs)):
        yield from (links for (links,) in aligner.align(chunk, [head], first, truncate=truncate))
        first += len(chunk)
