"""Values of tables that are no texts: each kind with what makes texts of it. None is turned into text unasked.

The fields of objects are named as a recipe names them: dotted, or by language.
"""

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from tfm.data.corpora.tables.structures import jq_path, value_problem
from tfm.data.corpora.tables.variable_languages import has_variable_languages
from tfm.data.errors import format_names
from tfm.data.formats.class_labels import FLOATS_REMEDY

NUMBERS_REMEDY = ": write them as texts"
TIMES_REMEDY = ": write texts in their place, in the form that is to be read"
BYTES_REMEDY = ': bytes are no text until they are decoded, as by Series.str.decode("utf-8") of pandas'
MAPS_REMEDY = ": write a column for each key that is read"
AUDIO_REMEDY = ": these are recordings, and tfm reads no sound"
FILES_REMEDY = ': images are sources by image = "{name}" (format = "huggingface"), and of recordings tfm reads no sound'
ROWS = "((arrays | .[]), objects)"
"""The rows of a file to jq, whether they are in an array or one a line."""
JSON_LINES_REMEDY = ' (of JSON Lines, as by pandas.read_parquet(FILE).to_json(OUT, orient="records", lines=True))'
REMEDIES_BY_KIND: Mapping[Callable[[pa.DataType], bool], str] = {
    pa.types.is_temporal: TIMES_REMEDY,
    pa.types.is_map: MAPS_REMEDY,
    pa.types.is_binary: BYTES_REMEDY,
    pa.types.is_large_binary: BYTES_REMEDY,
    pa.types.is_binary_view: BYTES_REMEDY,
    pa.types.is_fixed_size_binary: BYTES_REMEDY,
}
"""Remedies by kind of an Arrow type; any other kind is of numbers."""
FILE_FIELDS = frozenset({"bytes", "path"})
"""The fields of a recording or image, as `datasets` writes one."""
DECODED_AUDIO_FIELDS = frozenset({"array", "sampling_rate"})


def number_remedy(value: object, *, may_be_class: bool) -> str:
    """The remedy for a number or truth value where a text is read.

    may_be_class: whether an integer would have been a class.
    """
    return FLOATS_REMEDY if isinstance(value, float) and may_be_class else NUMBERS_REMEDY


def object_remedy(name: str, value: object) -> str:
    """The remedy for an object, or a list of lists or objects, in a column; empty for other values.

    name: of the column.
    """
    if isinstance(value, Mapping):
        return _fields_remedy(name, value)
    inner = next((each for each in value if each is not None), None) if isinstance(value, list) else None
    if isinstance(inner, list):
        return (
            f": these are lists of lists: write a list of texts, as by jq -c '{ROWS} | {jq_path(name)} |= flatten' FILE"
        )
    if isinstance(inner, Mapping):
        field = next((key for key, each in inner.items() if isinstance(each, str)), None)
        remedy = (
            "write the text of one"
            if field is None
            else f"write a text of one, as by jq -c '{ROWS} | {jq_path(name)} |= (.[0] | {jq_path(field)})' FILE"
        )
        return f": these are lists of objects ({format_names(inner, max_chars=60)}): {remedy}"
    return ""


def arrow_remedy(name: str, data_type: pa.DataType, *, may_be_class: bool) -> str:
    """The remedy for a column of an Arrow table that holds no text.

    Args:
        name: of the column.
        data_type: its type.
        may_be_class: whether integers would have been classes.
    """
    value_type = data_type.value_type if is_list_type(data_type) else data_type
    if pa.types.is_struct(value_type) or is_list_type(value_type):
        value = _example(data_type)
        problem = value_problem(name, value)
        remedy = object_remedy(name, value) if problem is None else f": it {problem}"
        return remedy + JSON_LINES_REMEDY * ("jq" in remedy)
    if pa.types.is_floating(value_type):
        return number_remedy(0.0, may_be_class=may_be_class)
    return next((remedy for is_kind, remedy in REMEDIES_BY_KIND.items() if is_kind(value_type)), NUMBERS_REMEDY)


def is_list_type(data_type: pa.DataType) -> bool:
    """Whether a column is of lists."""
    return bool(pa.types.is_list(data_type) or pa.types.is_large_list(data_type))


def _example(data_type: pa.DataType) -> object:
    """A value of a type as JSON has it, in which texts are empty and all else is null."""
    if is_list_type(data_type):
        return [_example(data_type.value_type)]
    if pa.types.is_struct(data_type):
        fields = (data_type.field(index) for index in range(data_type.num_fields))
        return {field.name: _example(field.type) for field in fields}
    return "" if pa.types.is_string(data_type) or pa.types.is_large_string(data_type) else None


def _fields_remedy(name: str, value: Mapping[str, object]) -> str:
    """The remedy for an object: a recording, an image, or one with fields of which each is a column."""
    if is_file_object(value):
        return AUDIO_REMEDY if {*value} >= DECODED_AUDIO_FIELDS else FILES_REMEDY.format(name=name)
    if has_variable_languages(value):
        return f": name a language in it, as {name}.en"
    return f": name what is read in it, as {name}.{next(iter(value))}" if value else ""


def is_file_object(value: Mapping[str, object]) -> bool:
    """Whether an object is a recording or image, as `datasets` writes one: its bytes and path, or its samples."""
    return {*value} == FILE_FIELDS or {*value} >= DECODED_AUDIO_FIELDS


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
