"""Transcripts with the name of each utterance on its line, as Kaldi and sclite have them: no word of what was said."""

import re
from collections.abc import Sequence

MIN_LINES_JUDGED = 3
NAMES_BY_PLACE = {
    "begins with": re.compile(
        r"(?=\S*\d)(?=\S*[^\W\d]|\S*\d-)(\S+)(?:\s.*)?", re.DOTALL
    ),  # utt_0001 HELLO WORLD: a `text` of Kaldi
    "ends in": re.compile(r".*?(\(\S*\d\S*\))\s*", re.DOTALL),  # hello world (utt_0001): a .trn
}


def identifier_warning(hypotheses: Sequence[str], references: Sequence[str]) -> str | None:
    """A warning that all lines of both sides begin with, or end in, names that are the same; None if they do not.

    Names have a digit and a letter, `_` or `-` (numbers have none), and no two lines have the same.
    """
    if len(references) < MIN_LINES_JUDGED:
        return None
    for place, pattern in NAMES_BY_PLACE.items():
        given, wanted = (_line_names(lines, pattern) for lines in (hypotheses, references))
        if wanted is None or given is None or {*given} != {*wanted} or len({*wanted}) < len(wanted):
            continue
        each = f"each line {place} a name ({wanted[0]:.40}), which counts as a word"
        if given != wanted:
            return f"{each}, and the hypotheses are in another order than the references: sort both, and cut the names"
        return f"{each}: cut it from both files"
    return None


def _line_names(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str] | None:
    found = []
    for line in lines:
        if (match := pattern.fullmatch(line)) is None:
            return None
        found.append(match[1])
    return found
