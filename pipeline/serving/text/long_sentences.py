"""A sentence that is longer than a model reads, cut where it hurts least."""

from collections.abc import Callable

import regex

_GRAPHEME = regex.compile(r"\X")
_CUT_PATTERNS = (
    regex.compile(r"[;:；：؛…—–]+[\p{Pe}\p{Pf}\"']*\s*"),
    regex.compile(r"(?:[,，、،](?!\d)|\s-(?=\s)|[)\]])+[\p{Pe}\p{Pf}\"']*\s*"),
    regex.compile(r"\s+"),
)
"""Ends of clauses, then of phrases, then of words: a cut is made after one of the first kind that comes late enough."""
MIN_CUT_SHARE = 0.5
"""The share of the longest beginning that fits, from which on a better border is preferred."""
INITIAL_CHUNK_CHARS = 256


def cut_sentence(sentence: str, fits: Callable[[str], bool]) -> list[str]:
    """Cut a sentence into parts that fit, which joined are the sentence; a single character is never cut.

    Args:
        sentence: any text.
        fits: whether a model reads a text whole.
    """
    parts = []
    remaining_text = sentence
    while remaining_text:
        end = _longest_fitting_length(remaining_text, fits)
        if end < len(remaining_text):
            end = _best_cut_position(remaining_text, end, fits)
        parts.append(remaining_text[:end])
        remaining_text = remaining_text[end:]
    return parts


def _longest_fitting_length(text: str, fits: Callable[[str], bool]) -> int:
    """The length of about the longest beginning that fits; at least one."""
    longest_fit, shortest_failure = 1, len(text) + 1
    length = min(INITIAL_CHUNK_CHARS, len(text))
    while shortest_failure - longest_fit > 1:
        if fits(text[:length]):
            longest_fit = length
        else:
            shortest_failure = length
        length = (
            min(2 * longest_fit, len(text)) if shortest_failure > len(text) else (longest_fit + shortest_failure) // 2
        )
        if longest_fit == len(text):
            break
    return longest_fit


def _best_cut_position(text: str, end: int, fits: Callable[[str], bool]) -> int:
    """The best place to cut at or before `end`, where the beginning of the text that fits ends."""
    head = text[: end + 1]  # a space may follow what fits
    for border in _CUT_PATTERNS:
        positions: list[int] = [match.end() for match in border.finditer(head) if match.end() <= end]
        while positions and positions[-1] >= MIN_CUT_SHARE * end:
            if fits(text[: positions[-1]]):
                return positions.pop()
            positions.pop()
    last = 0
    for match in _GRAPHEME.finditer(text):
        if match.end() > end:
            break
        last = match.end()
    return last if last and fits(text[:last]) else end
