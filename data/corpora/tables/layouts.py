"""Tables that are laid out otherwise than by a delimiter, or have a title above them: named, and not read."""

import csv
import re
from collections.abc import Sequence

HEADER_NAMES = frozenset(
    "id index text texts sentence sentences label labels class category sentiment source target src tgt trg input "
    "output question answer context title body article document summary word words form lemma features feats "
    "tags pronunciation phonemes reference hypothesis "
    "english german french spanish italian russian chinese japanese arabic hindi".split()
)
"""Usual names of columns: a first row of such cells is one of names."""
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,8})?")
"""A language as columns, keys and cells name it: de, deu, zh_Hans, pt-BR."""
MARKDOWN_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
MIN_ROWS_JUDGED = 4
"""Fewer rows are alike by chance: of one value, of as many cells, or with cells at the same places."""
MAX_TITLES = 5
DELIMITER_PATTERN = re.compile(r"[,;|\t]")
TITLE_PATTERN = re.compile(r"[^\t;|]*[\t;|]*")
"""A first line of one cell, behind which others may be empty; commas may be in it."""
SLASHES_PATTERN = re.compile(r"/[^/]+/(?:, ?/[^/]+/)*")
"""Pronunciations as of ipa-dict."""
SAME_AS_SOURCE = "<self>"
"""The output of a word that is said as it is written, in data of text normalization (Sproat and Jaitly 2016)."""
TITLED_DELIMITERS = ("\t", ";", "|", ",")


def has_usual_names(cells: Sequence[str]) -> bool:
    """Whether cells are usual names of columns alone."""
    names = {cell.strip().lower() for cell in cells} - {""}
    return bool(names) and HEADER_NAMES.issuperset(names)


def are_languages(cells: Sequence[str]) -> bool:
    """Whether cells are the codes of different languages, several of them."""
    return len({*cells}) == len(cells) > 1 and all(map(LANGUAGE_CODE.fullmatch, cells))


def are_column_names(cells: Sequence[str]) -> bool:
    """Whether cells are names of columns: usual ones alone, or codes of languages."""
    return are_languages(cells) or has_usual_names(cells)


def split_sample(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The cells of a file's first lines, carriage returns within them as spaces; none of lines that are no CSV, or have
    longer cells than the module `csv` reads.
    """
    try:
        return [*csv.reader((f"{line}\n".replace("\r", " ") for line in lines), delimiter=delimiter)]
    except csv.Error:
        return []


def layout_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no table of cells between delimiters from its header on; None if they may be one.

    lines: the first of a file.
    """
    problem = markdown_problem(lines) or title_problem(lines)
    if problem is not None or (lines and DELIMITER_PATTERN.search(lines[0])):
        return problem
    return fixed_width_problem(lines)


def markdown_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no table of cells between delimiters, but one of Markdown; None if they are not.

    lines: the first of a file.
    """
    table = [line for line in lines if line.strip()]
    if len(table) < 2 or "|" not in table[0] or "|" not in table[1] or not MARKDOWN_RULE.fullmatch(table[1]):
        return None
    remedy = r"sed -E '/^[|: -]+$/d; s/^ *\| *//; s/ *\| *$//; s/ +\| +/\t/g' FILE"
    return f"is a table of Markdown: make TSV of it, as by {remedy}"


def fixed_width_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no table of cells between delimiters: each cell begins at the same place in all of them, behind
    spaces. None if they do not.

    lines: the first of a file.
    """
    rows = [line for line in lines if line.strip()]
    if len(rows) < MIN_ROWS_JUDGED or any("\t" in row or row[0] == " " for row in rows):
        return None
    for column in range(2, min(map(len, rows))):
        gaps = [row[column - 1] == " " != row[column] for row in rows]
        if all(gaps) and 2 * sum(row[column - 2] == " " for row in rows) > len(rows):
            return "has columns of fixed width: make CSV of it, as by pandas.read_fwf(FILE).to_csv(OUT, index=False)"
    return None


def title_problem(lines: Sequence[str]) -> str | None:
    """Why the first line is not that of a table: it and perhaps others have one cell, and all behind them several, as
    many in each. None if it is one.

    A title with empty cells behind it is known by the usual names of columns below it.

    lines: the first of a file.
    """
    if lines and (TITLE_PATTERN.fullmatch(lines[0].strip()) is None or lines[0].startswith(("sep=", "#"))):
        return None
    for mark in TITLED_DELIMITERS:
        rows = [row for row in split_sample(lines, mark) if any(row)]
        num_titles = next((number for number, row in enumerate(rows) if sum(map(bool, row)) > 1), 0)
        table = rows[num_titles:]
        if mark != "," and _are_csv_rows(lines):
            continue
        if not 0 < num_titles <= MAX_TITLES or len(table) < MIN_ROWS_JUDGED - 1 or len({*map(len, table)}) > 1:
            continue
        if len(rows[0]) == 1 or has_usual_names(table[0]):
            titles = "a line" if num_titles == 1 else f"{num_titles} lines"
            text = "".join(rows[0])
            return f"has {titles} above the table ({text:.40}): remove {'that' if num_titles == 1 else 'those'}"
    return None


def _are_csv_rows(lines: Sequence[str]) -> bool:
    """Whether commas give each line as many cells: their header is no title above what semicolons divide."""
    widths = {len(row) for row in split_sample(lines, ",") if row}
    return len(widths) == 1 and widths != {1}


def cells_remark(rows: Sequence[Sequence[str]]) -> str | None:
    """A remark on cells that stand for others, or are in quotation marks that are read as text; None if none seem so.

    rows: the first of a table.
    """
    if any(SAME_AS_SOURCE in row for row in rows):
        remedy = 'awk -F"\\t" \'$1 != "<eos>" {print $2 FS ($3 == "<self>" ? $2 : $3)}\' FILE'
        return f"{SAME_AS_SOURCE} is read as text: if it stands for the word beside it, write that word, as by {remedy}"
    filled = [row for row in rows if any(row)]
    if len(filled) < MIN_ROWS_JUDGED:
        return None
    if any(all(map(SLASHES_PATTERN.fullmatch, cells)) for cells in zip(*filled, strict=False)):
        remedy = r"sed -E 's|\t/([^/]*)/.*|\t\1|' FILE"
        return f"its pronunciations stand between slashes, and are read as text: keep one a cell, as by {remedy}"
    if all(row[0].startswith("'") and any(cell.endswith("'") for cell in row) for row in filled):
        remedy = 'pandas.read_csv(FILE, header=None, quotechar="\'").to_csv(OUT, header=False, index=False)'
        return (
            f"single quotation marks around its cells are read as text: if they are none, remove them, as by {remedy}"
        )
    return None
