"""What is said of word vectors: neighbours by cosine, analogies, and the picture's two directions."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_model import tiny_model
from tfm.data.errors import DataError
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.neighbours import (
    MAX_WORDS_IN_PLOT,
    WordVectors,
    draw_word_plot,
    frequent_words_without_class,
    principal_components,
    read_word_classes,
)

WORDS = WordVectors(
    {"east": 1, "north": 2, "nine": 3, "west": 4, "up": 5},
    np.array([[9, 9, 9], [2, 0, 0], [0, 1, 0], [3, 1, 0], [-1, 0, 0], [0, 0, 0.5]], np.float32),
)


def test_the_nearest_are_those_of_the_largest_cosine() -> None:
    found = WORDS.nearest(WORDS["east"], 3, exclude=("east",))
    assert [each.word for each in found] == ["nine", "north", "up"]  # row 0 is no word
    assert [each.cosine for each in found] == pytest.approx([3 / 10**0.5, 0, 0])
    assert WORDS.nearest(WORDS["east"], 99)[-1].word == "west"
    assert len(WORDS.nearest(WORDS["east"], 99)) == 5


def test_an_analogy_is_a_sum_of_unit_vectors() -> None:
    vectors = np.array([[2, 0, 0], [2, 2, 0], [0, 0, 3], [0, 1, 1], [1, 0, 0.1]], np.float32)
    words = WordVectors({word: row for row, word in enumerate(("man", "woman", "king", "queen", "page"))}, vectors)
    (first, _) = words.analogies("man", "woman", "king", 9)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    target = units[1] - units[0] + units[2]
    assert first.word == "queen"
    assert first.cosine == pytest.approx(float(units[3] @ target / np.linalg.norm(target)))


def test_an_unknown_word_is_named_with_others_like_it() -> None:
    with pytest.raises(RecipeError, match="no vector for 'eats'; it has 'east'"):
        WORDS["eats"]
    with pytest.raises(RecipeError, match=r"no vector for 'zzz'$"):
        WORDS["zzz"]


@given(st.integers(2, 9), st.integers(1, 6), st.integers(0, 2**16))
def test_principal_components_are_those_of_the_covariance(num: int, width: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(num, width)).astype(np.float32)
    places, shares = principal_components(vectors)
    centred = vectors - vectors.mean(0, dtype=np.float64)
    variances = np.sort(np.linalg.eigvalsh(centred.T @ centred))[::-1][:2]
    assert (places**2).sum(0)[: len(variances)] == pytest.approx(variances, abs=1e-6)
    assert shares[: len(variances)] == pytest.approx(variances / (centred**2).sum(), abs=1e-6)
    assert places.sum(0) == pytest.approx([0, 0], abs=1e-6)
    assert abs(places[:, 0] @ places[:, 1]) < 1e-6
    again, _ = principal_components(vectors[::-1])
    assert again[::-1] == pytest.approx(places, abs=1e-5)  # directions have a sign of their own


def test_vectors_that_are_all_alike_have_a_picture() -> None:
    places, shares = principal_components(np.ones((3, 4), np.float32))
    assert (places == 0).all()
    assert (shares == 0).all()


@pytest.mark.parametrize(("kind", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_the_same_words_give_the_same_picture(kind: str, begins: bytes) -> None:
    shown = {"east": "side", "north": "side", "up": ""}
    once = draw_word_plot(WORDS, shown, kind)
    assert once.startswith(begins)
    assert once == draw_word_plot(WORDS, shown, kind)
    assert once != draw_word_plot(WORDS, {**shown, "up": "side"}, kind)
    if kind == ".svg":
        assert all(f">{text}<" in once.decode() for text in ("east", "north", "up", "side"))
        assert ">west<" not in once.decode()


def test_a_picture_of_pieces_shows_words() -> None:
    """Tokenizers that cut words number punctuation and their alphabet first."""
    pieces = [
        *".,!?()'-0123456789",
        *"aAbBzéяЖω",
        "—",
        "«",
        "...",
        "’s",
        "the",
        "Haus",
        "дом",
        "的",
        "ไป",
        "कि",
        "語",
        "ب",
    ]
    found = list(
        frequent_words_without_class(
            WordVectors({piece: row for row, piece in enumerate(pieces)}, np.eye(60, dtype=np.float32))
        )
    )
    assert found == ["’s", "the", "Haus", "дом", "的", "ไป", "कि", "語", "ب", *"aAbBzéяЖω"]
    many = [*pieces, *(f"w{number}" for number in range(MAX_WORDS_IN_PLOT))]
    found = list(
        frequent_words_without_class(
            WordVectors({piece: row for row, piece in enumerate(many)}, np.eye(200, dtype=np.float32))
        )
    )
    assert len(found) == MAX_WORDS_IN_PLOT
    assert "a" not in found
    with pytest.raises(RecipeError, match="two words or more, and the model has 1"):
        frequent_words_without_class(WordVectors({".": 0, "a": 1}, np.eye(2, dtype=np.float32)))


def test_strange_words_are_drawn_as_they_are() -> None:
    rows = {"$x_1$": 0, "语": 1, "<b>": 2}
    assert b"$x_1$" in draw_word_plot(WordVectors(rows, np.eye(3, dtype=np.float32)), dict.fromkeys(rows, ""), ".svg")


def test_classes_are_read_from_the_second_column(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("east\tside\n\nup\nnorth  side\n", encoding="utf-8")
    assert read_word_classes(file, WORDS) == {"east": "side", "up": "", "north": "side"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("east\neats side\n", "words.txt, line 2: the model has no vector for 'eats'; it has 'east'"),
        ("east a b\n", "words.txt, line 1: has 3 columns"),
        ("east a\n", "words.txt: a picture needs two words or more"),
    ],
    ids=["unknown", "columns", "one"],
)
def test_wrong_lists_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_word_classes(tmp_path / "words.txt", WORDS)


def test_words_of_a_model() -> None:
    loaded = tiny_model(tie="none")
    words = WordVectors.from_model(loaded, "source")
    assert len(words.vectors) == loaded.source_tokenizer.vocab_size
    assert words["sea"] == pytest.approx(words.vectors[words.rows["sea"]])


@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_word_vectors_have_two_vectors_of_each_word(architecture: str) -> None:
    """The probability of a word beside another is the softmax of u_o . v_c, by the two that are given."""
    loaded = tiny_model(architecture=architecture, task="word_vectors")
    usual, predicting, predicted = (WordVectors.from_model(loaded, side) for side in (None, "source", "target"))
    assert np.array_equal(usual.vectors, predicting.vectors)
    assert not np.array_equal(usual.vectors, predicted.vectors)
    rows = loaded.model.table(torch.tensor([usual.rows["sea"]]))
    assert predicted.vectors @ usual["sea"] == pytest.approx(loaded.model.output(rows)[0].detach().numpy(), abs=1e-6)
