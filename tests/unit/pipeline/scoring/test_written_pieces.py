"""Hypotheses in pieces or with escapes are warned of."""

import pytest

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
