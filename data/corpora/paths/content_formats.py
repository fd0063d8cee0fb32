"""The format of a file by its name or its first lines; and files that are no texts or tables.

Content is asked in this order: bytes that only one format begins with; files that are no text a line, which are named;
JSON; words in columns between blank lines, whose cells would look like any table; lexicons; layouts without delimiters;
classes before texts; tabs; vocabularies, whose columns have names of their own if tabs stand between all; pairs of
words; other delimiters, which texts have too. All else is texts.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from tfm.data.compression.files import strip_compression_ending
from tfm.data.corpora.dialects import find_delimiter
from tfm.data.corpora.markup.problems import (
    MAX_LINES_READ,
    PROBLEMS_OF_LINES,
    holds_json_objects,
    markup_problem,
)
from tfm.data.corpora.tables.layouts import (
    MIN_ROWS_JUDGED,
    fixed_width_problem,
    layout_problem,
    markdown_problem,
    split_sample,
)
from tfm.data.corpora.tables.lines import find_even_mark, find_long_delimiter
from tfm.data.corpora.tables.word_lists import are_word_pairs, is_lexicon, lexicon_problem, vocabulary_problem
from tfm.data.corpora.text_remarks import csv_remark
from tfm.data.errors import ExportableFileError
from tfm.data.formats.conll.layout import COMMENT_MARK, DOCUMENT_BEGIN, DOCUMENT_START, detect_layout, is_marked
from tfm.data.formats.conll.schemes import are_entity_tags
from tfm.data.formats.conll.tagged_lines import WEBANNO_BEGIN, are_tagged_sentences
from tfm.data.formats.conll.unlabelled import unlabelled_problem
from tfm.data.formats.conll.word_table import find_word_table
from tfm.data.formats.conll.words_alone import are_words_alone
from tfm.data.formats.conllu import NUM_COLUMNS
from tfm.data.formats.fasttext import LABEL_PREFIX, is_pronunciation
from tfm.data.lines import open_lines, open_maybe_compressed

FORMAT_BY_EXTENSION = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl",
    "parquet": "parquet", "conllu": "conllu", "cupt": "conllu",
    "conll": "conll", "iob": "conll", "iob2": "conll", "bio": "conll",
    "tmx": "tmx", "xlf": "xliff", "xliff": "xliff", "po": "po",
}  # fmt: skip
"""By the ending of a name."""
SENTIMENT_NAMES = "positive|negative|neutral|pos|neg|neu|ham|spam"
CLASS_PATTERN = re.compile(rf"([0-9]|[A-Z]{{2,}}(?::[A-Za-z]+)?|(?i:{SENTIMENT_NAMES})) [^\t]*\Z")
MIN_ROWS_PER_CLASS = 4
"""A class in capitals, as TREC has the coarse ones (HUM), begins this many lines or more, on average."""
CLASS_MARKS, CLASS_NAME_PATTERN = ";,", re.compile(r"\w[\w-]*")
BAR = "|"
JSON_BEGIN = re.compile(rb"(?:\[\s*)?\{")
MAX_LINES_SAMPLED = 50
"""The first lines that are looked at: of several sentences, or of classes that few lines have."""
MAX_WORDS_OF_SENTENCE = 500
"""The lines that are looked at if none of the first is blank."""
MAX_COLUMNS_BY_SPACES = 3
"""Lines of more words, as many in each, may be verses; a word, its part of speech and a tag are fewer."""


def check_layout(path: Path) -> None:
    """Raise ExportableFileError if a table is not laid out by delimiters, or has a title above it."""
    lines = list(islice(open_lines(path), MAX_LINES_SAMPLED))
    check_problems(path, (markup_problem(lines[:MAX_LINES_READ]), layout_problem(lines)))


def format_of_name(path: Path) -> str:
    """The format that the ending of a name says, also of a compressed file; empty if it says none."""
    return FORMAT_BY_EXTENSION.get(strip_compression_ending(path.name.lower()).rpartition(".")[2], "")


def detect_format(path: Path) -> str:
    """The format of a file, by the ending of its name if its first lines do not say another.

    Raises:
        ExportableFileError: it is in none that is read.
    """
    format_ = format_of_name(path)
    format_ = _format_by_content(path, format_) if format_ in ("csv", "tsv") else format_ or detect_content_format(path)
    if format_ == "conll" and are_tagged_sentences(path):
        return "tsv"
    if format_ == "conll" and _is_conll_x(path):
        return "conllu"
    is_of_words = format_ in ("csv", "tsv") and find_word_table(path) is not None
    return "conll" if is_of_words or (format_ == "tsv" and _has_word_per_line(path)) else format_


def detect_content_format(path: Path) -> str:
    """The format of a file by how it begins. Raises ExportableFileError if it is in none that is read."""
    with open_maybe_compressed(path) as stream:
        head = stream.read(200).lstrip(b"\xef\xbb\xbf \r\n\t")
    if head.startswith(b"<") and (match := re.search(rb"<(tmx|xliff)[\s>]", head)) is not None:
        return match[1].decode()
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = list(islice(open_lines(path), MAX_LINES_SAMPLED))
    check_problems(path, (find(lines[:MAX_LINES_READ]) for find in (markup_problem, *PROBLEMS_OF_LINES)))
    if JSON_BEGIN.match(head):
        return "jsonl"
    filled = [line for line in lines if line.strip()]
    if (lines and lines[0].startswith((DOCUMENT_BEGIN, DOCUMENT_START))) or _has_word_per_line(path):
        return "conll"
    if has_words_and_phones(filled):
        return "labelled"
    check_problems(path, (find(lines) for find in (markdown_problem, fixed_width_problem)))
    if filled and _have_class_labels(filled):
        return "labelled"
    rows = [line for line in filled if not line.startswith(COMMENT_MARK)]
    if find_even_mark(rows, "\t") is not None:
        return "tsv"
    check_problems(path, (find(rows) for find in (lexicon_problem, vocabulary_problem)))
    if rows and all("\t" in row for row in rows):
        return "tsv"
    if are_word_pairs(lines):
        return "labelled"
    has_cells = bool(filled) and (find_long_delimiter(path) is not None or _has_delimited_cells(rows))
    return "csv" if has_cells else "text"


def check_problems(path: Path, problems: Iterable[str | None]) -> None:
    """Raise ExportableFileError of the first problem that a file has."""
    if (problem := next(filter(None, problems), None)) is not None:
        raise ExportableFileError(problem, file=path)


def read_filled_lines(path: Path) -> list[str]:
    """The first lines of a file, without blank ones."""
    return [line for line in islice(open_lines(path), MAX_LINES_SAMPLED) if line.strip()]


def has_words_and_phones(lines: Sequence[str]) -> bool:
    """Whether lines are those of a lexicon: a word and its phones, which no tabs separate as in a table."""
    if not lines:
        return False
    return all(map(is_pronunciation, lines)) or (not all("\t" in line for line in lines) and is_lexicon(lines))


def _format_by_content(path: Path, format_: str) -> str:
    """The format of a table whose name says another: of JSON objects a line, or without a tab in what is called TSV."""
    lines = read_filled_lines(path)
    if lines and holds_json_objects(lines):
        return "jsonl"
    if format_ != "tsv" or len(lines) < MIN_ROWS_JUDGED or any("\t" in line for line in lines):
        return format_
    if find_long_delimiter(path) is not None:
        return "csv"
    delimiter = find_delimiter(path, ["1"], is_headed=False)
    widths = {len(row) for row in split_sample(lines, delimiter)}
    return "csv" if len(widths) == 1 and min(widths) > 1 else format_


def _has_delimited_cells(lines: Sequence[str]) -> bool:
    """Whether lines are a text and a class, cells in quotation marks or below usual names, as of CSV, or between as
    many bars, if these do not stand between each word and its tag.
    """
    if len(lines) < MIN_ROWS_JUDGED:
        return False
    if any(_end_in_classes(lines, mark) for mark in CLASS_MARKS) or csv_remark(lines) is not None:
        return True
    are_tagged = all(BAR in word for line in lines for word in line.split())
    return find_even_mark(lines, BAR) is not None and not are_tagged


def _end_in_classes(lines: Sequence[str], mark: str) -> bool:
    """Whether each line has a mark once and, behind it, a word, of which there are few different ones."""
    rows = [line.split(mark) for line in lines]
    if any(len(row) != 2 or not row[0].strip() or CLASS_NAME_PATTERN.fullmatch(row[1]) is None for row in rows):
        return False
    return 1 < len({row[1] for row in rows}) <= len(rows) / MIN_ROWS_PER_CLASS


def _is_conll_x(path: Path) -> bool:
    """Whether a file has the ten columns of CoNLL-X, which are those of CoNLL-U: numbers of words and of heads."""
    words = (line for line in open_lines(path) if line.strip() and not is_marked(line))
    rows = [line.split("\t") for line in islice(words, MAX_LINES_SAMPLED)]
    return bool(rows) and all(len(row) == NUM_COLUMNS and row[0].isdecimal() and row[6].isdecimal() for row in rows)


def _have_class_labels(lines: Sequence[str]) -> bool:
    """Whether the first line begins or ends with fastText's prefix, or each begins with a class and goes on behind a
    space: a digit, or a name as TREC has them (HUM:ind, HUM), or of a sentiment. Numbered lines and numbers do not.
    """
    if any(word.startswith(LABEL_PREFIX) for word in (lines[0], lines[0].split()[-1])):
        return True
    names = [match[1] for line in lines if (match := CLASS_PATTERN.match(line)) is not None]
    classes = {name.partition(":")[0] for name in names}
    if len(names) < len(lines) or 2 * len(classes) > len(lines) or not any(map(str.isalpha, "".join(lines))):
        return False
    are_plain = any(map(str.isupper, classes)) and not any(":" in name for name in names)
    return not are_plain or 1 < len(classes) <= len(lines) / MIN_ROWS_PER_CLASS


def _has_word_per_line(path: Path) -> bool:
    """Whether lines have as many columns, and the last is tags of entities, or sentences of words have those in some
    column, few labels in the last, or no labels.
    """
    if next(open_lines(path), "").startswith(WEBANNO_BEGIN):
        return True
    layout = detect_layout(path)
    unmarked_lines = (line for line in open_lines(path) if not is_marked(line))
    lines = list(islice(unmarked_lines, MAX_LINES_SAMPLED))
    if "" not in map(str.strip, lines):  # a first sentence may be long
        lines += islice(unmarked_lines, MAX_WORDS_OF_SENTENCE)
    if layout.width == 1:
        return are_words_alone(lines)
    rows = [layout.split(line) for line in lines if line.strip()]
    if layout.width < 2 or not rows or any(len(row) != layout.width for row in rows):
        return False
    rows = rows[int(layout.is_headed) :]
    labels = [row[-1] for row in rows]
    if are_entity_tags(labels):
        return True
    has_sentences = "\n\n" in "\n".join(map(str.strip, lines)).strip("\n")
    if not has_sentences or any(map(are_entity_tags, zip(*rows, strict=True))):
        return has_sentences
    if any(re.search(r"\s", cell.strip()) for row in rows for cell in row):
        return False
    is_narrow = layout.separator == "tabs" or layout.width <= MAX_COLUMNS_BY_SPACES
    are_classes = len(labels) >= MIN_ROWS_JUDGED and 2 * len({*labels}) <= len(labels)
    return (is_narrow and are_classes) or unlabelled_problem(path, layout) is not None
