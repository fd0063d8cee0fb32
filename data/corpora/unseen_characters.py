"""Characters in texts that nobody sees: control characters, byte order marks, and what a wrong encoding leaves."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tfm.data.corpora.references import Row
from tfm.data.corpora.remarks import add_remark

UNSEEN_CHARACTERS: Mapping[str, re.Pattern[str]] = {
    "control characters": re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]"),
    "byte order marks": re.compile("\ufeff"),
    "replacement characters": re.compile("\ufffd"),
}
REMEDIES: Mapping[str, str] = {
    "control characters": r"remove them by perl -CSD -pe 's/(?![\t\n])\p{Cc}//g' FILE",
    "byte order marks": r"remove them, as by sed 's/\xef\xbb\xbf//g' FILE",
    "replacement characters": "where a wrong encoding left them, decode the text anew by its own",
}
"""By what is found in texts, what to do."""
CLEANABLE_KINDS = ("control characters", "byte order marks")
"""Kinds that the rule `controls` of `tfm clean` finds."""
CLEANING_REMEDY = ", or of training data by [clean] in the recipe"


@dataclass
class UnseenCharacterCount:
    """How many texts have characters of a kind, and the first of these: its number from 1 on, and its character."""

    kind: str
    texts: int = 0
    first: int = 0
    character: str = ""

    def add(self, number: int, texts: Sequence[str]) -> None:
        """Count the texts of a number once if one of them has such a character."""
        for text in texts:
            if (match := UNSEEN_CHARACTERS[self.kind].search(text)) is not None:
                self.texts += 1
                self.first, self.character = self.first or number, self.character or match[0]
                return

    def describe(self, of_texts: str, noun: str, meaning: str) -> str:
        """The count as a sentence, with what to do.

        Args:
            of_texts: how many there are, and of what.
            noun: what is numbered.
            meaning: what becomes of the characters.
        """
        place = f"U+{ord(self.character):04X}, the first in {noun} {self.first:,}"
        return f"{self.texts:,} of {of_texts} have {self.kind} ({place}), {meaning}: {REMEDIES[self.kind]}"


@dataclass
class UnseenCharacterCounts:
    """Counts of all kinds in rows of texts."""

    rows: int = 0
    counts: list[UnseenCharacterCount] = field(
        default_factory=lambda: [UnseenCharacterCount(kind) for kind in UNSEEN_CHARACTERS]
    )

    def count_rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows, which are counted as they are read."""
        for row in rows:
            self.rows += 1
            for text in row:
                if not text.isprintable() or "\ufffd" in text:
                    self._add(row)
                    break
            yield row

    def _add(self, texts: Sequence[str]) -> None:
        for count in self.counts:
            count.add(self.rows, texts)


def remark_unseen_characters(rows: Iterable[Row], corpus: str, noun: str, num_skipped: int = 0) -> Iterator[Row]:
    """The rows, with a remark behind the last of them for each kind of characters that nobody sees.

    Args:
        rows: of texts.
        corpus: what remarks call their corpus.
        noun: what a row is: line, pair or text.
        num_skipped: how many rows of the corpus stand before the first.
    """
    counts = UnseenCharacterCounts()
    yield from counts.count_rows(rows)
    for count in counts.counts:
        if count.texts:
            count.first += num_skipped
            remark = count.describe(f"{counts.rows:,} {noun}s", noun, "read as part of the texts")
            add_remark(corpus, remark + CLEANING_REMEDY * (count.kind in CLEANABLE_KINDS))


def is_removed_by_cleaning(remark: str) -> bool:
    """Whether a remark is of characters that the rule `controls` of `tfm clean` finds."""
    return remark.endswith(CLEANING_REMEDY)
