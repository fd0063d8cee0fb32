"""Words by the company they keep: contexts and counts as loops find them, and P(o | c) as its equation."""

import math
import random
from collections import Counter
from typing import Any

import pytest

import tfm
from tests.tiny_model import tiny_model
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.inference.neighbours import WordVectors
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.words import concordance
from tfm.pipeline.words.concordance import (
    Occurrence,
    count_neighbours,
    count_vectors,
    find_occurrences,
    one_hot_vectors,
)
from tfm.pipeline.words.neighbour_probability import neighbour_probability

TEXT = [
    "government debt problems turning into banking crises as happened in 2009",
    "saying that Europe needs unified banking regulation to replace the hodgepodge",
    "",
    "India has just given its banking system a shot in the arm",
]


def test_a_word_in_its_contexts() -> None:
    found = list(find_occurrences(TEXT, "banking", 2))
    assert found == [
        Occurrence(1, ("turning", "into"), "banking", ("crises", "as")),
        Occurrence(2, ("needs", "unified"), "banking", ("regulation", "to")),
        Occurrence(4, ("given", "its"), "banking", ("system", "a")),
    ]
    assert next(find_occurrences(TEXT, "saying", 2)).left == ()
    assert count_neighbours(found)["crises"] == 1
    assert sum(count_neighbours(found).values()) == 12


@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_counts_are_those_of_loops_over_the_text(window: int) -> None:
    draw = random.Random(window)
    lines = [" ".join(draw.choices("abcdefg", k=draw.randint(0, 9))) for _ in range(30)]
    found = count_vectors(lines, window)
    for word in found.rows:
        counted = Counter[str]()
        for line in lines:
            words = line.split()
            for i, center in enumerate(words):
                for j, other in enumerate(words):
                    counted[other] += center == word and 0 < abs(i - j) <= window
        assert {other: found[word][row] for other, row in found.rows.items()} == {
            other: counted[other] for other in found.rows
        }
        assert counted == +count_neighbours(find_occurrences(lines, word, window)) or not counted.total()


def test_only_frequent_words_have_vectors_and_all_take_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word without a vector still stands between those that have one."""
    monkeypatch.setattr(concordance, "MAX_WORDS", 2)
    found = count_vectors(["a a x b b", "a y"], 1)
    assert list(found.rows) == ["a", "b"]
    assert found.vectors.tolist() == [[2, 0], [0, 2]]


def test_one_hot_vectors_know_no_likeness() -> None:
    words = one_hot_vectors(["hotel motel hotel inn"])
    assert [each.cosine for each in words.nearest(words["hotel"], 2, exclude=("hotel",))] == [0, 0]
    assert float(words["motel"] @ words["motel"]) == 1
    with pytest.raises(RecipeError, match="the text has no vector for 'hotell'; it has 'hotel', 'motel'"):
        words["hotell"]
    with pytest.raises(DataError, match="the text has no words"):
        one_hot_vectors(["", " "])


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_the_probability_of_a_neighbour_is_its_equation(architecture: str) -> None:
    loaded = tiny_model(architecture=architecture, task="word_vectors", embedding_dim=5)
    model: Any = loaded.model
    u, v = (each.detach().double().numpy() for each in (model.output.weight, model.table.weight))
    (c,), (o,) = (loaded.target_tokenizer.encode(word) for word in ("dog", "sea"))
    found = neighbour_probability(loaded, "dog", "sea")
    scores = [math.fsum(u[w] * v[c]) for w in range(len(u))]
    assert found.dot == pytest.approx(scores[o], rel=1e-5)
    assert found.probability == pytest.approx(math.exp(scores[o]) / math.fsum(map(math.exp, scores)), rel=1e-5)
    words = WordVectors.from_model(loaded, "source").rows
    each = [neighbour_probability(loaded, "dog", word) for word in words]
    assert sorted(one.rank for one in each) == [*range(1, len(words) + 1)]
    assert 0.1 < sum(one.probability for one in each) < 1
    assert not math.isclose(found.probability, neighbour_probability(loaded, "sea", "dog").probability)


def test_a_translator_has_no_u_and_v() -> None:
    with pytest.raises(DataError, match="was trained for translation"):
        neighbour_probability(tiny_model(), "dog", "sea")
    with pytest.raises(RecipeError, match="no vector for 'dogg'; it has 'dog'"):
        neighbour_probability(tiny_model(architecture="skip_gram", task="word_vectors", embedding_dim=5), "sea", "dogg")


def test_in_python_the_same_is_had_of_texts() -> None:
    assert tfm.concordance(TEXT, "banking", 2) == list(find_occurrences(TEXT, "banking", 2))
    assert (tfm.count_vectors(TEXT, 2).vectors == count_vectors(TEXT, 2).vectors).all()
    assert (tfm.count_vectors(TEXT, one_hot=True).vectors == one_hot_vectors(TEXT).vectors).all()
    wrong: list[tuple[Any, Any]] = [(5, "a"), (TEXT, 5), ([1], "a")]
    for texts, word in wrong:
        with pytest.raises(TypeError):
            tfm.concordance(texts, word)
    with pytest.raises(RecipeError, match=r"window \(0\) must be at least 1"):
        tfm.count_vectors(TEXT, 0)
    model = tfm.Model(tiny_model(architecture="skip_gram", task="word_vectors", embedding_dim=5), NullReporter())
    assert model.neighbour_probability("dog", "sea") == neighbour_probability(model._loaded, "dog", "sea")
