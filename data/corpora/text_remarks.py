"""Remarks on files that are read as a text a line, though they seem to be rows of a table or a document.

Words a line come first, whose blank lines no other rule keeps; then JSON, of which two lines are enough; then rows,
whose cells are looked at in lines that are not too long: between tabs, behind labels, between marks of several
characters, of Markdown, between commas, and last parts of each word.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from tfm.data.corpora.remarks import add_remark
from tfm.data.corpora.tables.layouts import MIN_ROWS_JUDGED, are_column_names, markdown_problem, split_sample
from tfm.data.corpora.tables.lines import find_even_mark
from tfm.data.formats.conll.words_alone import WORDS_ALONE_REMEDY, are_words_alone
from tfm.data.formats.fasttext import LABEL_PREFIX
from tfm.data.lines import open_lines

MAX_LINE_CHARACTERS = 20_000
"""The characters of the longest line whose words and cells are looked at."""
CSV_DELIMITERS = (",", ";", "|")
PAIR_MARKS = (" ||| ", " +++$+++ ")
FACTOR_MARKS = ("￨", "|", "/")
"""Marks between a word and its features or tags, as of OpenNMT, Moses and the Brown corpus."""
PYTHON_OBJECT = re.compile(r"\{u?'[^']*': .*\}")
PYTHON_LIST = re.compile(r"\[u?'[^']*'(, u?['\"].*)?\]")
DOCUMENT_BEGIN, DOCUMENT_REST = re.compile(r"[\[{](.*[\[{,])?"), re.compile(r"""[\[{"']""")
ARRAY_LINE = re.compile(r"""\[\s*[\[{"].*[\]}"]\s*\]|\{.*\[\s*\{.*\}\s*\]\s*\}""")
AS_TEXTS = "and are read as texts"
VERSE_RANGE = "<range>"
"""The line of a verse that stands in the line before, as eBible's corpus has it."""


def table_remark(lines: Sequence[str]) -> str | None:
    """A remark on rows or a document that are read as a text a line; None if lines seem to be texts.

    lines: the first of a file.
    """
    if are_words_alone(lines):
        return f"has a word a line and blank lines between sentences, {AS_TEXTS}: {WORDS_ALONE_REMEDY}"
    filled = [line.strip(" \r") for line in lines if line.strip()]
    remark = _json_remark(filled)
    if remark is not None or len(filled) < MIN_ROWS_JUDGED or max(map(len, filled)) > MAX_LINE_CHARACTERS:
        return remark
    return next(filter(None, (find_remark(filled) for find_remark in REMARKS_OF_ROWS)), None)


def read_lines_with_verses(file: Path) -> Iterator[str]:
    """The lines of a file, with a remark behind the last if some say that a verse stands in the line before."""
    count = 0
    for line in open_lines(file):
        count += line == VERSE_RANGE
        yield line
    if count:
        lines = "line is" if count == 1 else "lines are"
        remedy = f"paste SOURCE TARGET | grep -vF '{VERSE_RANGE}' leaves these pairs out"
        verse = "a verse that stands in the line before (eBible)"
        add_remark(file, f"{count:,} {lines} {VERSE_RANGE}, {verse}, {AS_TEXTS}: {remedy}")


def _json_remark(lines: Sequence[str]) -> str | None:
    """A remark on objects, arrays or strings of JSON, a line each, or on a document over lines or in one."""
    if len(lines) == 1:
        is_array = ARRAY_LINE.fullmatch(lines[0]) is not None
        return 'is rows of JSON in one line, read as one text: format = "jsonl" reads them' if is_array else None
    if not lines:
        return None
    if DOCUMENT_BEGIN.fullmatch(lines[0]) and DOCUMENT_REST.match(lines[1]) and not _are_all_json(lines[:1]):
        return f'its lines are parts of a JSON document, {AS_TEXTS}: format = "jsonl" reads the objects of an array'
    has_many = len(lines) >= MIN_ROWS_JUDGED
    if all(line[0] + line[-1] == "{}" for line in lines):
        if all(map(PYTHON_OBJECT.fullmatch, lines)):
            return f'its lines are objects of Python, {AS_TEXTS}: write them by json.dumps, for format = "jsonl"'
        if (has_many and all('":' in line for line in lines)) or _are_all_json(lines):
            remedy = 'format = "jsonl" reads their values, jq -r .KEY FILE writes them'
            return f"its lines are objects of JSON, {AS_TEXTS}: {remedy}"
    if all(line[0] == "[" and '"' in line for line in lines) and _are_all_json(lines):
        return f"its lines are arrays of JSON, {AS_TEXTS}: jq -r @tsv FILE makes TSV of them"
    are_lists = [line == "[]" or PYTHON_LIST.fullmatch(line) is not None for line in lines]
    if has_many and all(are_lists) and {*lines} != {"[]"}:
        return f"its lines are lists of Python, {AS_TEXTS}: write their words between spaces, as by ' '.join"
    if has_many and all(line[0] == '"' for line in lines) and _are_all_json(lines):
        return f"its lines are strings in quotation marks, {AS_TEXTS} with these: jq -r . FILE cuts them"
    return None


def _are_all_json(lines: Sequence[str]) -> bool:
    try:
        return all(json.loads(line) is not None for line in lines)
    except (ValueError, RecursionError):
        return False


def _mark_remark(lines: Sequence[str]) -> str | None:
    """A remark on columns between tabs, on labels before texts, or on both sides with a mark between them."""
    if all(line.startswith("\t") for line in lines):  # indented
        lines = [line.strip() for line in lines]
    if find_even_mark(lines, "\t") is not None:
        return f'its lines have tabs, as a table has, {AS_TEXTS}: format = "tsv" reads columns, cut -f1 FILE writes one'
    if all(line.startswith(LABEL_PREFIX) for line in lines):
        return f'its lines begin with labels, as of fastText, {AS_TEXTS}: format = "labelled" tells them from texts'
    if (mark := find_even_mark(lines, PAIR_MARKS)) is None:
        return None
    remedy = f'format = "csv", delimiter = "{mark}" reads columns'
    return f"its lines have columns behind{mark.rstrip()}, {AS_TEXTS}: {remedy}"


def csv_remark(lines: Sequence[str]) -> str | None:
    """A remark on cells between delimiters that are in quotation marks, numbered, or below a header of usual names."""
    for mark in CSV_DELIMITERS:
        rows = split_sample(lines, mark)
        if not rows or len(rows[0]) < 2 or len({*map(len, rows)}) > 1:
            continue
        is_quoted = all(line[0] == line[-1] == '"' and f'"{mark}"' in line for line in lines)
        if is_quoted or _are_numbered(rows[1:]) or (all(rows[0]) and are_column_names(rows[0])):
            return f'its lines are cells between {mark} as in CSV, {AS_TEXTS}: format = "csv" reads columns'
    return None


def _are_numbered(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first cells count the rows."""
    numbers = [int(row[0]) if row[0].isascii() and row[0].isdecimal() else None for row in rows]
    return all(last is not None and number == last + 1 for last, number in pairwise(numbers))


def _factor_remark(lines: Sequence[str]) -> str | None:
    """A remark on words that each have a part behind a mark, as often and with something on both sides of it."""
    words = [word for line in lines for word in line.split()]
    for mark in FACTOR_MARKS:
        parts = [word.split(mark) for word in words]
        if len(parts) >= 2 * len(lines) and len({*map(len, parts)}) == 1 and len(parts[0]) > 1 and all(map(all, parts)):
            remedy = f"sed -E 's/[{mark}][^ ]*//g' FILE"
            return (
                f"each of its words has a part behind {mark}, such as a tag, which is read as part of it: "
                f"cut by {remedy}"
            )
    return None


REMARKS_OF_ROWS = (_mark_remark, markdown_problem, csv_remark, _factor_remark)
