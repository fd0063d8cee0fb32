"""Words as pieces, counted, and the pairs of neighbors that are joined one after another, the best first."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby

from tfm.tokenizer.special import CONTINUATION_PREFIX

Pair = tuple[str, str]


def merged_piece(left: str, right: str) -> str:
    """The piece that two neighbors of a word make; `right` is a continuation."""
    return left + right.removeprefix(CONTINUATION_PREFIX)


class PieceCounts:
    """Words as pieces, with the counts of pieces and of neighbors, which each join changes where it happens.

    num_pieces: pieces in all words.

    Args:
        words: the pieces of each distinct word, and the number of times that it was seen.
        union: the piece that two make.
    """

    def __init__(self, words: Mapping[tuple[str, ...], int], union: Callable[[str, str], str] = merged_piece) -> None:
        self.union = union
        self._words = [list(pieces) for pieces in words]
        self._times = list(words.values())
        self.pieces: defaultdict[str, int] = defaultdict(int)
        self.pairs: defaultdict[Pair, int] = defaultdict(int)
        # numbers of the words that have or had a pair
        self._word_ids_by_pair: defaultdict[Pair, set[int]] = defaultdict(set)
        self._pairs_by_piece: defaultdict[str, set[Pair]] = defaultdict(set)
        self._pairs_by_union: defaultdict[str, set[Pair]] = defaultdict(set)  # pairs that make a piece
        self._twins: dict[Pair, int] = {}  # joins of a piece with itself, where they were counted
        self.num_pieces = sum(len(pieces) * times for pieces, times in words.items())
        for number, word in enumerate(self._words):
            for piece in word:
                self.pieces[piece] += self._times[number]
            for left, right in zip(word, word[1:], strict=False):
                self._add_pair(left, right, number)

    def num_merges(self, pair: Pair) -> int:
        """The number of places where a join makes one piece of the two: of a run of a piece, every second one."""
        left, right = pair
        if left != right or pair not in self.pairs:
            return self.pairs.get(pair, 0)
        if pair not in self._twins:
            self._twins[pair] = sum(
                self._times[word_id] * _count_adjacent_repeats(self._words[word_id], left)
                for word_id in self._word_ids_by_pair[pair]
            )
        return self._twins[pair]

    def join(self, left: str, right: str) -> set[Pair]:
        """Make one piece of the two wherever they are neighbors, from the left; the pairs whose score may change."""
        new = self.union(left, right)
        for number in self._word_ids_by_pair.pop((left, right)):
            word, times, index = self._words[number], self._times[number], 0
            while left in word[index:-1]:
                index = word.index(left, index)
                if word[index + 1] == right:
                    self._merge_pair(index, new, number)
                    self.pieces[left] -= times
                    self.pieces[right] -= times
                    self.pieces[new] += times
                    self.num_pieces -= times
                index += 1
        return (
            self._pairs_by_piece[left]
            | self._pairs_by_piece[right]
            | self._pairs_by_piece[new]
            | self._pairs_by_union[new]
        )

    def _merge_pair(self, index: int, new: str, word_id: int) -> None:
        word = self._words[word_id]
        left, right = word[index : index + 2]
        self._remove_pair(left, right, word_id)
        if index > 0:
            self._remove_pair(word[index - 1], left, word_id)
            self._add_pair(word[index - 1], new, word_id)
        if index + 2 < len(word):
            self._remove_pair(right, word[index + 2], word_id)
            self._add_pair(new, word[index + 2], word_id)
        word[index : index + 2] = [new]

    def _add_pair(self, left: str, right: str, word_id: int) -> None:
        pair = left, right
        self.pairs[pair] += self._times[word_id]
        self._word_ids_by_pair[pair].add(word_id)
        self._pairs_by_piece[left].add(pair)
        self._pairs_by_piece[right].add(pair)
        self._pairs_by_union[self.union(left, right)].add(pair)
        self._twins.pop(pair, None)

    def _remove_pair(self, left: str, right: str, word_id: int) -> None:
        pair = left, right
        self.pairs[pair] -= self._times[word_id]
        self._twins.pop(pair, None)
        if not self.pairs[pair]:
            del self.pairs[pair]
            self._pairs_by_piece[left].discard(pair)
            self._pairs_by_piece[right].discard(pair)
            self._pairs_by_union[self.union(left, right)].discard(pair)


def _count_adjacent_repeats(word: Sequence[str], piece: str) -> int:
    """The number of joins of a piece with itself in a word, from the left."""
    return sum(len(list(run)) // 2 for each, run in groupby(word) if each == piece)


def best_merges(
    counts: PieceCounts, score: Callable[[Pair], float], min_frequency: int, min_score: float
) -> Iterator[Pair]:
    """Yield the pair of the highest score, again and again, each joined after it was given.

    Ends where no pair occurs `min_frequency` times and has a score of at least `min_score`. Among equal scores the more
    frequent pair comes first, then the one spelled first. A score may fall between joins, and rise only for the pairs
    that a join changes.

    Args:
        counts: the counts of pieces and pairs, kept up to date by the joins.
        score: the score of a pair.
        min_frequency: the least number of occurrences of a pair.
        min_score: the least score of a pair.
    """

    def heap_entry(pair: Pair) -> tuple[float, int, Pair]:
        return -score(pair), -counts.pairs[pair], pair

    # A pair has one valid entry: the score that it had when it was looked at last, which is at least what it has now.
    valid = {pair: heap_entry(pair) for pair, count in counts.pairs.items() if count >= min_frequency}
    heap = list(valid.values())
    heapify(heap)
    while heap:
        best = heappop(heap)
        pair = best[-1]
        if valid.get(pair) != best:
            continue
        if counts.pairs.get(pair, 0) < min_frequency:
            del valid[pair]
            continue
        if best != (entry := heap_entry(pair)):
            valid[pair] = entry
            heappush(heap, entry)
            continue
        if -best[0] < min_score:
            return
        del valid[pair]
        yield pair
        for changed in counts.join(*pair):
            if counts.pairs[changed] >= min_frequency and valid.get(changed) != (entry := heap_entry(changed)):
                valid[changed] = entry
                heappush(heap, entry)
        if len(heap) > 4 * len(valid) + 1000:
            heap = list(valid.values())
            heapify(heap)
