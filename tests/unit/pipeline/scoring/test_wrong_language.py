"""The language of a text by its n-grams, beside the built-in corpus' vocabularies and the equation written out."""

import math
from collections import Counter
from random import Random

import pytest

from tfm.data.synthetic import languages
from tfm.pipeline.scoring.metrics.wrong_language import LanguageIdentifier, char_ngrams, wrong_language

SIZE = 400


@pytest.fixture(scope="module")
def train() -> dict[str, list[str]]:
    return said("train")


@pytest.fixture(scope="module")
def identifier(train: dict[str, list[str]]) -> LanguageIdentifier:
    return LanguageIdentifier(train)


def said(split: str) -> dict[str, list[str]]:
    meanings = list(languages.generate_meanings(split, SIZE, 1))
    return {code: [say(meaning) for meaning in meanings] for code, say in languages.SENTENCE_REALIZERS.items()}


def by_vocabulary(text: str, train: dict[str, list[str]]) -> str:
    """The language that has the most of its words."""
    words = {code: {word for each in texts for word in each.split()} for code, texts in train.items()}
    return max(words, key=lambda code: sum(word in words[code] for word in text.split()))


def test_finds_what_the_vocabularies_find(identifier: LanguageIdentifier, train: dict[str, list[str]]) -> None:
    for code, texts in said("test").items():
        found = [identifier.language_of(text) for text in texts]
        assert found == [code] * SIZE
        assert [by_vocabulary(text, train) for text in texts[:40]] == found[:40]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("THE QUEEN SEES THE DOG.", "eng"),
        ("die königin", "deu"),
        ("रानी", "hin"),
        ("", None),
        (" \u00a0", None),
        ("你好世界", None),
        ("שלום", None),
        ("المدرسة", None),
    ],
)
def test_capitals_other_scripts_and_no_text(identifier: LanguageIdentifier, text: str, language: str | None) -> None:
    assert identifier.language_of(text) == language


def test_is_naive_bayes_with_one_added_to_each_count() -> None:
    texts = {"aaa": ["abab", "ab"], "bbb": ["abc", "bcbc"]}
    identifier = LanguageIdentifier(texts)
    counts = {code: Counter(gram for text in some for gram in char_ngrams(text)) for code, some in texts.items()}
    known = {gram for seen in counts.values() for gram in seen}
    for text in ("ab", "abcb", "bc ab", "cab"):
        scores = {
            code: math.fsum(
                math.log((seen[gram] + 1) / (seen.total() + len(known))) for gram in char_ngrams(text) if gram in known
            )
            for code, seen in counts.items()
        }
        assert identifier.language_of(text) == max(scores, key=lambda code: scores[code])


def test_the_rate_counts_texts_in_other_languages_and_none_without_a_language(identifier: LanguageIdentifier) -> None:
    hypotheses = ["The cat sees a dog.", "Die Katze sieht einen Hund.", "", "你好"]
    asked = ["eng", "eng", "hin", "hin"]
    score = wrong_language(hypotheses, asked, identifier)
    assert score.score == 25
    assert score.signature.startswith("languages:deu+eng+hin|char-3-grams|")


def test_the_language_is_that_of_the_formula_written_out() -> None:
    """Languages of the same three letters, one with much less text than the other."""
    draw = Random(3)
    texts = {
        name: ["".join(draw.choices("abc", weights, k=6)) for _ in range(size)]
        for name, weights, size in (("one", (5, 2, 1), 4), ("two", (2, 3, 3), 60))
    }
    counts = {name: Counter(gram for text in some for gram in char_ngrams(text)) for name, some in texts.items()}
    size = len({gram for seen in counts.values() for gram in seen})

    def log_p(name: str, text: str) -> float:
        seen = counts[name]
        known = [gram for gram in char_ngrams(text) if any(gram in each for each in counts.values())]
        return math.fsum(math.log((seen[gram] + 1) / (seen.total() + size)) for gram in known)

    identifier, found = LanguageIdentifier(texts), set()
    for text in ("".join(draw.choices("abc", k=6)) for _ in range(300)):
        expected = "one" if log_p("one", text) > log_p("two", text) else "two"
        assert identifier.language_of(text) == expected
        found.add(expected)
    assert found == {"one", "two"}
