"""Tables with a header and a word a row, whose sentence a column says, as Kaggle's set of named entities has them.

Sentence #,Word,POS,Tag
Sentence: 1,Thousands,NNS,O
,of,IN,O
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.formats.conll.separators import MAX_ROWS_SAMPLED
from tfm.data.lines import open_lines

SENTENCE_COLUMN_PATTERN = re.compile(r"sent(ence)?[ _]?(#|ids?|idx|index|number|num|nr|no)?", re.IGNORECASE)
TABLE_DELIMITERS = (",", "\t", ";")
WORD_COLUMN_NAMES = ("word", "words", "token", "tokens", "form", "text")
LABEL_COLUMN_NAMES = (
    "tag", "tags", "label", "labels", "ner", "ner_tag", "ner_tags", "pos", "pos_tag", "pos_tags", "upos", "xpos",
    "chunk", "chunk_tag", "iob", "bio", "entity",
)  # fmt: skip


@dataclass(frozen=True)
class WordTable:
    """The columns of a table: what is between cells, how many there are, and where sentence, word and label are."""

    delimiter: str
    width: int
    sentence: int
    word: int
    label: int

    def rows(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        """The rows below the header, each with its line; one without cells where a sentence ends.

        A sentence begins where its column has another value than before; an empty cell is the same sentence.
        """
        current = ""
        for number, cells in read_quoted_rows(path, self.delimiter):
            if number == 1:
                continue
            name = cells[self.sentence].strip() if len(cells) == self.width else ""
            if name not in ("", current):
                yield number, []
                current = name
            yield number, cells


def find_word_table(path: Path) -> WordTable | None:
    """The columns of a file whose header names a sentence, a word and a label; None if it has no such header, or if its
    first rows are whole sentences, as of `sentence_id,text,label`.
    """
    header = next(open_lines(path), "")
    for delimiter in TABLE_DELIMITERS:
        names = [name.strip(' "').lower() for name in header.split(delimiter)]
        sentences = [place for place, name in enumerate(names) if SENTENCE_COLUMN_PATTERN.fullmatch(name)]
        words = [place for place, name in enumerate(names) if name in WORD_COLUMN_NAMES]
        labels = [place for place, name in enumerate(names) if name in LABEL_COLUMN_NAMES]
        if len(sentences) == len(words) == 1 and labels:
            table = WordTable(delimiter, len(names), sentences[0], words[0], labels[-1])
            return table if _holds_words(path, table) else None
    return None


def _holds_words(path: Path, table: WordTable) -> bool:
    """Whether the first rows are words: most have no space, and some are of the sentence of the row before."""
    lines = islice(open_lines(path), 1, MAX_ROWS_SAMPLED)
    rows = [cells for line in lines if len(cells := _split_quoted(line, table.delimiter)) == table.width]
    num_texts = sum(" " in cells[table.word].strip() for cells in rows)
    names = [cells[table.sentence].strip() for cells in rows]
    goes_on = any(name in ("", before) for before, name in zip(names, names[1:], strict=False))
    return 2 * num_texts <= len(rows) and (goes_on or len(rows) < 2)


def _split_quoted(line: str, delimiter: str) -> list[str]:
    """The cells of a line; none where a quotation mark is missing, as of a cell over several lines."""
    try:
        return next(csv.reader([line], strict=True, delimiter=delimiter), [])
    except csv.Error:
        return []


def read_quoted_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, with its number; those in quotation marks, as CSV has them, without.

    Raises DataError naming the line; a quotation mark is missing or out of place.
    """
    for number, line in enumerate(open_lines(path), 1):
        try:
            cells: Sequence[list[str]] = list(csv.reader([line], strict=True, delimiter=delimiter))
        except csv.Error as error:
            raise DataError(f"not a row of CSV: {error}", file=path, line=number) from None
        yield number, cells[0] if cells else []
