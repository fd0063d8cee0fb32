"""Files of JSON lines that ask which of some texts is likelier: questions with choices, and contrast sets.

    {"context": "The sky is", "choices": [" blue.", " heavy."], "answer": 0}
    {"source": "The cat slept because it was tired.", "right": "… weil sie müde war.", "wrong": ["… weil er müde war."]}

`id` and `category` may stand in each line; other keys are not looked at.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tfm.data.errors import DataError, format_count, format_names
from tfm.data.lines import open_lines
from tfm.data.synthetic import registry

AlternativeKind: TypeAlias = Literal["choices", "contrast"]
Row: TypeAlias = Mapping[str, Any]
MAX_CHARACTERS_SHOWN = 40  # characters of a value in an error
EXAMPLES: Mapping[AlternativeKind, str] = {
    "choices": '{"context": "...", "choices": ["...", "..."], "answer": 0}',
    "contrast": '{"right": "...", "wrong": "..."}',
}
"""By kind, a line that is an item."""


@dataclass(frozen=True)
class AlternativeItem:
    """A context and two or more texts, of which one is right.

    Args:
        line: its number, from 1.
        context: of a translation: the source.
        alternatives: the texts.
        answer: the index of the right one.
        category: of the item, if it has one.
        row: the line as it was read, without the keys that are not looked at.
    """

    line: int
    context: str
    alternatives: tuple[str, ...]
    answer: int
    category: str | None
    row: Row


@dataclass(frozen=True)
class AlternativeSet:
    """The items of a file, or of a built-in corpus, by its name."""

    name: str
    items: tuple[AlternativeItem, ...]


class _InvalidItemError(Exception):
    """Problem with a line."""


class _OtherFormError(_InvalidItemError):
    """The line is an item of another form."""


def read_alternatives(file: Path, kind: AlternativeKind) -> AlternativeSet:
    """The items of a file of JSON lines. Raises DataError, naming file, line and value, if one is not valid."""
    items = tuple(_read_items(file, kind))
    if not items:
        raise DataError("contains no line: there is nothing to score", file=file)
    return AlternativeSet(str(file), items)


def is_built_in(source: str, kind: AlternativeKind) -> bool:
    """Whether a name is that of a built-in contrast set; where a file has that name, it is the file."""
    return kind == "contrast" and source in registry.GENERATORS_WITH_CONTRASTS and not Path(source).exists()


def built_in_sets(name: str) -> list[AlternativeSet]:
    """The contrast sets of a built-in corpus, one for each split."""
    return [
        AlternativeSet(f"{name} {split}", tuple(parse_item(row, line, "contrast") for line, row in enumerate(rows, 1)))
        for split, rows in registry.contrast_sets(name).items()
    ]


def parse_item(row: Row, line: int, kind: AlternativeKind) -> AlternativeItem:
    """Return the item of a line.

    Args:
        row: the object in the line.
        line: its number, from 1.
        kind: of the items.

    Raises:
        _InvalidItemError: the object is no item.
    """
    context, alternatives, answer = ROW_PARSERS[kind](row)
    for number, text in enumerate(alternatives):
        if text in alternatives[:number]:
            raise _InvalidItemError(f"{_format_value(text)} comes twice among its texts: no model can tell them apart")
    identity = row.get("id")
    if isinstance(identity, bool) or not isinstance(identity, str | int | None):
        raise _InvalidItemError(f'"id" is {_format_value(identity)}, not a text or a whole number')
    category = None if row.get("category") is None else _get_text(row, "category") or None
    fields = {name: row[name] for name in ROW_KEYS[kind] if row.get(name) is not None}
    return AlternativeItem(line, context, alternatives, answer, category, fields)


def _read_items(file: Path, kind: AlternativeKind) -> Iterator[AlternativeItem]:
    for number, line in enumerate(open_lines(file), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON: {error}; {_format_remedy(kind)}", file=file, line=number) from None
        try:
            if not isinstance(row, dict):
                raise _OtherFormError(f"{_format_value(row)} is not a JSON object")
            yield parse_item(row, number, kind)
        except _OtherFormError as wrong:
            raise DataError(f"{wrong}; {_format_remedy(kind)}", file=file, line=number) from None
        except _InvalidItemError as wrong:
            raise DataError(str(wrong), file=file, line=number) from None


def _format_remedy(kind: AlternativeKind) -> str:
    return f"a line is {EXAMPLES[kind]}: docs/scores/likelier.md has what writes such lines of published sets"


def _parse_choices(row: Row) -> tuple[str, tuple[str, ...], int]:
    context, choices = _get_text(row, "context"), _get_texts(row, "choices")
    if len(choices) < 2:
        raise _InvalidItemError(f'"choices" has {format_count(len(choices), "text")}: give two or more')
    answer = _get_value(row, "answer")
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(choices):
        raise _InvalidItemError(
            f'"answer" is {_format_value(answer)}: give the place of the right choice, 0 to {len(choices) - 1}'
        )
    return context, choices, answer


def _parse_contrast(row: Row) -> tuple[str, tuple[str, ...], int]:
    wrong = (_get_text(row, "wrong"),) if isinstance(_get_value(row, "wrong"), str) else _get_texts(row, "wrong")
    if not wrong:
        raise _InvalidItemError('"wrong" is empty: give one wrong text or more')
    source = "" if row.get("source") is None else _get_text(row, "source")
    return source, (_get_text(row, "right"), *wrong), 0


ROW_PARSERS: Mapping[AlternativeKind, Callable[[Row], tuple[str, tuple[str, ...], int]]] = {
    "choices": _parse_choices,
    "contrast": _parse_contrast,
}
ROW_KEYS: Mapping[AlternativeKind, tuple[str, ...]] = {
    "choices": ("id", "category", "context", "choices", "answer"),
    "contrast": ("id", "category", "source", "right", "wrong"),
}


def _get_value(row: Row, key: str) -> Any:
    if key not in row:
        raise _OtherFormError(f'there is no "{key}"; it has {format_names(row) or "nothing"}')
    return row[key]


def _get_text(row: Row, key: str) -> str:
    return _check_text(_get_value(row, key), f'"{key}"')


def _get_texts(row: Row, key: str) -> tuple[str, ...]:
    values = _get_value(row, key)
    if not isinstance(values, list):
        raise _InvalidItemError(f'"{key}" is {_format_value(values)}, not a list of texts')
    return tuple(_check_text(each, f'text {number} of "{key}"') for number, each in enumerate(values, 1))


def _check_text(value: object, field_name: str) -> str:
    if not isinstance(value, str):
        raise _InvalidItemError(f"{field_name} is {_format_value(value)}, not a text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _InvalidItemError(f"{field_name} contains half a surrogate pair, which is not a character")
    return value


def _format_value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CHARACTERS_SHOWN else f"{text[:MAX_CHARACTERS_SHOWN]}..."
