"""Tables of questions with choices, one of which is right, as of COPA, HellaSwag, PIQA and RACE: no pairs of texts."""

import re
from collections.abc import Mapping, Sequence

CHOICE_SERIES = re.compile(
    r"(?P<stem>.*(?:choice|ending|option|answer|sol|solution|alternative|candidate|hyp|hypothesis|quiz|op)[_ ]?)"
    r"(?P<place>\d|[a-e])",
    re.IGNORECASE,
)
"""A column of one choice: its name ends in a number or a letter."""
CHOICE_LISTS = ("choices", "endings", "options", "candidates", "alternatives")
"""Columns with all choices of a question in a list."""
FIRST_PLACES = ("0", "1", "a", "A")
MIN_CHOICES = 2

Rows = Sequence[Mapping[str, object]]


def choices_problem(rows: Rows) -> str | None:
    """Return the reason why rows are no pairs: they are questions with choices; None if they are not."""
    columns = _choice_columns(rows)
    if not columns:
        return None
    return (
        f"its rows are questions with choices ({', '.join(columns):.60}), of which another column names the right one: "
        "`tfm evaluate --choices FILE` asks a model, of rows of JSON such as "
        '{"context": "...", "choices": ["...", "..."], "answer": 0}; data.train reads single columns as texts'
    )


def _choice_columns(rows: Rows) -> list[str]:
    """The names of the columns that hold choices; none if there are no such columns."""
    names = list(rows[0]) if rows else []
    for name in names:
        parts = name.lower().split(".")
        if not {*parts}.isdisjoint(CHOICE_LISTS) and all(_are_choices(row.get(name)) for row in rows):
            return [name]
    series: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for name in names:
        if (match := CHOICE_SERIES.fullmatch(name)) is not None:
            series.setdefault(match["stem"], []).append(name)
            places.setdefault(match["stem"], match["place"])
    return next(
        (each for stem, each in series.items() if len(each) >= MIN_CHOICES and places[stem] in FIRST_PLACES), []
    )


def _are_choices(value: object) -> bool:
    """Whether a value is a list of texts, of objects that have one, or of such lists, one for each question."""
    if not isinstance(value, list) or not value:
        return False
    if all(isinstance(each, list) for each in value):
        return all(map(_are_choices, value))
    texts = [each.get("text") if isinstance(each, dict) else each for each in value]
    return len(texts) >= MIN_CHOICES and all(isinstance(each, str) for each in texts)
