"""The references of a segment; a file has a blank line for each reference that the segment lacks.

The choice of the file with the blank line changes no score.
"""

from collections.abc import Callable, Sequence

BLANK_IS_CORRECT_SIGNATURE = "blank:right"
"""The signature's part for a mean over segments of which some want no word.

An output without words is right there, and gets the full score. The packages that compute the metrics give it 0.
"""


def drop_blank_references(segment: Sequence[str]) -> list[str]:
    """The references of a segment that are not blank; the first if all are, since an empty text is expected then."""
    return [text for text in segment if text.strip()] or list(segment[:1])


def references_for_sacrebleu(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Return the references as sacrebleu takes them: a segment that has fewer than others ends in None.

    There are as many columns as the segment of the most references has, so that a signature has their number.
    """
    segments = [drop_blank_references(segment) for segment in zip(*references, strict=True)]
    num_columns = max(map(len, segments), default=1)
    return [
        [segment[column] if column < len(segment) else None for segment in segments] for column in range(num_columns)
    ]


def num_references_signature(references: Sequence[Sequence[str]]) -> str:
    """The number of references of the segments, as in sacrebleu's signatures: "var" where it differs."""
    counts = {len(drop_blank_references(segment)) for segment in zip(*references, strict=True)}
    return str(counts.pop()) if len(counts) == 1 else "var"


def is_correctly_empty(hypothesis: str, segment: Sequence[str], split: Callable[[str], Sequence[str]]) -> bool:
    """Whether a metric, by its tokens, reads nothing in a hypothesis, nor in any reference of its segment.

    Args:
        hypothesis: the text.
        segment: its references.
        split: splits a text into tokens.
    """
    return not split(hypothesis) and not any(split(text) for text in segment)


def empty_references_signature(references: Sequence[Sequence[str]], split: Callable[[str], Sequence[str]]) -> str:
    """Return the signature's part with the number of segments whose references have no token; empty for 0."""
    count = sum(not any(split(text) for text in segment if text) for segment in zip(*references, strict=True))
    return f"|without-words:{count}|{BLANK_IS_CORRECT_SIGNATURE}" if count else ""


def num_blank_segments(references: Sequence[Sequence[str]]) -> int:
    """The number of segments that have no reference that is not blank."""
    return sum(not any(text.strip() for text in segment) for segment in zip(*references, strict=True))
