"""Alignments of words: their numbers are no texts, in whatever form links are written."""

import re
from collections.abc import Sequence
from itertools import pairwise

LINK = r"[0-9]+[-?p][0-9]+(?::[0-9.e-]+)?"
LINKS_PATTERN = re.compile(rf"{LINK}(?: {LINK})* ?(?:\|\|\| .*)?")
"""The links of a pair, perhaps with probabilities or, behind them, a score."""
NUMBERED_LINKS_PATTERN = re.compile(rf"(?P<pair>[0-9]+)[ \t]+{LINK}(?:[ \t]+{LINK})*")
LINK_PATTERN = re.compile(r"(?P<pair>[0-9]+)[ \t]+[0-9]+[ \t]+[0-9]+(?P<kind>[ \t]+[SPsp])?(?:[ \t]+[0-9.]+)?")
"""A link, as of NAACL 2003."""
SENT_PATTERN = re.compile(r"SENT: [0-9]+\n(?:[SP] [0-9]+ [0-9]+(?:\n|\Z))+")
MIN_NUMBERED_LINES = 3
REASON = (
    "holds links of words by their numbers, not texts: give it to tfm align or training.guided_alignment; if they "
    "are texts (scores of games), write both into the columns of a TSV, as by paste"
)
SENT_REASON = (
    "holds links of words by their numbers, not texts: write those of a pair in a line for tfm align, as by awk "
    """'/^SENT/ {if (count++) print line; line = ""; next} """
    """NF {line = line (line == "" ? "" : " ") $2 ($1 == "P" ? "p" : "-") $3} END {print line}' FILE"""
)


def links_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts, but links of words: of a pair each, perhaps with its number, or a link each; None if they
    may be texts.

    A line of three numbers may be a text, unless the first is filled up with zeros; so may lines of one link each.

    lines: the first of a file.
    """
    if SENT_PATTERN.match("\n".join(lines)) is not None:
        return SENT_REASON
    rows = [line.strip() for line in lines if line.strip()]
    if len(lines) < 2 or not rows:
        return None
    if all(map(LINKS_PATTERN.fullmatch, rows)):
        return REASON if any(" " in row for row in rows) else None
    links = [LINK_PATTERN.fullmatch(row) for row in rows]
    if len(rows) > 1 and None not in links:
        is_marked = all(match is not None and match["kind"] for match in links)
        is_padded = all(row.startswith("0") for row in rows) and _are_ordered(links)
        return REASON if is_marked or (is_padded and len(rows) >= MIN_NUMBERED_LINES) else None
    numbered = [NUMBERED_LINKS_PATTERN.fullmatch(row) for row in rows]
    if None in numbered or len(rows) < MIN_NUMBERED_LINES or all(len(row.split()) < 3 for row in rows):
        return None
    return REASON if _are_ordered(numbered, are_distinct=True) else None


def _are_ordered(matches: Sequence[re.Match[str] | None], *, are_distinct: bool = False) -> bool:
    """Whether pairs have numbers that grow from 0 or 1. are_distinct: whether each has a line of its own."""
    pairs = [int(match["pair"]) for match in matches if match is not None]
    return pairs[0] in (0, 1) and all(
        before < after or (before == after and not are_distinct) for before, after in pairwise(pairs)
    )
