"""Hypotheses in pieces, with escapes or with characters that nobody sees are warned of."""

import pytest

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.evaluation.text_warnings import hypothesis_warnings, reference_warnings
from tfm.pipeline.scoring.evaluation.written_pieces import written_pieces_warning

TEXTS = ["unbelievable it's", "a house", "two houses", "x & y"]


@pytest.mark.parametrize(
    ("hypotheses", "said"),
    [
        (
            ["un@@ believ@@ able it's", "a hou@@ se", "two hou@@ ses", "x"],
            "3 of 4 hypotheses hold pieces of subword",
        ),
        (
            ["\u2581un believ able", "\u2581a \u2581house", "\u2581x", "\u2581y"],
            "4 of 4 hypotheses hold pieces of Sen",
        ),
        (["it &apos;s", "&quot; a &quot;", "x &amp; y", "x"], "3 of 4 hypotheses hold Moses' escapes"),
    ],
)
def test_pieces_and_escapes_are_warned_of(hypotheses: list[str], said: str) -> None:
    warning = written_pieces_warning(hypotheses, TEXTS)
    assert warning is not None
    assert warning.startswith(said)
    assert written_pieces_warning(hypotheses, hypotheses) is None


def test_texts_are_not() -> None:
    assert written_pieces_warning(TEXTS, TEXTS) is None
    assert written_pieces_warning(["me@@home", "a@@b c", "x@@y", "@@"], TEXTS) is None
    assert written_pieces_warning(["un@@ able", "a", "b", "c"], TEXTS) is None


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\r", "\x7f", "\x85", "\ufeff", "\ufffd"])
def test_characters_that_nobody_sees_are_warned_of_where_a_side_lacks_them(character: str) -> None:
    config = EvaluationConfig()
    damaged = [TEXTS[0], f"a{character} house", *TEXTS[2:]]
    (warning,) = hypothesis_warnings(damaged, [TEXTS], config, {})
    assert warning.startswith("1 of 4 hypotheses have ")
    assert f"(U+{ord(character):04X}, the first in line 2)" in warning
    assert hypothesis_warnings(damaged, [damaged], config, {}) == []
    assert any(each.startswith("1 of 4 references have ") for each in reference_warnings([TEXTS, damaged], config))


@pytest.mark.parametrize(
    "text", ["a\tb", "\u1780\u200b\u1780", "\U0001f469\u200d\U0001f52c", "a\u00a0\u2028b", "\u200fab"]
)
def test_tabs_joiners_and_marks_of_direction_are_text(text: str) -> None:
    assert hypothesis_warnings([text], [["a b"]], EvaluationConfig(), {}) == []
    assert reference_warnings([[text]], EvaluationConfig()) == []


def test_blank_hypotheses_are_warned_of_where_their_reference_is_not() -> None:
    config = EvaluationConfig()
    (warning,) = hypothesis_warnings(["", " ", "a", ""], [["a b", "b c", "c d", ""]], config, {})
    assert warning.startswith("2 of 4 hypotheses are blank, where references have text")
    assert hypothesis_warnings(["a", ""], [["a b", " "]], config, {}) == []
    assert len(hypothesis_warnings(["a", ""], [["a b", " "], ["", "b"]], config, {})) == 1


@pytest.mark.parametrize(
    "text", ["我爱北京天安门，天安门上太阳升。", "私は東京に行きますが、猫は家にいます。", "สวัสดีชาวโลกหนังสือเล่มใหม่"]
)
def test_word_error_rates_of_lines_without_spaces_are_warned_of(text: str) -> None:
    """WER was the share of wrong lines, unsaid, where chrF++ is a dash."""
    config = EvaluationConfig(metrics=["wer", "cer"])
    (warning,) = reference_warnings([[text, text]], config)
    assert warning.startswith("wer counts what stands between white space, which holds 0 % of the references' letters")
    for other in (config.model_copy(update={"words": "line"}), EvaluationConfig(metrics=["cer"])):
        assert reference_warnings([[text]], other) == []
    assert reference_warnings([[" ".join(text), "a dog", "안녕하세요 세계 새로운 책이"]], config) == []
