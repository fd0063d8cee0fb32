"""The numbers of characters and words that figures by character and by word divide by; the share of unknown pieces."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfm.data.errors import format_share
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.normalization import WHITE_SPACE
from tfm.tokenizer.tokenizer import Tokenizer

WORD_PATTERN = re.compile(f"[^{WHITE_SPACE}]+")
MAX_UNKNOWN_RATE = 0.01


@dataclass(frozen=True)
class CharacterCounts:
    """Code points of texts, as read and as normalized by the tokenizer.

    A tokenizer may drop white space, which a model then does not predict, or decompose characters, which adds code
    points. The smaller number is the divisor, so that neither improves the score of a model.
    """

    read: int
    kept: int

    @classmethod
    def count_texts(cls, texts: Iterable[str], tokenizer: Tokenizer, *, newlines: bool = False) -> Self:
        """Count the characters of some texts, as read and as kept by a tokenizer.

        Args:
            texts: the texts.
            tokenizer: normalizes them.
            newlines: whether a line break after each text counts as one.
        """
        num_read = num_kept = 0
        for text in texts:
            num_read += len(text) + newlines
            num_kept += len(tokenizer.normalize(text)) + newlines
        return cls(num_read, num_kept)

    @property
    def num_characters(self) -> int:
        """The number of characters to divide by."""
        return min(self.read, self.kept)

    @property
    def signature(self) -> str:
        """The number, or both numbers if they differ."""
        counts = "" if self.read == self.kept else f"|read:{self.read}|kept:{self.kept}"
        return f"unit:code-point|count:{self.num_characters}{counts}"


def num_words(text: str) -> int:
    """The number of stretches without white space in a text: its words, whatever a tokenizer makes of them."""
    return sum(1 for _ in WORD_PATTERN.finditer(text))


def warn_of_unknown_pieces(text_description: str, unknown: int, pieces: int, reporter: Reporter) -> None:
    """Warn if too much of a text is unknown for its perplexity to be meaningful.

    Args:
        text_description: the text, in words.
        unknown: the number of unknown pieces.
        pieces: the number of all.
        reporter: shows the warning.
    """
    if unknown > MAX_UNKNOWN_RATE * pieces:
        reporter.warn(
            f"{text_description}: {format_share(unknown, pieces, 'piece', 'is', 'are')} unknown to the tokenizer "
            f"({unknown / pieces:.1%}), which makes perplexity and bits a character look better than they are"
        )
