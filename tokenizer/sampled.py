"""Segmentations drawn at random, as regularisation in training: the pieces of a text change, the text does not.

BPE-dropout (Provilkov et al. 2020, algorithm 1): at each step of a word every possible merge is left out with
probability p, and of the others the one learned first is done; a word is ready when none is left.

Unigram sampling (Kudo 2018, section 3): a segmentation x of a word is drawn with P(x)^a / sum over x' of P(x')^a, among
all that there are (forward filtering, backward sampling).

Both start from ids, whose pieces spell the text. Draws are hashes of a key for each row, with no generator: what a row
becomes does not depend on the rows beside it. Shapes: R rows, W words, N ids of all rows.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.words import FlatIds

Ints = NDArray[np.int64]
RandomKeys = NDArray[np.uint64]
UNKNOWN_CODE_POINT = 10  # the "letter" of an unknown piece: a line break, which normalized text has none of
MAX_LATTICE_STATES = 1 << 20
_GOLDEN, _FIRST, _SECOND = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
_NO_RANK = np.iinfo(np.int64).max


class SegmentationSampler(Protocol):
    """Draws other ids (N',) and lengths (R,) for ids (N,) and lengths (R,) of rows, each with its key (R,)."""

    def __call__(self, ids: NDArray[np.int32], lengths: Ints, keys: RandomKeys) -> FlatIds: ...


def hash_numbers(keys: RandomKeys, numbers: Ints | RandomKeys) -> RandomKeys:
    """Well-spread 64 bits of each key with each number (splitmix64, Steele et al. 2014)."""
    mixed: RandomKeys = keys + (numbers.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


@dataclass(frozen=True)
class RowWords:
    """The words of some rows.

    Args:
        letters: code points of all words, end to end.
        begins: (W,) the index in `letters` at which each word begins.
        lengths: (W,) letters of each word.
        rows: (W,) the row of each word.
        keys: (W,) the key of each word.
    """

    letters: Ints
    begins: Ints
    lengths: Ints
    rows: Ints
    keys: RandomKeys


class TokenIdWordSplitter:
    """The text that each piece of a vocabulary spells, from which follow the words that ids form.

    Words are those of the kinds `bpe` and `unigram`: " ?letters+ | ?digits+ | ?anything else".
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        texts = [chr(UNKNOWN_CODE_POINT) if number == UNK_ID else piece for number, piece in enumerate(pieces)]
        self._lengths = np.array([len(each) for each in texts], np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._letters = np.array([ord(letter) for text in texts for letter in text], np.int64)
        # 0: a letter or its mark, 1: a digit, 2: a space, 3: anything else
        self._kinds = np.zeros(int(self._letters.max(initial=0)) + 1, np.int8)
        for letter in np.unique(self._letters).tolist():
            kind = {"L": 0, "M": 0, "N": 1}.get(unicodedata.category(chr(letter))[0], 3)
            self._kinds[letter] = {ord(" "): 2, UNKNOWN_CODE_POINT: 0}.get(letter, kind)

    def words(self, ids: NDArray[np.int32], lengths: Ints, keys: RandomKeys) -> RowWords:
        """Return the words of texts, each with a key made of its row's and its place there.

        Args:
            ids: (N,) of all texts.
            lengths: (R,) tokens of each text.
            keys: (R,) of each text.
        """
        sizes = self._lengths[ids]
        ends = np.cumsum(sizes)
        letters = self._letters[np.arange(sizes.sum()) + np.repeat(self._starts[ids] - (ends - sizes), sizes)]
        row_indices = np.repeat(np.repeat(np.arange(len(lengths)), lengths), sizes)
        kinds = self._kinds[letters]
        previous_kinds, begin = kinds[:-1], np.ones(len(letters), np.bool_)
        is_boundary = (kinds[1:] == 2) | (
            (previous_kinds != 2) & ((previous_kinds != kinds[1:]) | (previous_kinds == 3))
        )
        begin[1:] = is_boundary | (row_indices[1:] != row_indices[:-1])
        begins = np.flatnonzero(begin)
        rows = row_indices[begins]
        word_indices = np.arange(len(begins)) - np.searchsorted(rows, rows)
        return RowWords(
            letters, begins, np.diff(begins, append=len(letters)), rows, hash_numbers(keys[rows], word_indices)
        )


class BpeDropout:
    """BPE in which every possible merge is left out at random, each time that it could be done.

    Args:
        pieces: by id.
        merges: in the order in which they were learned.
        drop: the probability that a merge is left out.
    """

    def __init__(self, pieces: Sequence[str], merges: Sequence[tuple[str, str]], drop: float) -> None:
        number = {piece: index for index, piece in enumerate(pieces)}
        self._spelling, self._size, self._drop = TokenIdWordSplitter(pieces), len(pieces), np.uint64(int(drop * 2**64))
        self._letter_ids = {ord(piece): index for piece, index in number.items() if len(piece) == 1}
        self._letter_ids[UNKNOWN_CODE_POINT] = UNK_ID
        pairs = np.array([number[left] * self._size + number[right] for left, right in merges], np.int64)
        self._ranks = np.argsort(pairs, kind="stable")
        self._pairs = pairs[self._ranks]
        self._merged_ids = np.array([number[left + right] for left, right in merges], np.int64)
        self._ids = np.full(max(self._letter_ids) + 1, UNK_ID, np.int64)
        self._ids[list(self._letter_ids)] = list(self._letter_ids.values())

    def __call__(self, ids: NDArray[np.int32], lengths: Ints, keys: RandomKeys) -> FlatIds:
        words = self._spelling.words(ids, lengths, keys)
        pieces, counts = self._ids[words.letters], words.lengths.copy()
        # words of about the same length are rows of one table
        for min_length in (2**power for power in range(1, int(words.lengths.max(initial=1)).bit_length())):
            word_indices = np.flatnonzero((words.lengths >= min_length) & (words.lengths < 2 * min_length))
            if len(word_indices):
                columns = np.arange(min(2 * min_length - 1, int(words.lengths[word_indices].max())))
                indices = words.begins[word_indices, None] + columns
                is_inside = columns < words.lengths[word_indices, None]
                table = np.where(is_inside, pieces[np.minimum(indices, len(pieces) - 1)], -1)
                self._apply_merges(table, words.keys[word_indices])
                pieces[indices[is_inside]] = table[is_inside]
                counts[word_indices] = (table >= 0).sum(1)
        is_kept = np.arange(len(pieces)) - np.repeat(words.begins, words.lengths) < np.repeat(counts, words.lengths)
        return pieces[is_kept].astype(np.int32), np.bincount(words.rows, counts, len(lengths)).astype(np.int64)

    def _apply_merges(self, table: Ints, keys: RandomKeys) -> None:
        """Merge the letters of each row (-1: nothing more) of a table in place, all words at once, step by step."""
        active, current = np.arange(len(table)), table.copy()
        ranks = np.full(table.shape, _NO_RANK)
        ranks[:, :-1] = self._merge_ranks(current[:, :-1], current[:, 1:])
        columns, step = np.arange(table.shape[1]), 0
        while len(active):
            rows, merge_columns = np.nonzero(ranks != _NO_RANK)
            is_dropped = hash_numbers(keys[active[rows]], (step << 32) + merge_columns) < self._drop
            allowed_ranks = ranks.copy()
            allowed_ranks[rows[is_dropped], merge_columns[is_dropped]] = _NO_RANK
            positions = allowed_ranks.argmin(1)
            rank = allowed_ranks[np.arange(len(active)), positions]
            is_already_evaluated = rank == _NO_RANK
            table[active[is_already_evaluated]] = current[is_already_evaluated]
            active, current, ranks, positions, rank = (
                array[~is_already_evaluated] for array in (active, current, ranks, positions, rank)
            )
            self._merge_at(current, ranks, positions, rank, columns)
            step += 1

    def _merge_at(self, current: Ints, ranks: Ints, positions: Ints, merge_ranks: Ints, columns: Ints) -> None:
        """One merge in each row, at its place."""
        rows = np.arange(len(current))
        source_columns = np.minimum(columns + (columns > positions[:, None]), len(columns) - 1)
        current[:], ranks[:] = (
            np.take_along_axis(current, source_columns, 1),
            np.take_along_axis(ranks, source_columns, 1),
        )
        current[:, -1], ranks[:, -1] = -1, _NO_RANK
        current[rows, positions] = self._merged_ids[merge_ranks]
        ranks[rows, positions] = self._merge_ranks(current[rows, positions], current[rows, positions + 1])
        ranks[rows, positions - 1] = np.where(
            positions > 0,
            self._merge_ranks(current[rows, positions - 1], current[rows, positions]),
            ranks[rows, positions - 1],
        )

    def _merge_ranks(self, left: Ints, right: Ints) -> Ints:
        """The rank at which each pair was learned to be merged; _NO_RANK if it was not."""
        pairs = np.where(right < 0, -1, left * self._size + right)
        indices = np.minimum(np.searchsorted(self._pairs, pairs), len(self._pairs) - 1)
        return np.where(self._pairs[indices] == pairs, self._ranks[indices], _NO_RANK)


class UnigramSampling:
    """Segmentations drawn by their probability to the power of `alpha`.

    Args:
        pieces: by id.
        scores: the log-probability of each piece.
        alpha: the exponent.
    """

    def __init__(self, pieces: Sequence[str], scores: Sequence[float], alpha: float) -> None:
        self._spelling = TokenIdWordSplitter(pieces)
        self._ids = {piece: number for number, piece in enumerate(pieces) if number > 3}
        self._ids[chr(UNKNOWN_CODE_POINT)] = UNK_ID
        self._scores = [alpha * score for score in scores]
        self._scores[UNK_ID] = 0.0
        self._longest = max(map(len, self._ids))
        self._reset_lattices()

    def _reset_lattices(self) -> None:
        """A state is a place in a distinct word, after its first letters; its edges are the pieces that may end there.

        `_cumulative` has the probabilities of a state's edges added up, on top of the state's number.
        """
        self._ends: dict[str, int] = {}  # the state at the end of each word
        self._num_states = 0
        self._cumulative, self._piece, self._previous_states = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)

    def __call__(self, ids: NDArray[np.int32], lengths: Ints, keys: RandomKeys) -> FlatIds:
        words = self._spelling.words(ids, lengths, keys)
        text = words.letters.astype("<u4").tobytes().decode("utf-32-le")
        ends = zip(words.begins.tolist(), (words.begins + words.lengths).tolist(), strict=True)
        state = self._lattice_end_states([text[begin:end] for begin, end in ends])
        active = np.arange(len(state))
        draws: list[tuple[Ints, Ints]] = []
        while len(active):
            # 32 bits: with the number of a state before them, exact in float64
            draw = (hash_numbers(words.keys[active], np.full(len(active), len(draws))) >> np.uint64(32)) / 2**32
            edge = np.searchsorted(self._cumulative, state + draw, side="right")
            draws.append((active, self._piece[edge]))
            state = self._previous_states[edge]
            active, state = active[state >= 0], state[state >= 0]
        counts = np.zeros(len(words.begins), np.int64)
        for word_indices, _ in draws:
            counts[word_indices] += 1
        pieces, last = np.empty(counts.sum(), np.int32), np.cumsum(counts) - 1
        for back, (word_indices, piece) in enumerate(draws):
            pieces[last[word_indices] - back] = piece
        return pieces, np.bincount(words.rows, counts, len(lengths)).astype(np.int64)

    def _lattice_end_states(self, words: list[str]) -> Ints:
        """The state at the end of each word (W,)."""
        if self._num_states > MAX_LATTICE_STATES:
            self._reset_lattices()
        new = [word for word in dict.fromkeys(words) if word not in self._ends]
        if new:
            edges = [edge for word in new for edge in self._lattice_edges(word)]
            cumulative, piece, previous_states = zip(*edges, strict=True)
            self._cumulative = np.concatenate([self._cumulative, cumulative])
            self._piece = np.concatenate([self._piece, np.array(piece, np.int64)])
            self._previous_states = np.concatenate([self._previous_states, np.array(previous_states, np.int64)])
        return np.fromiter(map(self._ends.__getitem__, words), np.int64, len(words))

    def _lattice_edges(self, word: str) -> list[tuple[float, int, int]]:
        """The edges of a word's states: (probabilities added up, piece, the state before it; -1: the beginning).

        log f(e) = log of the sum over all segmentations of the first e letters of their P^alpha.
        """
        first, log_f, edges = self._num_states, [0.0], []
        for end in range(1, len(word) + 1):
            incoming = []
            for begin in range(max(0, end - self._longest), end):
                number = self._ids.get(word[begin:end])
                if number is not None and log_f[begin] > -math.inf:
                    incoming.append((log_f[begin] + self._scores[number], number, begin))
            top = max((log_prob for log_prob, _, _ in incoming), default=-math.inf)
            total = sum(math.exp(log_prob - top) for log_prob, _, _ in incoming)
            log_f.append(top + math.log(total) if incoming else -math.inf)
            cumulative = 0.0
            for rank, (log_prob, number, begin) in enumerate(incoming, 1):
                cumulative = 1.0 if rank == len(incoming) else cumulative + math.exp(log_prob - top) / total
                edges.append((first + end - 1 + min(cumulative, 1.0), number, first + begin - 1 if begin else -1))
        self._num_states += len(word)
        self._ends[word] = self._num_states - 1
        return edges
