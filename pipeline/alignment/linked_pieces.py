"""Which pieces of a target are the translations of each piece of a source, counted over the links of training pairs.

Legend: S vocabulary of the source · V of the target · K pieces of a source piece · A pieces of every sentence.
"""

from dataclasses import dataclass

import numpy as np

from tfm.data.arrays import Ints
from tfm.data.dataset.split import Split
from tfm.pipeline.alignment.piece_links import PieceLinks
from tfm.pipeline.decoding.shortlist import NO_PIECE, Shortlist
from tfm.tokenizer.special import SPECIAL_TOKENS

ROWS_PER_COUNT = 1 << 16


def learn_shortlist(
    links: PieceLinks, train: Split, vocab_sizes: tuple[int, int], num_linked: int, num_frequent: int
) -> Shortlist:
    """Return the target pieces that are linked most often to each source piece, and the most frequent ones.

    Among equals the lower id comes first.

    Args:
        links: of the training pairs.
        train: the training pairs.
        vocab_sizes: S and V.
        num_linked: K.
        num_frequent: pieces of every sentence beside the control tokens.
    """
    _, target_size = vocab_sizes
    keys, counts = _count_links(links, train, target_size)
    source, target = keys // target_size, keys % target_size
    order = np.lexsort((target, -counts, source))
    source, target = source[order], target[order]
    ranks = np.arange(len(source)) - np.searchsorted(source, source)
    is_linked = ranks < num_linked
    width = min(num_linked, int(ranks.max(initial=0)) + 1)  # no wider than any row, however many may be kept
    table = np.full((vocab_sizes[0], width), NO_PIECE, np.int32)
    table[source[is_linked], ranks[is_linked]] = target[is_linked]
    frequent = _count_pieces(train, target_size)
    order = np.lexsort((np.arange(target_size), -frequent))[:num_frequent]
    always = np.union1d(np.arange(len(SPECIAL_TOKENS)), order[frequent[order] > 0]).astype(np.int32)
    return Shortlist(table, always, target_size)


def _count_links(links: PieceLinks, train: Split, target_size: int) -> tuple[Ints, Ints]:
    """Return the pairs of linked pieces, each as source * V + target, ascending, and the number of their links."""
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for first in range(0, len(links), ROWS_PER_COUNT):
        rows = np.arange(first, min(first + ROWS_PER_COUNT, len(links)))
        pair_indices, target_indices, source_indices = links.links_of_rows(rows)
        (source, source_lengths), (target, target_lengths) = train.source.take(rows), train.target.take(rows)
        source_starts, target_starts = (np.cumsum(each) - each for each in (source_lengths, target_lengths))
        pair_keys = source[source_starts[pair_indices] + source_indices].astype(np.int64) * target_size
        pair_keys += target[target_starts[pair_indices] + target_indices]
        new_keys, new_counts = np.unique(pair_keys, return_counts=True)
        keys, inverse = np.unique(np.concatenate([keys, new_keys]), return_inverse=True)
        counts = np.bincount(inverse, np.concatenate([counts, new_counts]), len(keys)).astype(np.int64)
    return keys, counts


def _count_pieces(split: Split, vocab_size: int) -> Ints:
    """Return (V,) the number of times that each piece of the target occurs."""
    counts = np.zeros(vocab_size, np.int64)
    for first in range(0, len(split), ROWS_PER_COUNT):
        ids, _ = split.target.take(np.arange(first, min(first + ROWS_PER_COUNT, len(split))))
        counts += np.bincount(ids, minlength=vocab_size)
    return counts


@dataclass(frozen=True)
class ShortlistCoverage:
    """How much of some translations a shortlist lets through.

    Args:
        pieces: share of their pieces that are candidates of their sentences.
        sentences: share of the sentences of which all pieces are.
        mean_size: mean number of candidates of a sentence.
    """

    pieces: float
    sentences: float
    mean_size: float


def measure_coverage(shortlist: Shortlist, split: Split) -> ShortlistCoverage:
    """Measure a shortlist on pairs of texts."""
    candidates = [shortlist.candidates(split.source[row].tolist()) for row in range(len(split))]
    is_candidate = [np.isin(split.target[row], each) for row, each in enumerate(candidates)]
    rows, pieces = max(len(split), 1), max(sum(map(len, is_candidate)), 1)
    return ShortlistCoverage(
        pieces=sum(int(each.sum()) for each in is_candidate) / pieces,
        sentences=sum(bool(each.all()) for each in is_candidate) / rows,
        mean_size=sum(map(len, candidates)) / rows,
    )
