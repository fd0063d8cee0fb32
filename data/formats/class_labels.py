"""Names of classes that a data set stores as integers, as `ClassLabel` of Hugging Face `datasets` describes them.

The description is in the metadata of a Parquet or Arrow file, in dataset_info.json, or in the card of a folder
(README.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from tfm.data.errors import DataError
from tfm.data.json_documents import parse_json

FLOATS_REMEDY = ": classes are integers or texts (where one is missing, pandas makes floats of integers: convert them)"
"""The remedy for numbers with a point in a column of classes."""
ClassNames: TypeAlias = Mapping[str, Sequence[str]]
"""The names of the classes 0, 1, ... per column."""
HUGGINGFACE_SCHEMA_KEY = b"huggingface"
LIST_TYPES = ("Sequence", "List", "LargeList")


def feature_class_names(features: object) -> dict[str, tuple[str, ...]]:
    """The names of each column of classes, or of lists of classes.

    features: as `Features.to_dict()` has them, and so dataset_info.json and the metadata of files.
    """
    if not isinstance(features, Mapping):
        return {}
    names_by_column = {column: _names_of_feature(feature) for column, feature in features.items()}
    return {str(column): names for column, names in names_by_column.items() if names is not None}


def schema_class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """The names of each column of classes, from the metadata of an Arrow schema. Raises ValueError if it is damaged."""
    text = (schema.metadata or {}).get(HUGGINGFACE_SCHEMA_KEY)
    if text is None:
        return {}
    info = parse_json(text).get("info")
    return feature_class_names(info.get("features") if isinstance(info, Mapping) else None)


def card_class_names(front_matter: object, configuration: str | None) -> dict[str, tuple[str, ...]]:
    """The names of each column of classes, from the `dataset_info` of a card.

    Args:
        front_matter: the YAML at the top of the card.
        configuration: which one is read; none: the only one.
    """
    info = front_matter.get("dataset_info") if isinstance(front_matter, Mapping) else None
    infos = [each for each in (info if isinstance(info, list) else [info]) if isinstance(each, Mapping)]
    matches = [each for each in infos if configuration in (None, each.get("config_name", configuration))]
    if len(matches) != 1:
        return {}
    features = matches[0].get("features")
    names_by_column = (
        dict(_parse_card_feature(feature) for feature in features if isinstance(feature, Mapping)) if features else {}
    )
    return {column: names for column, names in names_by_column.items() if names}


def class_name(value: int | None, names: Sequence[str] | None, *, column: str, file: Path | str, row: int) -> str:
    """The name of a class; none is an empty text.

    Args:
        value: the integer or truth value that stands for it.
        names: the names of the classes 0, 1, ...; none: their numbers, or true and false.
        column, file, row: the place, for messages; rows count from 1.

    Raises:
        DataError: there are names, and the number has none; -1 says that a row has no class.
    """
    if value is None:
        return ""
    if not names:
        return str(value).lower()
    if not 0 <= value < len(names):
        reason = "it says that the row has no class" if value == -1 else f"its classes are 0 to {len(names) - 1}"
        raise DataError(f"row {row}: column {column!r} holds {value}: {reason}", file=file)
    return names[value]


def unused_names_problem(column: str) -> str:
    """Return why names of classes that a recipe gives are without effect for a column that holds texts."""
    return f"column {column!r} holds texts, which `classes` does not name, as it names integers: remove `classes`"


def holds_text(value: object) -> bool:
    """Return whether a cell is a text, or a list with one."""
    return any(isinstance(item, str) for item in (value if isinstance(value, list) else [value]))


def _names_of_feature(feature: object) -> tuple[str, ...] | None:
    """The names of a feature that is a class or a list of them."""
    if isinstance(feature, list) and len(feature) == 1:  # as older versions describe a list
        return _names_of_feature(feature[0])
    if not isinstance(feature, Mapping):
        return None
    if feature.get("_type") in LIST_TYPES:
        return _names_of_feature(feature.get("feature"))
    names = feature.get("names")
    if feature.get("_type") != "ClassLabel" or not isinstance(names, list):
        return None
    return tuple(map(str, names))


def _parse_card_feature(feature: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """A column and the names of its classes, if it has any; a card has them as {'0': neg, '1': pos}."""
    dtype = next((feature[key] for key in ("dtype", "sequence", "list") if key in feature), None)
    dtype = dtype.get("dtype", dtype) if isinstance(dtype, Mapping) else None
    classes = dtype.get("class_label") if isinstance(dtype, Mapping) else None
    names = classes.get("names") if isinstance(classes, Mapping) else None
    return str(feature.get("name")), tuple(_iterate_class_names(names))


def _iterate_class_names(names: object) -> Iterator[str]:
    if isinstance(names, list):
        yield from map(str, names)
    elif isinstance(names, Mapping) and sorted(names, key=str) == sorted(map(str, range(len(names)))):
        yield from (str(names[str(number)]) for number in range(len(names)))
