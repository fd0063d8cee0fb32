"""VoCap against its definition: likelihoods by trying every segmentation, sizes by trying every allocation."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.tokenizer.allocation.capacity import (
    LanguageVocabulary,
    allocate_vocabularies,
    average_log_probability,
    weighted_alp,
)

PIECES = {"a": -1.0, "b": -1.5, "म": -1.25, "ab": -2.0, "ba": -3.0, "aba": -3.1, " a": -2.2, " ": -1.1}


def segmentations(word: str) -> Iterator[list[str]]:
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in PIECES:
            yield from ([word[:end], *rest] for rest in segmentations(word[end:]))


@given(st.dictionaries(st.text("abम ", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=6))
def test_alp_is_that_of_the_best_segmentation_of_each_word(words: dict[str, int]) -> None:
    likeliest = {
        word: max(segmentations(word), key=lambda found: sum(map(PIECES.__getitem__, found))) for word in words
    }
    text = [piece for word, times in words.items() for piece in likeliest[word] * times]
    counts = Counter(text)
    expected = sum(math.log(counts[piece] / len(text)) for piece in text) / 7
    assert average_log_probability(words, 7, PIECES) == pytest.approx(expected, abs=1e-9)


def test_longer_pieces_make_text_likelier() -> None:
    words = {" der": 50, " den": 30, " dem": 20}
    letters = dict.fromkeys(" dernm", -2.0)
    assert average_log_probability(words, 10, letters | {" de": -1.0}) > average_log_probability(words, 10, letters)
    assert average_log_probability(words, 20, letters) == pytest.approx(average_log_probability(words, 10, letters) / 2)


def test_a_language_of_few_texts_counts_for_more_than_its_share() -> None:
    assert weighted_alp(0.1, -10.0) / weighted_alp(0.9, -10.0) == pytest.approx((1 / 9) ** 0.7)


GAINS = st.lists(st.floats(0.01, 10), min_size=6, max_size=6).map(lambda gains: sorted(gains, reverse=True))


@given(st.lists(GAINS, min_size=2, max_size=3), st.integers(3, 12))
def test_of_gains_that_shrink_the_greedy_allocation_is_the_best_there_is(gains: list[list[float]], size: int) -> None:
    """Each step is one piece of the language's own, so that the union is the sum of all."""
    size = min(size, 6 * len(gains))

    def at(language: int, steps: int) -> LanguageVocabulary:
        pieces = {f"{language} {number}": -1.0 for number in range(min(steps, 6))}
        return LanguageVocabulary(pieces, sum(gains[language][: len(pieces)]))

    found = allocate_vocabularies(
        {str(each): lambda steps, each=each: at(each, steps) for each in range(len(gains))}, size
    )
    assert sum(len(each.pieces) for each in found.values()) == size
    best = max(
        sum(sum(gain[:steps]) for gain, steps in zip(gains, all_steps, strict=True))
        for all_steps in product(range(7), repeat=len(gains))
        if sum(all_steps) == size
    )
    assert sum(each.term for each in found.values()) == pytest.approx(best)


def test_pieces_that_languages_share_are_counted_once_and_too_few_end_it() -> None:
    def at(steps: int) -> LanguageVocabulary:
        return LanguageVocabulary({str(number): -1.0 for number in range(min(2 * steps, 10))}, float(steps))

    found = allocate_vocabularies({"a": at, "b": at}, 6)
    assert len({piece for each in found.values() for piece in each.pieces}) == 6
    assert {len(each.pieces) for each in allocate_vocabularies({"a": at, "b": at}, 50).values()} == {10}
    assert allocate_vocabularies({}, 6) == {}
