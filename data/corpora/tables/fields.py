"""The fields of a row of JSON or Parquet by the names that a recipe has for them: dotted, or of languages."""

from collections.abc import Iterator, Mapping

from tfm.data.corpora.tables.values import is_file_object
from tfm.data.corpora.tables.variable_languages import has_variable_languages


def row_fields(row: Mapping[str, object]) -> Mapping[str, object]:
    """A row, with what is in its fields that are objects beside it, or what is in its field `translation`, as on the
    Hub.
    """
    row = {name: value for name, each in row.items() for name, value in _language_texts(name, each)}
    nested = row.get("translation")
    return nested if isinstance(nested, dict) else dict(_fields(row))


def _fields(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The fields of a row by their dotted names, those within objects last."""
    objects = {name: value for name, value in row.items() if isinstance(value, dict)}
    yield from ((name, value) for name, value in row.items() if name not in objects)
    for name, value in objects.items():
        if not is_file_object(value):
            yield from ((f"{name}.{key}", each) for key, each in _fields(value))


def _language_texts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """A cell with its name, or a text for each of its languages, where these vary from row to row."""
    if not has_variable_languages(value):
        yield name, value
        return
    for language, text in zip(value["language"], value["translation"], strict=True):
        yield str(language) if name == "translation" else f"{name}.{language}", text
