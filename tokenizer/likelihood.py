"""WordPiece as it was published: the two pieces are joined whose union makes the text likeliest.

In a text of N pieces, each as probable as it is frequent, writing ab for a b gains log p(ab) - log p(a) p(b) at each of
its c(ab) places. Pairs are therefore ranked by (Schuster and Nakajima 2012)

    score(a, b) = c(ab) / (c(a) c(b)),

which is p(ab) / (p(a) p(b)) but for the factor N that all pairs share.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from tfm.tokenizer.special import CONTINUATION_PREFIX

Pair = tuple[str, str]


def merged_piece(left: str, right: str) -> str:
    """The piece that two neighbors of a word make; `right` is a continuation."""
    return left + right.removeprefix(CONTINUATION_PREFIX)


class PieceCounts:
    """Words as pieces, with the counts of pieces and of neighbors, which each join changes where it happens.

    words: the pieces of each distinct word, and the number of times that it was seen. union: the piece that two make.
    """

    def __init__(self, words: Mapping[tuple[str, ...], int], union: Callable[[str, str], str] = merged_piece) -> None:
        self._union = union
        self._words = [list(pieces) for pieces in words]
        self._times = list(words.values())
        self.pieces: defaultdict[str, int] = defaultdict(int)
        self.pairs: defaultdict[Pair, int] = defaultdict(int)
        self._where: defaultdict[Pair, set[int]] = defaultdict(set)  # numbers of words that have or had the pair
        self._with: defaultdict[str, set[Pair]] = defaultdict(set)
        for number, word in enumerate(self._words):
            for piece in word:
                self.pieces[piece] += self._times[number]
            for left, right in zip(word, word[1:], strict=False):
                self._add(left, right, number)

    def score(self, pair: Pair) -> float:
        """c(ab) / (c(a) c(b))."""
        left, right = pair
        return self.pairs[pair] / (self.pieces[left] * self.pieces[right])

    def join(self, left: str, right: str) -> set[Pair]:
        """Make one piece of the two wherever they are neighbors, from the left; the pairs whose score may change."""
        new = self._union(left, right)
        for number in self._where.pop((left, right)):
            word, times, place = self._words[number], self._times[number], 0
            while left in word[place:-1]:
                place = word.index(left, place)
                if word[place + 1] == right:
                    self._join_at(place, new, number)
                    self.pieces[left] -= times
                    self.pieces[right] -= times
                    self.pieces[new] += times
                place += 1
        return self._with[left] | self._with[right] | self._with[new]

    def _join_at(self, place: int, new: str, number: int) -> None:
        word = self._words[number]
        left, right = word[place : place + 2]
        self._remove(left, right, number)
        if place > 0:
            self._remove(word[place - 1], left, number)
            self._add(word[place - 1], new, number)
        if place + 2 < len(word):
            self._remove(right, word[place + 2], number)
            self._add(new, word[place + 2], number)
        word[place : place + 2] = [new]

    def _add(self, left: str, right: str, number: int) -> None:
        pair = left, right
        self.pairs[pair] += self._times[number]
        self._where[pair].add(number)
        self._with[left].add(pair)
        self._with[right].add(pair)

    def _remove(self, left: str, right: str, number: int) -> None:
        pair = left, right
        self.pairs[pair] -= self._times[number]
        if not self.pairs[pair]:
            del self.pairs[pair]
            self._with[left].discard(pair)
            self._with[right].discard(pair)


def best_joins(counts: PieceCounts, min_frequency: int, min_score: float) -> Iterator[str]:
    """Yield the piece made by joining the pair of the highest score, again and again; one may be made more than once.

    Ends where no pair occurs `min_frequency` times and has a score of at least `min_score`.

    Args:
        counts: the counts of pieces and pairs, which each join changes.
        min_frequency: the least number of occurrences of a pair.
        min_score: the least score of a pair.
    """
    return (merged_piece(*pair) for pair in best_merges(counts, counts.score, min_frequency, min_score))


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

    def entry(pair: Pair) -> tuple[float, int, Pair]:
        return -score(pair), -counts.pairs[pair], pair

    # A pair has an entry for each score that it ever had; those of the past are passed over.
    heap = [entry(pair) for pair, count in counts.pairs.items() if count >= min_frequency]
    heapify(heap)
    while heap:
        best = heappop(heap)
        pair = best[-1]
        if pair not in counts.pairs or best != entry(pair):
            continue
        if -best[0] < min_score:
            return
        yield pair
        for changed in counts.join(*pair):
            if counts.pairs[changed] >= min_frequency:
                heappush(heap, entry(changed))
        if len(heap) > 4 * len(counts.pairs) + 1000:
            heap = [entry(each) for each, count in counts.pairs.items() if count >= min_frequency]
            heapify(heap)
