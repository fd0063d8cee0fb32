"""The word of each piece of a text, and attention between words.

Legend: H heads · T pieces of the target · S pieces of the source · V words of the target · W words of the source.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.config import GuidedAlignmentConfig
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

NO_WORD = -1
UNKNOWN_MARK = "\N{REPLACEMENT CHARACTER}"
"""The word, or the letter, in place of a piece that is unknown; it is unknown itself when a text is read."""
Weights = NDArray[np.float64]


class PieceToWordMapper:
    """The words, which are what stands between spaces, of the pieces of a tokenizer's texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._control_ids = tokenizer.control_ids
        self._surfaces: dict[int, str] = {}
        self._unknown = f" {UNKNOWN_MARK}" if tokenizer.word_start_mask()[UNK_ID] else UNKNOWN_MARK

    def decode_marking_unknown(self, ids: Sequence[int]) -> str:
        """Return the text of ids as decoding gives it, but with a mark in place of each unknown piece."""
        if UNK_ID not in ids:
            return self._tokenizer.decode(ids)
        return "".join(map(self._surface, ids)).strip()

    def word_indices(self, ids: Sequence[int], text: str) -> list[int]:
        """Return the place of the word, from 0, of each piece of a text; NO_WORD for tokens that are of none.

        Normalizing may make several words of one (NFKC has a space in "´", BERT around each character of Chinese) or
        none of one that is invisible, and a part of a word may be unknown.

        Args:
            ids: of the text.
            text: the text, whose words are counted.
        """
        indices, word, is_inside = [], NO_WORD, False
        for number in ids:
            first = NO_WORD
            for character in self._surface(number):
                if character.isspace():
                    is_inside = False
                    continue
                word += not is_inside
                is_inside = True
                first = word if first == NO_WORD else first
            indices.append(NO_WORD if number in self._control_ids else max(first, word if is_inside else first))
        if word + 1 == len(text.split()):
            return indices
        indices_by_spans = self._word_indices_by_spans(ids, text)
        return self._word_indices_by_decoding(ids, text) if indices_by_spans is None else indices_by_spans

    def _surface(self, token_id: int) -> str:
        surface = self._surfaces.get(token_id)
        if surface is None:
            special = token_id < len(SPECIAL_TOKENS) or token_id in self._control_ids
            surface = "" if special else self._tokenizer.surface(token_id)
            surface = self._unknown if token_id == UNK_ID else surface
            self._surfaces[token_id] = surface
        return surface

    def _word_indices_by_spans(self, ids: Sequence[int], text: str) -> list[int] | None:
        """The same by the characters that each piece stands for; None if the text has other pieces."""
        spans = self._tokenizer.encode_spans(text)
        num_prefix_ids = len(self._tokenizer.encode(text)) - len(spans)
        spans = spans[: len(ids) - num_prefix_ids]
        if [number for number, _, _ in spans] != [*ids[num_prefix_ids:]]:
            return None
        ends = [(start, max(end, start + 1)) for _, start, end in spans]
        return [NO_WORD] * num_prefix_ids + [
            NO_WORD if text[start:end].isspace() else len(text[:end].split()) - 1 for start, end in ends
        ]

    def _word_indices_by_decoding(self, ids: Sequence[int], text: str) -> list[int]:
        """The same for a tokenizer that joins pieces in other ways, by decoding each beginning of the text."""
        normalize = self._tokenizer.normalize
        places = [place for place, word in enumerate(text.split()) for _ in normalize(word).split()]
        beginnings = (self._tokenizer.decode(ids[: position + 1]) for position in range(len(ids)))
        counts = [min(len(each.split()), len(places)) for each in beginnings]
        return [places[count - 1] if count else NO_WORD for count in counts]


def alignment_weights(layers: Sequence[Weights], guided: GuidedAlignmentConfig | None) -> Weights:
    """Return the attention (T, S) from each piece of the target, of the rows that ask for it: of the head that was
    trained to align, or else the mean of all heads, of the rows that predict the pieces.

    Args:
        layers: the weights (H, T + 1, S) of each layer of cross-attention.
        guided: how a head was trained to align; None if none was.
    """
    if guided is None:
        mean: Weights = np.mean([layer.mean(0) for layer in layers], axis=0)
        return mean[:-1]
    head_weights: Weights = layers[guided.choose_layer(len(layers)) - 1][guided.head - 1]
    return head_weights[1:] if guided.is_shifted else head_weights[:-1]


def attention_between_words(weights: Weights, target_words: Sequence[int], source_words: Sequence[int]) -> Weights:
    """Return (.., V, W): the attention to a word is the sum over its pieces, that from a word the mean over its pieces.

    Args:
        weights: (.., T, S) between pieces.
        target_words: (T,) the word of each piece.
        source_words: (S,) the word of each piece.
    """
    source_matrix = _piece_word_matrix(source_words)
    target_matrix = _piece_word_matrix(target_words)
    target_matrix = target_matrix / np.maximum(target_matrix.sum(0), 1)
    attention: Weights = target_matrix.T @ weights @ source_matrix
    return attention


def _piece_word_matrix(words: Sequence[int]) -> Weights:
    """(pieces, words) 1 where a piece is of a word."""
    numbers = np.asarray(words, np.int64)
    is_in: Weights = (numbers[:, None] == np.arange(int(numbers.max(initial=NO_WORD)) + 1)).astype(np.float64)
    return is_in
