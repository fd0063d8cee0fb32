"""Words that users read: a change of any is seen, since all of them stand in one file; some words are none of ours."""

import re

import pytest

from tests.golden.messages import FILE, messages

UNCLEAR = (
    *("omit", "changes? nothing", "as it says", "undecided", "says nothing of", "is not told", "at all", "is none of"),
    *("no update from", "starts over", "stands before", "in whose place", "has no place in", "where it is left out"),
)
"""Words that must be read twice; `remove it`, `has no effect` and `inconclusive` say the same."""


def test_every_message_stands_in_the_golden_file() -> None:
    """After a change on purpose `python -m tests.golden.messages` writes it anew."""
    assert messages() == FILE.read_text("utf-8").splitlines()


@pytest.mark.parametrize("words", UNCLEAR)
def test_no_message_has_words_that_are_read_twice(words: str) -> None:
    unclear = re.compile(rf"\b{words}\b")
    assert [
        message for message in FILE.read_text("utf-8").splitlines() if unclear.search(message.partition(": ")[2])
    ] == []


def test_no_message_has_a_verb_that_is_right_for_several_alone() -> None:
    """ "1 of 5 lines have": `format_share` chooses the verb."""
    plural = re.compile(r"\{…\} of (the )?\{…\} ([a-z{…}-]+ )?[a-z]+s (are|do|have|were)\b")
    several = [message for message in FILE.read_text("utf-8").splitlines() if plural.search(message)]
    assert several == []
