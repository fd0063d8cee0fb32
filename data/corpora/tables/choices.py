"""Tables of questions with choices, one of which is right, as of COPA, HellaSwag, PIQA, RACE and MMLU, and of sentences
beside wrong ones, as of BLiMP: no pairs of texts.
"""

import re
import string
from collections.abc import Mapping, Sequence

from tfm.data.corpora.tables.layouts import MIN_ROWS_JUDGED

CHOICE_SERIES = re.compile(
    r"(?P<stem>(?:.*(?:choice|ending|option|answer|sol|solution|alternative|candidate|hyp|hypothesis|quiz|op|distractor)"
    r"s?[._ ]?)?)(?P<place>\d|[a-e])",
    re.IGNORECASE,
)
"""A column of one choice: its name ends in a number or a letter, or is one."""
CHOICE_LISTS = ("choices", "endings", "options", "candidates", "alternatives")
"""Columns with all choices of a question in a list."""
ANSWER_LISTS = ("answers", "choice")
"""Columns with all choices, or with all right answers."""
CHOICES_IN_TEXT = re.compile(r".*\(?\ba ?\).*\bb ?\).*", re.IGNORECASE | re.DOTALL)
"""A text with its choices in it: (A) the femur (B) the tibia; or a ) 38 , b ) 27."""
LIST_OF_TEXTS = re.compile(r"\[.*\]|\{.*\}", re.DOTALL)
RIGHT_END, WRONG_END = "good", "bad"
"""How the names of columns end that hold a right text and a wrong one, as of BLiMP."""
FIRST_PLACES = {"0", "1", "a", "A"}
MIN_CHOICES, MIN_NAMELESS_CHOICES, MAX_LETTERS = 2, 3, 10
"""Choices of a question; columns that are called by letters alone, and texts in a list that may be one answer in other
words, are choices only if they are three.
"""

Rows = Sequence[Mapping[str, object]]


def choices_problem(rows: Rows) -> str | None:
    """Return the reason why rows are no pairs: they are questions with choices, or contrasts; None if they are not."""
    if (pair := _contrast_columns(list(rows[0]) if rows else [])) is not None:
        return (
            f"its rows are right and wrong texts ({', '.join(pair)}): `tfm evaluate --contrast FILE` asks a model, of "
            'rows of JSON such as {"right": "...", "wrong": "..."}, as docs/scores/likelier.md writes them; '
            "data.train reads single columns as texts"
        )
    columns = _choice_columns(rows)
    return _problem_of(", ".join(columns)) if columns else None


def unnamed_choices_problem(rows: Sequence[Sequence[str]]) -> str | None:
    """Return the reason why rows without a header are no pairs: the last of their columns is the letter of the right
    one of the choices before it, as of MMLU; None if it is not.
    """
    width = len(rows[0]) if rows else 0
    if any(len(row) != width for row in rows) or not _are_letters([row[-1] for row in rows if row], width - 2):
        return None
    num_choices = min(width - 2, max(_places([row[-1] for row in rows])) + 1)
    return _problem_of(f"columns {width - 1 - num_choices} to {width - 2}")


def _problem_of(columns: str) -> str:
    return (
        f"its rows are questions with choices ({columns:.60}), and another column says which is right: "
        "`tfm evaluate --choices FILE` asks a model, of rows of JSON such as "
        '{"context": "...", "choices": ["...", "..."], "answer": 0}, as docs/scores/likelier.md writes them; '
        "data.train reads single columns as texts"
    )


def _contrast_columns(names: Sequence[str]) -> tuple[str, str] | None:
    """The names of the columns that hold a right text and a wrong one; None if there are no such columns."""
    for name in names:
        if name.endswith(RIGHT_END) and (wrong := name.removesuffix(RIGHT_END) + WRONG_END) in names:
            return name, wrong
    return None


def _choice_columns(rows: Rows) -> list[str]:
    """The names of the columns that hold choices; none if there are no such columns."""
    names = list(rows[0]) if rows else []
    for name in names:
        parts = {*name.lower().split(".")}
        cells = [row.get(name) for row in rows]
        if not parts.isdisjoint(CHOICE_LISTS) and all(map(_are_choices, cells)):
            return [name]
        if not parts.isdisjoint(ANSWER_LISTS) and _are_chosen_by_number(name, rows):
            return [name]
    series: dict[str, list[re.Match[str]]] = {}
    for match in filter(None, map(CHOICE_SERIES.fullmatch, names)):
        series.setdefault(match["stem"], []).append(match)
    for stem, matches in series.items():
        columns = [match[0] for match in matches]
        has_enough = len(columns) >= MIN_CHOICES if stem else _are_answered_letters(columns, rows)
        if has_enough and not FIRST_PLACES.isdisjoint(match["place"] for match in matches):
            return columns
    return _columns_of_choices_in_text(names, rows)


def _are_answered_letters(names: Sequence[str], rows: Rows) -> bool:
    """Whether columns are called by the first letters, and another one has such letters, or numbers, in its cells."""
    letters = string.ascii_uppercase[: len(names)]
    if len(names) < MIN_NAMELESS_CHOICES or [name.upper() for name in names] != [*letters]:
        return False
    values = {*letters, *letters.lower(), *map(str, range(len(names) + 1))}
    others = (name for name in rows[0] if name not in names)
    return any({str(row.get(name)).strip() for row in rows} <= values for name in others)


def _columns_of_choices_in_text(names: Sequence[str], rows: Rows) -> list[str]:
    """The column whose texts have their choices in them, if another has the letter of the right one."""
    columns = {name: [str(row.get(name, "")) for row in rows] for name in names}
    has_letters = any(_are_letters(cells, MAX_LETTERS) for cells in columns.values())
    with_choices = (name for name, cells in columns.items() if all(map(CHOICES_IN_TEXT.fullmatch, cells)))
    return [*with_choices][:1] if has_letters else []


def _are_choices(value: object) -> bool:
    """Whether a value is a list of texts, of objects that have one, or of such lists, one for each question; or the
    text that Python writes for it, as in a table.
    """
    if isinstance(value, str):
        return LIST_OF_TEXTS.fullmatch(value.strip()) is not None
    if not isinstance(value, list) or not value:
        return False
    if all(isinstance(each, list) for each in value):
        return all(map(_are_choices, value))
    texts = [each.get("text") if isinstance(each, dict) else each for each in value]
    return len(texts) >= MIN_CHOICES and all(isinstance(each, str) for each in texts)


def _are_chosen_by_number(name: str, rows: Rows) -> bool:
    """Whether a column has as many texts in each row, and another the number of one of them."""
    cells = [row.get(name) for row in rows]
    sizes = {len(cell) if isinstance(cell, list) and _are_choices(cell) else 0 for cell in cells}
    if len(sizes) > 1 or max(sizes) < MIN_NAMELESS_CHOICES:
        return False
    others = ([row.get(other) for row in rows] for other in rows[0] if other != name)
    return any(
        all(type(value) is int and 0 <= value <= max(sizes) for value in values) and len({*map(str, values)}) > 1
        for values in others
    )


def _are_letters(cells: Sequence[str], max_letters: int) -> bool:
    """Whether cells are letters of the first max_letters of the alphabet, in one case, and several of them."""
    values = {cell.strip() for cell in cells}
    if len(cells) < MIN_ROWS_JUDGED or len(values) < MIN_CHOICES or max_letters < MIN_CHOICES:
        return False
    alphabets = (string.ascii_uppercase, string.ascii_lowercase)
    return any(values <= {*letters[:max_letters]} for letters in alphabets)


def _places(letters: Sequence[str]) -> list[int]:
    return [string.ascii_uppercase.index(letter.strip().upper()) for letter in letters]
