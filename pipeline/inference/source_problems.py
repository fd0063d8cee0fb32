"""Sources that a model cannot read as they are: longer than it reads, or of pieces that it or its shortlist lacks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tfm.data.errors import format_count, format_share
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")
MIN_LETTER_PIECES = 50
"""Pieces by which a shortlist is judged."""
MAX_UNLINKED_SHARE = 0.25
"""The share of pieces without a link that is warned of: 0.003 in texts of Multi30k, 0.3 to 0.7 on its other side."""


@dataclass
class SourceProblems:
    """Counts of lines, words and pieces that a model does not read as they are.

    Args:
        lines: the number of lines.
        cut: the number of lines that were longer than the model reads.
        words: the number of words that got no tag because of it.
        pieces: the number of pieces.
        unknown: the number of unknown pieces.
        strange: the number of lines with as many unknown pieces as known ones with a letter or digit.
        letter_pieces: with a shortlist, the number of known pieces with a letter or digit.
        unlinked_pieces: the number of these that have no link in the shortlist.
    """

    lines: int = 0
    cut: int = 0
    words: int = 0
    pieces: int = 0
    unknown: int = 0
    strange: int = 0
    letter_pieces: int = 0
    unlinked_pieces: int = 0

    def count_too_long(self, are_too_long: Iterable[bool]) -> None:
        """Count some lines; are_too_long: whether each is longer than the model reads."""
        flags = list(are_too_long)
        self.lines += len(flags)
        self.cut += sum(flags)

    def count_unknown_pieces(
        self, tokenizer: Tokenizer, lines: Sequence[str], sources: Sequence[Sequence[int]]
    ) -> None:
        """Count the pieces of some lines. A line of letters without pieces is unknown as a whole.

        Args:
            tokenizer: of the sources.
            lines: the texts.
            sources: the ids of each line.
        """
        num_prefix = _num_prefix_tokens(tokenizer)
        has_letter = _has_letter_by_piece(tokenizer)
        for line, ids in zip(lines, sources, strict=True):
            unknown = ids.count(UNK_ID)
            if not ids and any(map(str.isalnum, line)):
                unknown, self.pieces = 1, self.pieces + 1
            self.pieces += max(0, len(ids) - num_prefix)
            self.unknown += unknown
            self.strange += unknown > 0 and unknown >= sum(map(has_letter.__getitem__, ids[num_prefix:]))

    def count_unlinked_pieces(
        self, tokenizer: Tokenizer, sources: Iterable[Sequence[int]], shortlist: Shortlist | None
    ) -> None:
        """Count the pieces that have no link in a shortlist, as most have where it is of the other direction.

        Args:
            tokenizer: of the sources.
            sources: the ids of each line.
            shortlist: of the pieces that may come; None: all may, and none is counted.
        """
        if shortlist is None:
            return
        has_letter, num_prefix = _has_letter_by_piece(tokenizer), _num_prefix_tokens(tokenizer)
        for ids in sources:
            pieces = [piece for piece in ids[num_prefix:] if has_letter[piece]]
            self.letter_pieces += len(pieces)
            self.unlinked_pieces += len(pieces) - int(shortlist.has_link[pieces].sum())

    def count_while_iterating(self, tokenizer: Tokenizer, lines: Iterable[T], text: Callable[[T], str]) -> Iterator[T]:
        """Count the unknown pieces of lines as they pass by.

        Args:
            tokenizer: of the sources.
            lines: the lines.
            text: the source of a line.
        """
        for line in lines:
            source = text(line)
            self.lines += 1
            self.count_unknown_pieces(tokenizer, [source], [tokenizer.encode(source)])
            yield line

    def warnings(self, limit: int) -> list[str]:
        """Return the warnings about the sources; limit: the most pieces that the model reads."""
        messages = []
        if self.cut:
            were = "was" if self.cut == 1 else "were"
            longer = format_share(self.cut, self.lines, "source", "was", "were")
            have, count = ("has", "counts") if self.words == 1 else ("have", "count")
            untagged = (
                "" if not self.words else f": {format_count(self.words, 'word')} {have} no tag, and {count} as wrong"
            )
            messages.append(f"{longer} longer than the {limit} pieces that the model reads, and {were} cut{untagged}")
        if self.strange:
            consist = format_share(self.strange, self.lines, "source", "consists", "consist")
            messages.append(
                f"{consist} by half or more of what the model's vocabulary "
                f"lacks ({100 * self.unknown / self.pieces:.1f} % of all pieces are unknown): is this the language "
                "that the model reads?"
            )
        if self.letter_pieces >= MIN_LETTER_PIECES and self.unlinked_pieces >= MAX_UNLINKED_SHARE * self.letter_pieces:
            share = 100 * self.unlinked_pieces / self.letter_pieces
            messages.append(
                f"{share:.0f} % of the sources' pieces have no link in the shortlist, so that only frequent pieces may "
                "translate them: was it made of pairs in this direction?"
            )
        return messages

    def warn(self, reporter: Reporter, limit: int) -> None:
        """Show the warnings."""
        for text in self.warnings(limit):
            reporter.warn(text)


def warn_of_unknown_sources(tokenizer: Tokenizer, lines: Sequence[str], reporter: Reporter) -> None:
    """Warn of sources that the vocabulary lacks, if they are read but not translated.

    Args:
        tokenizer: of the sources.
        lines: the texts.
        reporter: shows the warning.
    """
    problems = SourceProblems(lines=len(lines))
    problems.count_unknown_pieces(tokenizer, lines, tokenizer.encode_batch(list(lines)))
    problems.warn(reporter, 0)


def _num_prefix_tokens(tokenizer: Tokenizer) -> int:
    """The tokens before a text, of its languages."""
    return (2 if tokenizer.has_source_language else 1) if tokenizer.has_language_prefix else 0


class _HasLetterByPiece(dict[int, bool]):
    """Whether a piece of a tokenizer has a letter or digit, found when it is asked for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__({UNK_ID: False})
        self._tokenizer = tokenizer

    def __missing__(self, piece: int) -> bool:
        has_letter = self[piece] = any(map(str.isalnum, self._tokenizer.surface(piece)))
        return has_letter


@lru_cache(maxsize=8)
def _has_letter_by_piece(tokenizer: Tokenizer) -> _HasLetterByPiece:
    return _HasLetterByPiece(tokenizer)
