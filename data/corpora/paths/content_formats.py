"""The format of a file whose name does not say it, by its first lines; and files that are no texts or tables."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tfm.data.corpora.dialects import find_delimiter
from tfm.data.corpora.markup.problems import (
    MAX_LINES_READ,
    PROBLEMS_OF_PAIRS,
    holds_json_objects,
    markup_problem,
    tag_columns_problem,
)
from tfm.data.corpora.paths.column_choice import MIN_ROWS_JUDGED
from tfm.data.corpora.tables.layouts import fixed_width_problem, layout_problem, markdown_problem, split_sample
from tfm.data.corpora.tables.lines import find_long_delimiter
from tfm.data.corpora.text_remarks import csv_remark
from tfm.data.errors import ExportableFileError
from tfm.data.formats.conll.layout import (
    COMMENT_MARK,
    DOCUMENT_BEGIN,
    DOCUMENT_START,
    detect_layout,
)
from tfm.data.formats.conll.schemes import TAG_LETTERS
from tfm.data.formats.conllu import NUM_COLUMNS
from tfm.data.formats.fasttext import LABEL_PREFIX, is_pronunciation
from tfm.data.lines import open_lines, open_maybe_compressed

TAG_PATTERN = re.compile(rf"(?:[{TAG_LETTERS}]-\S+|O)")
CLASS_PATTERN = re.compile(r"([0-9]|[A-Z]{2,}:[A-Za-z]+) [^\t]*\Z")
MARKS = (COMMENT_MARK, DOCUMENT_START)
BAR = "|"
JSON_BEGIN = re.compile(rb"(?:\[\s*)?\{")
MAX_LINES_SAMPLED, MAX_COLUMNS_BY_SPACES = 50, 3
MAX_WORDS_OF_SENTENCE = 500
"""The lines that are looked at if none of the first is blank."""


def check_layout(path: Path) -> None:
    """Raise ExportableFileError if a table is not laid out by delimiters, or has a title above it."""
    lines = list(islice(open_lines(path), MAX_LINES_SAMPLED))
    problem = markup_problem(lines[:MAX_LINES_READ]) or layout_problem(lines)
    if problem is not None:
        raise ExportableFileError(problem, file=path)


def detect_content_format(path: Path) -> str:
    with open_maybe_compressed(path) as stream:
        head = stream.read(200).lstrip(b"\xef\xbb\xbf \r\n\t")
    if head.startswith(b"<") and (match := re.search(rb"<(tmx|xliff)[\s>]", head)) is not None:
        return match[1].decode()
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = list(islice(open_lines(path), MAX_LINES_SAMPLED))
    first = lines[:MAX_LINES_READ]
    problems = (markup_problem, *(find for find in PROBLEMS_OF_PAIRS if find is not tag_columns_problem))
    if (problem := next(filter(None, (find(first) for find in problems)), None)) is not None:
        raise ExportableFileError(problem, file=path)
    if JSON_BEGIN.match(head):
        return "jsonl"
    has_words = has_word_per_line(path)
    if (problem := markdown_problem(lines) or (None if has_words else fixed_width_problem(lines))) is not None:
        raise ExportableFileError(problem, file=path)
    filled = [line for line in lines if line.strip()]
    if filled and (_have_class_labels(filled) or all(map(is_pronunciation, filled))):
        return "labelled"
    if (lines and lines[0].startswith((DOCUMENT_BEGIN, DOCUMENT_START))) or has_words:
        return "conll"
    rows = [line for line in filled if not line.startswith(COMMENT_MARK)]
    if rows and all("\t" in line for line in rows):
        return "tsv"
    has_cells = bool(filled) and (find_long_delimiter(path) is not None or _has_delimited_cells(rows))
    return "csv" if has_cells else "text"


def format_by_content(path: Path, format_: str) -> str:
    """The format of a table whose name says another: of JSON objects a line, or without a tab in what is called TSV."""
    lines = [line for line in islice(open_lines(path), MAX_LINES_SAMPLED) if line.strip()]
    if lines and holds_json_objects(lines):
        return "jsonl"
    if format_ != "tsv" or len(lines) < MIN_ROWS_JUDGED or any("\t" in line for line in lines):
        return format_
    delimiter = find_delimiter(path, ["1"], is_headed=False)
    widths = {len(row) for row in split_sample(lines, delimiter)}
    return "csv" if len(widths) == 1 and min(widths) > 1 else format_


def _has_delimited_cells(lines: Sequence[str]) -> bool:
    """Whether lines are cells in quotation marks or below usual names, as of CSV, or between as many bars."""
    if len(lines) < MIN_ROWS_JUDGED:
        return False
    bars = {line.count(BAR) for line in lines}
    are_words = all(BAR in word for line in lines for word in line.split())  # with a tag each
    return csv_remark(lines) is not None or (len(bars) == 1 and 0 not in bars and not are_words)


def is_conll_x(path: Path) -> bool:
    """Whether a file has the ten columns of CoNLL-X, which are those of CoNLL-U: numbers of words and of heads."""
    words = (line for line in open_lines(path) if line.strip() and not line.startswith(MARKS))
    rows = [line.split("\t") for line in islice(words, MAX_LINES_SAMPLED)]
    return bool(rows) and all(len(row) == NUM_COLUMNS and row[0].isdecimal() and row[6].isdecimal() for row in rows)


def _have_class_labels(lines: Sequence[str]) -> bool:
    """Whether the first line begins or ends with fastText's prefix, or each begins with a class and goes on behind a
    space: a digit, or a name as TREC has them (HUM:ind). Numbered lines do not.
    """
    if any(word.startswith(LABEL_PREFIX) for word in (lines[0], lines[0].split()[-1])):
        return True
    matches = [CLASS_PATTERN.match(line) for line in lines]
    classes = {match[1] for match in matches if match is not None}
    return None not in matches and 2 * len(classes) <= len(lines)


def has_word_per_line(path: Path) -> bool:
    """Whether lines have as many columns, and the last is tags of entities, or sentences of words have few labels."""
    layout = detect_layout(path)
    unmarked_lines = (line for line in open_lines(path) if not line.startswith(MARKS))
    lines = list(islice(unmarked_lines, MAX_LINES_SAMPLED))
    if "" not in map(str.strip, lines):  # a first sentence may be long
        lines += islice(unmarked_lines, MAX_WORDS_OF_SENTENCE)
    cells = [layout.split(line) for line in lines if line.strip()]
    if layout.width < 2 or not cells or any(len(each) != layout.width for each in cells):
        return False
    labels = [each[-1] for each in cells[int(layout.is_headed) :]]
    if all(TAG_PATTERN.fullmatch(label) for label in labels):
        return True
    text = "\n".join(line.strip() for line in lines).strip("\n")
    has_words = not any(re.search(r"\s", cell.strip()) for each in cells for cell in each)
    is_narrow = layout.separator == "tabs" or layout.width <= MAX_COLUMNS_BY_SPACES
    return (
        "\n\n" in text
        and is_narrow
        and has_words
        and len(labels) >= MIN_ROWS_JUDGED
        and 2 * len({*labels}) <= len(labels)
    )
