"""Clusters of languages: what k-means ends in, and what it is to find."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.tokenizer.allocation.fingerprints import cluster_languages, farthest_first_centers, inertia, vocabulary_vectors

NORTH, SOUTH = {" og": -3.0, " der": -4.0, "e": -2.0}, {" और": -3.0, "क": -2.5, "ा": -2.0}


def test_a_fingerprint_has_a_number_for_the_pieces_of_the_language_alone() -> None:
    found = vocabulary_vectors({"a": {"x": -3.0, "z": -1.0}, "b": {"y": -2.0}})
    assert found.tolist() == [[3.0, 0.0, 1.0], [0.0, 2.0, 0.0]]


def test_languages_that_share_pieces_are_together() -> None:
    vocabularies = {
        "dan": NORTH | {" ikke": -5.0},
        "hin": SOUTH | {" है": -3.0},
        "mar": SOUTH | {" आहे": -3.0},
        "nob": NORTH | {" også": -6.0},
    }
    assert cluster_languages(vocabularies, 2) == [["dan", "nob"], ["hin", "mar"]]
    assert sorted(map(len, cluster_languages(vocabularies, 3))) == [1, 1, 2]
    assert cluster_languages(vocabularies, 4) == [["dan"], ["hin"], ["mar"], ["nob"]]


def test_languages_with_the_same_pieces_are_never_apart() -> None:
    assert cluster_languages({"a": NORTH, "b": NORTH, "c": SOUTH}, 3) == [["a", "b"], ["c"]]
    assert cluster_languages({"a": NORTH}, 2) == [["a"]]


VECTORS = st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=3, max_size=6)


@settings(max_examples=60)
@given(VECTORS, st.integers(2, 3))
@pytest.mark.slow
def test_each_language_is_nearest_to_its_own_cluster(rows: list[list[int]], count: int) -> None:
    """What k-means ends in: each language is nearest to the mean of its own cluster, and it is no worse than its start.
    Of every clustering there is none tighter than the least that is possible."""
    named = {str(number): row for number, row in enumerate(rows)}
    vocabularies = {name: {str(at): -float(value) for at, value in enumerate(row)} for name, row in named.items()}
    vectors = vocabulary_vectors(vocabularies)
    found = cluster_languages(vocabularies, count)
    assert sorted(name for cluster in found for name in cluster) == sorted(vocabularies)
    labels = np.array([next(at for at, cluster in enumerate(found) if name in cluster) for name in vocabularies])
    best = min(inertia(vectors, np.array(each)) for each in product(range(count), repeat=len(rows)))
    assert inertia(vectors, labels) >= best - 1e-9
    means = np.array([vectors[labels == label].mean(0) for label in range(len(found))])
    distances = np.square(vectors[:, None] - means[None]).sum(2)
    assert (distances[np.arange(len(rows)), labels] <= distances.min(1) + 1e-9).all()
    centres = farthest_first_centers(vectors, 0, count)
    nearest = np.square(vectors[:, None] - centres[None]).sum(2).argmin(1)
    assert inertia(vectors, labels) <= inertia(vectors, nearest) + 1e-9


def test_the_centres_to_begin_with_are_far_apart() -> None:
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0], [0.0, 5.0]])
    assert farthest_first_centers(vectors, 0, 3).tolist() == [[0.0, 0.0], [9.0, 0.0], [0.0, 5.0]]
    assert inertia(vectors, np.array([0, 0, 1, 2])) == pytest.approx(0.5)
