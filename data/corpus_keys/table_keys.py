"""Keys of a corpus that say how a file is written or what of it is read, and which formats have none.

Also those of text that a model made.
"""

import re
from pathlib import Path
from typing import Any

from tfm.tokenizer.special import TAG_PATTERN

SYNTHETIC_FILES = ("input.txt", "output.txt")
"""The files of text that a model made (`tfm synthesize`): what it read, and what it wrote, line by line."""

FORMATS_BY_KEY = {
    "delimiter": ("csv",),
    "quoting": ("tsv", "csv"),
    "header": ("tsv", "csv"),
    "filters": ("tmx", "xliff", "po"),
    "inline_tags": ("tmx", "xliff"),
}
"""The formats that each key is for."""
DELIMITER_PATTERN = re.compile(r'[^\r\n"\\ ]| [^\s"\\,;|] |[^\r\n"\\]*[^\s"\\][^\s"\\][^\r\n"\\]*')
"""One or several characters, or one between spaces; not a comma with a space, as quotation marks may follow it."""
TABLE_FORMATS = ("tsv", "csv", "jsonl", "parquet", "huggingface")
"""The formats whose rows have a cell for each column, so that several can be the source."""
UNSET_KEYS_WITH_VALUES: tuple[dict[str, Any], ...] = (
    {"images": None},
    {"image": None},
    {"classes": []},
    *({key: None} for key in (*FORMATS_BY_KEY, "synthetic", "side", "tag")),
)
"""Keys with the values that they have in a dumped config that does not set them; configs once had none of them."""


def drop_unset_keys(settings: Any) -> Any:
    """Remove keys that are not set from a dumped config, so that artifacts that were made before there were these keys
    stay fresh.
    """
    if isinstance(settings, dict):
        return {
            key: drop_unset_keys(value) for key, value in settings.items() if {key: value} not in UNSET_KEYS_WITH_VALUES
        }
    return [drop_unset_keys(value) for value in settings] if isinstance(settings, list) else settings


def table_keys_problem(corpus: Any) -> str | None:
    """The problem of a corpus (a CorpusConfig) whose keys do not go with its format; None if they do."""
    for key, formats in FORMATS_BY_KEY.items():
        if getattr(corpus, key) is not None and corpus.format not in formats:
            format_names = " and ".join(formats)
            return f'`{key}` is for format {format_names}, not for "{corpus.format}": remove it'
    if corpus.delimiter is not None and not DELIMITER_PATTERN.fullmatch(corpus.delimiter):
        return (
            f"`delimiter` is {corpus.delimiter!r}, and must be one character that separates cells, or several, as |||"
        )
    if len(corpus.delimiter or "") > 1 and corpus.quoting not in (None, "raw"):
        return f"`delimiter` {corpus.delimiter!r} has several characters, so that cells are raw: remove `quoting`"
    for condition in corpus.filters or ():
        if not re.fullmatch(r"[^=!]+!?=.*", condition, re.DOTALL):
            return f'`filters`: "{condition}" is not a filter: write NAME=VALUE or NAME!=VALUE'
    if isinstance(corpus.source, tuple) and corpus.format not in TABLE_FORMATS:
        format_names = ", ".join(TABLE_FORMATS)
        return (
            f'`source` is a list of columns, which is for tables ({format_names}), not for "{corpus.format}": name one'
        )
    if (problem := several_columns_problem(corpus.source, corpus.target)) is not None:
        return problem
    sides = (*corpus.source_columns, corpus.target, *(corpus.references or ()))
    named = [each for each in sides if not each.isdecimal()]
    if corpus.format == "conll" and (wrong := [each for each in named if each not in ("source", "target")]):
        return f'format "conll" has columns by number, from 0: replace "{wrong[0]}"'
    if corpus.header is False and named:
        return f'`header = false`: without names, columns are numbers from 0: replace "{named[0]}"'
    return None


def parse_columns(value: object) -> object:
    """A column, or several, as they are kept: without a name a column may be given as a number."""
    if isinstance(value, (list, tuple)):
        return tuple(map(parse_columns, value))
    return str(value) if type(value) is int else value


def parse_source(value: object) -> object:
    """The same of the value of `source`, which may be a column or a list of columns."""
    columns = parse_columns(value)
    column_tuple = columns if isinstance(columns, tuple) else (columns,)
    if columns is not None and not all(isinstance(each, str) for each in column_tuple):
        raise ValueError(f"`source` is a column, or a list of columns, by name or number, and not {value!r:.60}")
    return columns


def parse_target(value: object) -> object:
    """The same of the value of `target`, which is one column."""
    if isinstance(value, (list, tuple)):
        raise ValueError("`target` is one column, as a model writes one text; only `source` may be a list of columns")
    return parse_columns(value)


def split_columns(source: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns that `source` names, one or several; without a source none."""
    return () if source is None else (source,) if isinstance(source, str) else source


def several_columns_problem(source: str | tuple[str, ...] | None, target: str) -> str | None:
    """The problem of a list of columns as `source`; None if it is right or not a list."""
    if not isinstance(source, tuple):
        return None
    if not source:
        return '`source` is an empty list: name its columns, or set source = "none" for texts alone'
    if (twice := next((each for each in source if source.count(each) > 1), None)) is not None:
        return f'`source` names the column "{twice}" twice: remove one'
    if target in source:
        return f'`source` has the column "{target}", which is the target: remove it from the list'
    return None


def synthetic_text_files(folder: str, side: object) -> dict[str, str]:
    """Return the files of text that a model made, by their use in training.

    Args:
        folder: of the text.
        side: the side that the model wrote; if it is not the target, it is the source.
    """
    source_file, target_file = (str(Path(folder) / name) for name in SYNTHETIC_FILES)
    return (
        {"source": source_file, "target": target_file}
        if side == "target"
        else {"source": target_file, "target": source_file}
    )


def synthetic_problem(corpus: Any) -> str | None:
    """The problem of a corpus (a CorpusConfig) of synthetic text, or of its tag; None if there is none."""
    if corpus.synthetic is not None and corpus.format != "text":
        return f'`synthetic` is a folder of `tfm synthesize`, not of format "{corpus.format}"'
    if corpus.side is not None and corpus.synthetic is None:
        return "`side` is for text that a model made: it needs `synthetic`"
    if corpus.tag is None:
        return None
    if not re.fullmatch(TAG_PATTERN, corpus.tag):
        return f'`tag` is capital letters and digits in angle brackets, such as "<BT>", not {corpus.tag!r:.60}'
    if not corpus.has_source or corpus.has_images:
        return "`tag` is for sources of text, and this corpus has none: remove it"
    return None
