"""Names of utterances in the lines of transcripts, as Kaldi and sclite have them, and numbers of lines, which are not
words of the text.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

MIN_LINES_JUDGED = 3
MAX_STRAY_SHARE = 0.1
"""The share of the lines of a side without names that may begin with, or end in, what looks like one."""
CUTTING_COMMANDS: Mapping[str, str] = {"begins with": r"sed 's/^[^ ]* *//'", "ends in": r"sed 's/ *([^()]*) *$//'"}
NUMBERS_COMMAND = r"sed -E 's/^ *[0-9]+[.:)]?[ \t]+//'"
NUMBER_PATTERN = re.compile(r"\s*(\d{1,9})[.:)]?(?:\s|$)")
NAMES_BY_PLACE = {
    "begins with": re.compile(
        r"(?=\S*\d)(?=\S*[^\W\d]|\S*\d-)(\S+)(?:\s.*)?", re.DOTALL
    ),  # utt_0001 HELLO WORLD: a `text` of Kaldi
    "ends in": re.compile(r".*?(\(\S*\d\S*\))\s*", re.DOTALL),  # hello world (utt_0001): a .trn
}


def identifier_warnings(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that all lines of both sides, or of one alone, begin with, or end in, names or their numbers.

    Names have a digit and a letter, `_` or `-` (numbers have none), and no two lines have the same.
    """
    if len(references) < MIN_LINES_JUDGED:
        return []
    sides = {"hypotheses": hypotheses, "references": references}
    numbered = [side for side, lines in sides.items() if _are_numbered(lines)]
    warnings = [
        f"each line of the {side} begins with its number, which counts as a word: cut it, as by {NUMBERS_COMMAND}"
        for side in numbered
    ]
    for position, pattern in NAMES_BY_PLACE.items():
        names = {side: _line_names(lines, pattern) for side, lines in sides.items()}
        named = {side: each for side, each in names.items() if None not in each and len({*each}) == len(each)}
        if len(named) == len(sides):
            warnings += _warnings_of_both(position, named["hypotheses"], named["references"])
        for side, other in (("hypotheses", "references"), ("references", "hypotheses")):
            num_strays = sum(name is not None for name in names[other])
            if side in named and num_strays <= MAX_STRAY_SHARE * len(names[other]) and _has_further_text(sides[side]):
                problem = f"each line of the {side} {position} a name ({named[side][0]:.40}), which counts as a word"
                warnings.append(f"{problem}; the {other} have none: cut it, as by {CUTTING_COMMANDS[position]}")
    return warnings


def _warnings_of_both(position: str, names: Sequence[str | None], reference_names: Sequence[str | None]) -> list[str]:
    """A warning that both sides have the same names, or have them in another order; none if they have others."""
    if {*names} != {*reference_names}:
        return []
    problem = f"each line {position} a name ({reference_names[0]:.40}), which counts as a word"
    if names != reference_names:
        problem = f"{problem}, and the hypotheses are in another order than the references"
        return [f"{problem}: sort both, and cut the names"]
    return [f"{problem}: cut it from both files"]


def _are_numbered(lines: Sequence[str]) -> bool:
    """Whether each line begins with a number, by one more than the line before, and some have text behind it."""
    matches = [NUMBER_PATTERN.match(line) for line in lines]
    numbers = [None if match is None else int(match[1]) for match in matches]
    return _has_further_text(lines) and all(
        before is not None and number == before + 1 for before, number in pairwise(numbers)
    )


def _has_further_text(lines: Sequence[str]) -> bool:
    """Whether most lines have more than one word."""
    return 2 * sum(len(line.split(maxsplit=1)) > 1 for line in lines) > len(lines)


def _line_names(lines: Sequence[str], pattern: re.Pattern[str]) -> list[str | None]:
    """The part of each line where names stand; None if there is none."""
    return [None if (match := pattern.fullmatch(line)) is None else match[1] for line in lines]
