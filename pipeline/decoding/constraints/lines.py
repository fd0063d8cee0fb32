"""Prefixes and forced words in lines, one for each source: counted, encoded and checked."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from tfm.data.errors import DataError, format_count

if TYPE_CHECKING:
    from tfm.data.images.row_images import RowImages
    from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
    from tfm.tokenizer.tokenizer import Tokenizer

# a tokenizer is imported where it is needed


def check_no_unused_lines(prefixes: Iterator[str] | None, forced: Iterator[str] | None) -> None:
    """Raise DataError if there are prefixes or forced words of more sources than there were."""
    if _has_line(prefixes):
        raise DataError("there are more prefixes than lines: give one for each line")
    if _has_line(forced):
        raise DataError("there are more lines of forced words than lines: give one for each line")


def _has_line(lines: Iterator[str] | None) -> bool:
    return lines is not None and not isinstance(lines, repeat) and next(lines, None) is not None


def encode_prefixes(
    tokenizer: "Tokenizer", prefixes: list[str], sources: "Sequence[Sequence[int]] | RowImages", limit: int
) -> list[list[int]]:
    """Encode the prefixes of some sources; none if a source has no pieces, and so nothing is written.

    Args:
        tokenizer: that of the model's targets.
        prefixes: one for each source.
        sources: ids, or images.
        limit: the most pieces that the model reads.

    Raises:
        DataError: there are fewer prefixes than sources, or one cannot be written, or is longer than the model reads.
    """
    if len(prefixes) < len(sources):
        raise DataError("there are fewer prefixes than lines: give one for each line, empty for none")
    from tfm.pipeline.decoding.constraints.spelling import encode_without_unknown

    if isinstance(sources, Sequence):
        prefixes = [prefix if source else "" for prefix, source in zip(prefixes, sources, strict=True)]
    encoded = encode_without_unknown(tokenizer, prefixes, "a prefix")
    for prefix, ids in zip(prefixes, encoded, strict=True):
        if len(ids) > limit:
            raise DataError(f"a prefix has {len(ids)} pieces and the model reads at most {limit}: {prefix[:40]!r}...")
    return encoded


def split_forced_lines(forced: list[str], num_lines: int) -> list[list[str]]:
    """The words and phrases of each line of forced ones. Raises DataError if there are fewer than `num_lines`."""
    if len(forced) < num_lines:
        raise DataError("there are fewer lines of forced words than lines: give one for each line, empty for none")
    return [split_phrases(each) for each in forced]


def split_phrases(line: str) -> list[str]:
    """The words and phrases of a line of forced ones."""
    return [phrase for phrase in line.split("\t") if phrase.strip()]


def check_phrases_fit(phrases: "PhraseConstraints", prefixes: Sequence[Sequence[int]] | None, limit: int) -> None:
    """Raise DataError if the forced words alone are longer than the model reads.

    Args:
        phrases: with the forced ones of each source.
        prefixes: the ids that each hypothesis begins with; None: none.
        limit: the most pieces that the model reads.
    """
    for row, sentence_phrases in enumerate(phrases.forced or ()):
        num_pieces = sum(map(len, set(sentence_phrases))) + (len(prefixes[row]) if prefixes is not None else 0)
        if num_pieces > limit:
            raise DataError(
                f"the forced words of a line have {format_count(num_pieces, 'piece')} and the model reads at "
                f"most {limit}"
            )
