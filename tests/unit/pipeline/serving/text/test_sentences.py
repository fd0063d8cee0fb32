"""Long text: nothing between sentences is lost, no sentence is longer than a model reads, lines stay lines."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sentencex")

from tfm.pipeline.serving.text.long_sentences import cut_sentence
from tfm.pipeline.serving.text.segments import TextSegments
from tfm.pipeline.serving.text.sentences import split_text

LANGUAGES = (None, "en", "de", "deu_Latn", "ja", "hy", "my", "el", "xx")
ODD = st.sampled_from(
    [
        "\ufeff",
        "\u200f",
        "\u202e",
        "\n",
        "\r\n",
        "\x85",
        "\u2028",
        "\xa0",
        " ",
        "A",
        ".",
        "! ",
        "。",
        "\x00",
        "\ud800",
        "é",
        "3",
        "'",
    ]
)
TEXTS = st.one_of(st.text(), st.lists(ODD).map("".join))


def short(text: str) -> bool:
    return len(text.split()) <= 4 and len(text) <= 20


@given(TEXTS, st.sampled_from(LANGUAGES), st.booleans())
def test_joined_sentences_are_the_text(text: str, language: str | None, has_wrapped_lines: bool) -> None:
    for fits in (None, short):
        found = split_text(text, language, fits=fits, has_wrapped_lines=has_wrapped_lines)
        assert found.join(found.sentences) == text
        assert len(found.separators) == len(found.sentences) + 1
        assert all(sentence == sentence.strip() != "" for sentence in found.sentences)


@given(TEXTS)
def test_no_sentence_is_longer_than_a_model_reads(text: str) -> None:
    assert all(map(short, split_text(text, "en", fits=short).sentences))


@given(TEXTS)
def test_all_that_can_be_read_is_in_a_sentence(text: str) -> None:
    separators = split_text(text, None, fits=short).separators
    assert not any(character.isalnum() for character in "".join(separators))


@pytest.mark.parametrize(
    ("text", "language", "sentences"),
    [
        ("Mr. Smith ran. Why?", "en", ["Mr. Smith ran.", "Why?"]),
        ("Er kam am 3. Mai. Dann ging Dr. Müller.", "de", ["Er kam am 3. Mai.", "Dann ging Dr. Müller."]),
        ("Er kam am 3. Mai. Dann ging Dr. Müller.", "deu_Latn", ["Er kam am 3. Mai.", "Dann ging Dr. Müller."]),
        ("今日は。元気ですか？", "ja", ["今日は。", "元気ですか？"]),
        ("Save\nOpen file\n\n  Quit", None, ["Save", "Open file", "Quit"]),
        ("• one\n---\n2", None, ["• one", "2"]),
        ("\ufeffA dog.", "en", ["A dog."]),
        ("\u200f\u202bA dog. \u202c\u200f\n\u2067Two.\u2069", "en", ["A dog.", "Two."]),
        ("\u200e\ufeff", "en", []),
        ("", "en", []),
        (" \n ", "en", []),
    ],
)
def test_sentences(text: str, language: str | None, sentences: list[str]) -> None:
    assert list(split_text(text, language).sentences) == sentences


def test_translations_take_the_places_of_lines_and_keep_their_breaks() -> None:
    menu = "Save\r\n\r\n\tOpen file \nQuit\n"
    found = split_text(menu, "en")
    assert found.join(["Sichern", "Datei öffnen", "Beenden"]) == "Sichern\r\n\r\n\tDatei öffnen \nBeenden\n"


def test_wrapped_lines_end_no_sentence_where_that_is_asked() -> None:
    found = split_text("A dog\nruns. It\nbarks.\n\nA cat", "en", has_wrapped_lines=True)
    assert found.sources == ["A dog runs.", "It barks.", "A cat"]
    assert found.join(["1.", "2.", "3"]) == "1. 2.\n\n3"


@pytest.mark.parametrize(
    ("translations", "expected"),
    [
        (["Today.", "Are you well?"], "Today. Are you well?"),
        (["今天。", "你好吗？"], "今天。你好吗？"),
        (["Today", "Are you well?"], "Today Are you well?"),
        (["", "Well?"], "Well?"),
    ],
)
def test_a_space_is_put_where_the_language_of_the_translations_needs_one(
    translations: list[str], expected: str
) -> None:
    assert split_text("今日は。元気ですか？", "ja").join(translations) == expected


def test_each_sentence_needs_one_translation() -> None:
    with pytest.raises(ValueError):
        TextSegments(("a", "b"), ("", " ", "")).join(["x"])


def test_a_long_sentence_is_cut_at_clauses_and_that_is_said() -> None:
    text = "one two three; four five six, seven eight nine ten. Short."
    found = split_text(text, "en", fits=lambda part: len(part.split()) <= 5)
    assert found.sentences == ("one two three;", "four five six,", "seven eight nine ten.", "Short.")
    assert found.indices_of_cut_sentences == {0, 1}


def test_characters_of_several_code_points_stay_whole() -> None:
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    parts = cut_sentence(family * 10, lambda text: len(text) <= 12)
    assert parts == [family * 2] * 5


def test_five_thousand_words_without_a_full_stop_are_all_there_and_soon() -> None:
    text = " ".join(f"word{number}" for number in range(5000))
    asked = 0

    def fits(part: str) -> bool:
        nonlocal asked
        asked += len(part)
        return len(part.split()) <= 100

    start = time.perf_counter()
    found = split_text(text, "en", fits=fits)
    assert time.perf_counter() - start < 5
    assert " ".join(found.sentences) == text
    assert len(found.sentences) == 50
    assert asked < 30 * len(text)  # the work grows with the text, not with its square


@given(TEXTS, st.sampled_from(LANGUAGES))
def test_borders_are_those_of_the_sentences_and_of_their_translations(text: str, language: str | None) -> None:
    found = split_text(text, language, fits=short)
    translations = [f"<{number}>{'!' * (number % 3)}" for number in range(len(found.sentences))]
    joined, borders = found.join(translations), found.borders(translations)
    assert [text[each.source_start : each.source_end] for each in borders] == list(found.sentences)
    assert [joined[each.target_start : each.target_end] for each in borders] == translations
