"""The corpus that a single file is, as a recipe says it: by the ending of its name, and by how it begins."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from tfm.data.compression.files import strip_compression_ending
from tfm.data.corpora.dialects import find_delimiter, find_tsv_quoting, split_rows
from tfm.data.corpora.json_rows import keys_of_first_row
from tfm.data.errors import DataError, escape_unprintable
from tfm.data.formats.parquet import read_parquet
from tfm.data.formats.translations.tmx import languages_of_first_unit
from tfm.data.lines import open_lines, open_maybe_compressed

FORMAT_BY_EXTENSION = {
    "csv": "csv", "tsv": "tsv", "tab": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl",
    "parquet": "parquet", "conllu": "conllu", "conll": "conll", "iob": "conll", "iob2": "conll", "bio": "conll",
    "tmx": "tmx", "xlf": "xliff", "xliff": "xliff", "po": "po",
}  # fmt: skip
"""By the ending of a name."""
FORMATS_WITH_DEFAULTS = ("conllu", "conll", "xliff", "po", "labelled")
"""Formats whose columns need no names."""
COLUMN_NAME_PATTERN = re.compile(r"(?!(?:\S* ){4})[^\W\d][\w .:/()-]{0,39}")
"""A cell that may be the name of a column, of at most four words."""
TAG_PATTERN = re.compile(r"(?:[BIESLUM]-\S+|O)")
MAX_LINES_SAMPLED = 50


def suggest_corpus_table(path: Path, source: str | None, target: str) -> str:
    """A TOML table for `data.train` that reads a file, and in words what else it may be.

    Args:
        path: the file.
        source, target: columns that the recipe names, which are taken where the file has them; without a source the
            texts are read alone.
    """
    format_ = FORMAT_BY_EXTENSION.get(strip_compression_ending(path.name.lower()).rpartition(".")[2], "")
    names: Sequence[str | int]
    try:
        format_ = format_ or _detect_content_format(path)
        names, is_sure = _detect_columns(path, format_)
    except (DataError, ValueError, OSError):  # whatever is wrong with it, reading it will say
        format_, is_sure = format_ or "text", True
        names = [0, 1] if format_ in ("csv", "tsv") else [each for each in (source, target) if each is not None]
    alone = f'{{ source = "none", target = "{path}" }}'
    if format_ == "text" and source is None:
        return alone
    if format_ == "text":
        pair = f'{{ source = "{path}", target = "OTHER" }}'
        return f"{pair}, where line i of OTHER is the translation of line i, or {alone} for texts alone"
    table = f'{{ format = "{format_}", path = "{path}"'
    if format_ in FORMATS_WITH_DEFAULTS:
        return table + " }"
    columns = _choose_columns(names, source, target)
    said = f"{table}, {_format_toml_columns(*columns)} }}"
    if is_sure:
        return said
    first, second = (None if each is None else names.index(each) for each in columns)
    return f"{said}, or {_format_toml_columns(first, second or 0)} if its first row is not a header"


def _choose_columns(names: Sequence[str | int], source: str | None, target: str) -> tuple[str | int | None, str | int]:
    if target in names and (source is None or source in names):
        return source, target
    if len(names) < 2 or source is None:
        return None, names[-1] if names else target
    return names[0], names[1]


def _format_toml_columns(source: str | int | None, target: str | int) -> str:
    first = '"none"' if source is None else _toml_value(source)
    return f"source = {first}, target = {_toml_value(target)}"


def _toml_value(column: str | int) -> str:
    return str(column) if isinstance(column, int) else f'"{escape_unprintable(column)[:80]}"'


def _detect_content_format(path: Path) -> str:
    with open_maybe_compressed(path) as stream:
        head = stream.read(200).lstrip(b"\xef\xbb\xbf \r\n\t")
    if head.startswith(b"<") and (match := re.search(rb"<(tmx|xliff)[\s>]", head)) is not None:
        return match[1].decode()
    if head.startswith((b"{", b"[{")):
        return "jsonl"
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = list(islice(open_lines(path), MAX_LINES_SAMPLED))
    filled = [line for line in lines if line.strip()]
    if filled and (all(line.startswith("__label__") for line in filled) or _have_class_labels(filled)):
        return "labelled"
    cells = [line.split() for line in filled if not line.startswith("-DOCSTART-")]
    if (
        cells
        and len(cells[0]) > 1
        and all(len(each) == len(cells[0]) and TAG_PATTERN.fullmatch(each[-1]) for each in cells)
    ):
        return "conll"
    return "tsv" if filled and all("\t" in line for line in filled) else "text"


def _have_class_labels(lines: Sequence[str]) -> bool:
    """Whether each line begins with the number of a class and goes on behind a space; numbered lines do not."""
    matches = [re.match(r"[0-9] [^\t]*\Z", line) for line in lines]
    classes = {match[0][0] for match in matches if match is not None}
    return None not in matches and 2 * len(classes) <= len(lines)


def _detect_columns(path: Path, format_: str) -> tuple[Sequence[str | int], bool]:
    """The names of a file's columns, or their numbers, and whether it is sure that these are names."""
    if format_ == "jsonl":
        return keys_of_first_row(path), True
    if format_ == "parquet":
        with open_maybe_compressed(path) as stream:
            return next(read_parquet(cast(BinaryIO, stream), lambda _: [])).column_names, True
    if format_ == "tmx":
        return languages_of_first_unit(path), True
    if format_ not in ("csv", "tsv"):
        return [], True
    delimiter = "\t" if format_ == "tsv" else find_delimiter(path, ["1"], is_headed=False)
    quoting = find_tsv_quoting(path) if format_ == "tsv" else "double"
    rows = [row for _, row in islice(split_rows(path, delimiter, quoting), MAX_LINES_SAMPLED) if any(row)]
    first = rows[0] if rows else ["", ""]
    is_header = all(COLUMN_NAME_PATTERN.fullmatch(cell) for cell in first) and len({*first}) == len(first)
    is_header = is_header and not any(
        cell in row[place : place + 1] for row in rows[1:] for place, cell in enumerate(first)
    )
    return (first, False) if is_header else (range(len(first)), True)
