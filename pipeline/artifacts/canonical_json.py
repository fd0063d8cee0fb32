"""JSON values as manifests hold them: made plain, compared, and hashed in one canonical spelling."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import PurePath
from typing import TypeAlias, TypeGuard, Union

MANIFEST_FILE = "manifest.json"
JSON: TypeAlias = Union["Mapping[str, JSON]", "Sequence[JSON]", str, int, float, bool, None]


def to_jsonable(value: object) -> JSON:
    """The value as strict JSON has it: tuples as lists, paths as text, numbers without end as text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):  # NumPy's numbers among them
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_jsonable(each) for each in value]
    raise TypeError(f"{type(value).__name__} cannot be stored in a manifest: {value!r}")


def flatten_keys(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of nested objects that are not objects, by dotted key."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten_keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def find_differences(old: object, new: object, key: str = "") -> dict[str, tuple[object, object]]:
    """Compare two JSON values, and return their differences by dotted key in the order of the keys: (old, new).

    Lists of as many objects are compared object by object, whose numbers, from 0, are keys, as --set has them.

    Args:
        old: one value.
        new: the other.
        key: the dotted key of both, if they are parts of others.
    """
    if _is_list_of_objects(old) and _is_list_of_objects(new) and len(old) == len(new):
        old, new = ({str(number): child for number, child in enumerate(values)} for values in (old, new))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        differences: dict[str, tuple[object, object]] = {}
        for child in sorted(old.keys() | new.keys()):
            differences |= find_differences(old.get(child), new.get(child), f"{key}.{child}" if key else child)
        return differences
    return {} if old == new else {key: (old, new)}


def _is_list_of_objects(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    return isinstance(value, list) and all(isinstance(each, Mapping) for each in value)


def sha256_of_json(value: object) -> str:
    """sha256, in hex, of the value's canonical JSON: keys sorted, no spaces, ASCII."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
