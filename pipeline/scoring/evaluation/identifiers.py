"""Names of utterances in the lines of transcripts, as Kaldi and sclite have them, which are not words of the text."""

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
    for position, pattern in NAMES_BY_PLACE.items():
        names, reference_names = (_line_names(lines, pattern) for lines in (hypotheses, references))
        if (
            reference_names is None
            or names is None
            or {*names} != {*reference_names}
            or len({*reference_names}) < len(reference_names)
        ):
            continue
        problem = f"each line {position} a name ({reference_names[0]:.40}), which counts as a word"
        if names != reference_names:
            return (
                f"{problem}, and the hypotheses are in another order than the references: sort both, and cut the names"
            )
        return f"{problem}: cut it from both files"
    return None


def _line_names(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str] | None:
    names = []
    for line in lines:
        if (match := pattern.fullmatch(line)) is None:
            return None
        names.append(match[1])
    return names
