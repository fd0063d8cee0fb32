"""WordPiece by likelihood: the two pieces are joined whose union makes the text likeliest; and by a ratio of counts.

A text of N pieces, each as probable as it is frequent, has by a unigram model

    log L = sum over pieces x of c(x) log(c(x) / N) = sum of f(c(x)) - f(N),        f(n) = n log n.

Joining a and b at n places takes n from c(a), c(b) and N, and gives n to c(ab) ("the combination that increases the
likelihood on the training data the most", Schuster and Nakajima 2012). With a ratio of counts instead, c(ab) / (c(a)
c(b)), pairs are ranked by their pointwise mutual information (Church and Hanks 1990), as in the WordPiece of Hugging
Face's course (chapter 6): rare pieces that are only found together come first.
"""

from collections.abc import Callable, Iterator
from math import fsum, log, log1p

from tfm.tokenizer.merges.piece_counts import Pair, PieceCounts, best_merges, merged_piece

MIN_GAIN = 5e-324  # nats; the least number above 0: a join that gains nothing is none


def count_ratio(counts: PieceCounts, pair: Pair) -> float:
    """c(ab) / (c(a) c(b))."""
    left, right = pair
    return counts.pairs[pair] / (counts.pieces[left] * counts.pieces[right])


def likelihood_gain(counts: PieceCounts, pair: Pair) -> float:
    """Return the gain of the text's log L by a join, in nats: the exact difference of log L after and before it."""
    left, right = pair
    union, num_merges = counts.union(left, right), counts.num_merges(pair)
    falls = {left: 2 * num_merges} if left == right else {left: num_merges, right: num_merges}
    # "##" and "##a" make "##a", which also continues words: it stays as frequent
    rise = num_merges - falls.pop(union, 0)
    gains = [_log_likelihood_drop(counts.pieces.get(union, 0) + rise, rise)] if rise else []
    losses = [_log_likelihood_drop(counts.pieces[piece], fall) for piece, fall in falls.items()]
    return fsum([*gains, *(-loss for loss in losses), _log_likelihood_drop(counts.num_pieces, num_merges)])


def _log_likelihood_drop(count: int, decrease: int) -> float:
    """f(count) - f(count - fall), without the loss of digits that a difference of large numbers has."""
    new_count = count - decrease
    return decrease * log(count) - new_count * log1p(-decrease / count) if new_count else count * log(count)


def best_merges_by_ratio(counts: PieceCounts, min_frequency: int, min_score: float) -> Iterator[str]:
    """Yield the piece made by joining the pair of the highest ratio, again and again; one may be made more than once.

    Ends where no pair occurs `min_frequency` times and has a ratio of at least `min_score`.

    Args:
        counts: the counts of pieces and pairs, which each join changes.
        min_frequency: the least number of occurrences of a pair.
        min_score: the least ratio of a pair.
    """
    return _pieces_by_best_merges(counts, count_ratio, min_frequency, min_score)


def best_merges_by_likelihood(counts: PieceCounts, min_frequency: int, min_gain: float) -> Iterator[str]:
    """Yield the piece made by joining the pair that raises log L most, again and again, as long as one raises it.

    A gain rises between joins only for pairs that a join changes: it grows with N, and N falls.

    Args:
        counts: the counts of pieces and pairs, which each join changes.
        min_frequency: the least number of occurrences of a pair.
        min_gain: the least gain in nats.
    """
    return _pieces_by_best_merges(counts, likelihood_gain, min_frequency, max(min_gain, MIN_GAIN))


def _pieces_by_best_merges(
    counts: PieceCounts, score: Callable[[PieceCounts, Pair], float], min_frequency: int, min_score: float
) -> Iterator[str]:
    merges = best_merges(counts, lambda pair: score(counts, pair), min_frequency, min_score)
    return (merged_piece(*pair) for pair in merges)
