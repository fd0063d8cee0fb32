"""Files that are not a text a line, though they are read as such without an error: tags and times would be words.

Ends of lines are asked first, since all other rules read lines; then forms that only programs write, which no text is;
of both sides of pairs also those that a model of single texts may be for, such as XML or a word and its tag a line.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from tfm.data.corpora.markup.alignments import links_problem
from tfm.data.corpora.markup.catalogs import catalog_problem
from tfm.data.corpora.markup.patterns import REASONS_BY_PATTERN, TEST_SET_PATTERN, reason_by_head
from tfm.data.corpora.markup.resources import resource_problem
from tfm.data.corpora.markup.speech import times_problem, utterance_ids_problem
from tfm.data.errors import DataError
from tfm.data.formats.conll.schemes import are_entity_tags

MAX_LINES_READ, MAX_COMMENT_LINES = 20, 400
COMMENT_MARK = "#"
ELEMENTS_PATTERN = re.compile(r"\s*<[A-Za-z][\w:.-]*(\s[^<>]*)?/?>")
TAGS_PATTERN = re.compile(rf"({ELEMENTS_PATTERN.pattern})+\s*")
"""A line of XML whose declaration is missing: nothing but tags, before others that begin with one."""
COMMENTS_PATTERN = re.compile(r"\s*(?:<!--(?:(?!-->)[\s\S])*-->\s*)+(?=<)")
"""Comments of XML above its first element."""
LATEX_PATTERN = re.compile(r"(%.*\n|[ \t]*\n)*\\(documentclass\b|begin\{[a-z]+\*?\})")
PAGE_PATTERN = re.compile(r"<\?xml\s|<!doctype\s+html\b|<html\b", re.IGNORECASE)


def tag_columns_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts: they have a word and its tag of entities each; None if they do not.

    lines: the first of a file.
    """
    rows = [line.split() for line in lines if line.strip()]
    tags = [row[-1] for row in rows]
    is_tagged = len(rows) > 1 and are_entity_tags(tags) and {*tags} != {"O"}
    if not is_tagged or min(map(len, rows)) < 2 or are_entity_tags(row[0] for row in rows):
        return None
    remedy = 'write the tags of a sentence in a line, as by awk \'NF {printf "%s ", $NF; next} {print ""}\' FILE'
    remedy += " (its words by $1 in place of $NF)"
    return f'has a word and its tag a line, as CoNLL-2003: in a corpus set format = "conll"; else {remedy}'


def holds_json_objects(lines: Sequence[str]) -> bool:
    """Whether the first lines of a file are objects of JSON, as of JSON Lines."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines[:MAX_LINES_READ])
    except (ValueError, RecursionError):
        return False


def page_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but XML, HTML or LaTeX, which texts alone may be, for a model of such texts; None if they
    are.

    lines: the first of a file.
    """
    if (comments := COMMENTS_PATTERN.match(head := "\n".join(lines))) is not None:
        lines = head[comments.end() :].split("\n")
    filled = [line for line in lines if line.strip()]
    are_elements = len(filled) > 2 and all(map(ELEMENTS_PATTERN.match, filled[:3])) and "</" in "".join(lines)
    if lines and (PAGE_PATTERN.match(lines[0]) or (are_elements and TAGS_PATTERN.fullmatch(filled[0]))):
        return "is XML or HTML, whose tags would be words: write its texts, one a line, into a file"
    if LATEX_PATTERN.match(head) is not None:
        return "is LaTeX, whose commands would be words: write its text, as by pandoc -t plain FILE"
    return None


PROBLEMS_OF_LINES = (catalog_problem, resource_problem, times_problem, page_problem, utterance_ids_problem)
"""The problems of files whose lines are no texts of any format."""
PROBLEMS_OF_PAIRS = (*PROBLEMS_OF_LINES, tag_columns_problem)
"""The problems that are looked for in both sides of pairs, and that texts alone may have."""


def line_end_problem(lines: Sequence[str]) -> str | None:
    """Why the lines of a file are not what it has for lines: they end in CR alone, so that it is one line to all
    readers, or in a CR too many; None if they do not.

    lines: the first of a file.
    """
    if len(lines) == 1 and lines[0].count("\r") > 1:
        return "its lines end in CR alone: convert them to LF"
    if lines and all(line.endswith("\r") for line in lines):
        return "its lines end in CR CR LF: convert them to LF, as by sed -E 's/\\r+$//' FILE"
    return None


def markup_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but one of the known forms of tagged text, or end otherwise; None if they are texts.

    lines: the first of a file.
    """
    if (problem := line_end_problem(lines)) is not None:
        return problem
    return reason_by_head(lines, REASONS_BY_PATTERN) or links_problem(lines)


def is_tagged_test_set(lines: Sequence[str]) -> bool:
    """Whether lines, the first of a file, are of a test set in SGML or XML, as WMT and IWSLT had them."""
    return TEST_SET_PATTERN.match("\n".join(lines)) is not None


def check_lines(
    lines: Iterable[str], path: Path, problems: Sequence[Callable[[Sequence[str]], str | None]]
) -> Sequence[str]:
    """Raise DataError if a file is no text a line.

    Args:
        lines: of the file.
        path: of the file.
        problems: that are looked for in the first lines, such as `markup_problem`.

    Returns:
        The first lines.
    """
    head = read_head(lines)
    for find_problem in problems:
        if (problem := find_problem(head)) is not None:
            raise DataError(problem, file=path)
    return head


def read_head(lines: Iterable[str]) -> list[str]:
    """The first lines of a file, up to those below the comments that it begins with, as a catalog names its authors."""
    lines = iter(lines)
    head = list(islice(lines, MAX_LINES_READ))
    while len(head) < MAX_COMMENT_LINES and all(line.startswith(COMMENT_MARK) for line in head[-MAX_LINES_READ:]):
        if not (further := list(islice(lines, MAX_LINES_READ))):
            break
        head += further
    return head
