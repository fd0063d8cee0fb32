"""Languages that share their words, found by their lexical fingerprints (Chung et al. 2020, Liang et al. 2023).

The fingerprint of a language has a number for each piece that any language has: -log p(piece) where it is in the
language's own unigram vocabulary, else 0. (Chung et al. have 1 in place of -log p.) k-means clusters them:

    argmin over clusterings C of sum over clusters c, sum over languages i in c, |v_i - mean of c|^2
"""

import warnings
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]
MAX_KMEANS_ITERATIONS = 100


def vocabulary_vectors(vocabularies: Mapping[str, Mapping[str, float]]) -> Vectors:
    """(languages, pieces) the fingerprint of each language, by the log probabilities of its own pieces."""
    pieces = sorted({piece for vocabulary in vocabularies.values() for piece in vocabulary})
    rows = [[-vocabulary.get(piece, 0.0) for piece in pieces] for vocabulary in vocabularies.values()]
    return np.array(rows, np.float64)


def cluster_languages(vocabularies: Mapping[str, Mapping[str, float]], count: int) -> list[list[str]]:
    """The languages in so many clusters, or fewer where languages have the same fingerprint; in the languages' order.

    No draw is in it: k-means starts once from each language, the other centres each as far as can be from those before
    (Gonzalez 1985), and of what it ends in the best is taken.
    """
    from scipy.cluster.vq import kmeans2  # here, not at the top: it takes long to load

    vectors = vocabulary_vectors(vocabularies)
    best, best_inertia = np.zeros(len(vectors), np.int64), np.inf
    for first in range(len(vectors)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of clusters that lost all their languages: then there are fewer
            _, labels = kmeans2(
                vectors, farthest_first_centers(vectors, first, count), iter=MAX_KMEANS_ITERATIONS, minit="matrix"
            )
        if (spread := inertia(vectors, labels)) < best_inertia - 1e-9:
            best, best_inertia = labels, spread
    clusters: dict[int, list[str]] = {}
    for language, label in zip(vocabularies, best.tolist(), strict=True):
        clusters.setdefault(label, []).append(language)
    return [*clusters.values()]


def farthest_first_centers(vectors: Vectors, start: int, count: int) -> Vectors:
    """(count, pieces) the vector of a row, and in turn the one that is farthest from all before; fewer where none is
    left that differs."""
    chosen = [start]
    distances = np.square(vectors - vectors[start]).sum(1)
    while len(chosen) < count and distances.max() > 0:
        chosen.append(int(distances.argmax()))
        distances = np.minimum(distances, np.square(vectors - vectors[chosen[-1]]).sum(1))
    return vectors[chosen]


def inertia(vectors: Vectors, labels: NDArray[np.integer]) -> float:
    """The sum over all vectors of the squared distance from the mean of their cluster."""
    parts = (vectors[labels == label] for label in np.unique(labels))
    return float(sum(np.square(part - part.mean(0)).sum() for part in parts))
