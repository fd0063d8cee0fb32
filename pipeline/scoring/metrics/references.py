"""The references of a segment: where it has fewer than others, a blank line stands in a file for each that is missing.

Which of the files has the blank line changes no score.
"""

from collections.abc import Sequence


def present(segment: Sequence[str]) -> list[str]:
    """The references of a segment that are not blank; the first alone where all are: an empty text is wanted then."""
    return [text for text in segment if text.strip()] or list(segment[:1])


def references_for_sacrebleu(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """The references as sacrebleu takes them: a segment that has fewer than others ends in None.

    There are as many columns as the segment of the most references has, so that a signature says how many there are.
    """
    segments = [present(segment) for segment in zip(*references, strict=True)]
    most = max(map(len, segments), default=1)
    return [[segment[place] if place < len(segment) else None for segment in segments] for place in range(most)]
