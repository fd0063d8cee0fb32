"""JSON documents in which one place holds what none of ours holds there: every place, with every kind of value."""

import json
from collections.abc import Iterator
from typing import Any

_PLACE = "the place that is changed"
VALUES = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "negative": "-1",
    "half": "0.5",
    "too large for a float": "1" + "0" * 400,
    "too large and negative": "-1" + "0" * 400,
    "too many digits": "1" * 5000,
    "infinity": "1e400",
    "Infinity": "-Infinity",
    "NaN": "NaN",
    "tiny": "5e-324",
    "huge": "1.7e308",
    "beyond 64 bits": str(2**64),
    "an empty text": '""',
    "a text": '"x"',
    "NUL": '"a\\u0000b"',
    "control characters": '"\\u001b[2J\\r\\n\\u202e"',
    "half a character": '"\\ud800"',
    "a path": '"../../etc/passwd"',
    "a million characters": '"' + "x" * 10**6 + '"',
    "an empty list": "[]",
    "an empty object": "{}",
    "a list": '[null, 1, "x"]',
    "a list of objects": "[{}]",
    "an object": '{"x": [1]}',
    "numbers": "[NaN, 1" + "0" * 400 + "]",
    "deep": "[" * 150 + "]" * 150,
}
"""By their kind, values as JSON spells them."""


def spelled(document: object, value: str) -> str:
    """A document that `changed` made, with a value as JSON spells it at the place that is changed."""
    return json.dumps(document).replace(json.dumps(_PLACE), value)


def variants(document: object) -> Iterator[tuple[str, str]]:
    """Each variant of a document that has one place wrong: where and how, and its text."""
    for where, made in _places(document, ""):
        for kind, value in VALUES.items():
            yield f"{where}: {kind}", spelled(made, value)
    for where, without in _gaps(document, ""):
        yield f"{where}: missing", json.dumps(without)
    for where, key, made in _objects(document, ""):
        yield f"{where}: twice", spelled(made, "1").replace(json.dumps(_PLACE + key), json.dumps(key))
        yield f"{where}: a key of a million", spelled(made, "1").replace(json.dumps(_PLACE + key), f'"{"k" * 10**6}"')


def _places(document: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The document once for each value in it, with the mark at its place; of a list the first and last item."""
    yield where or "all", _PLACE
    for key, value in _items(document):
        for below, made in _places(value, f"{where}.{key}"):
            yield below, _with(document, key, made)


def _gaps(document: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The document once for each key or item in it, without it."""
    for key, value in _items(document):
        whole = dict(document) if isinstance(document, dict) else list(document)
        del whole[key]
        yield f"{where}.{key}", whole
        for below, made in _gaps(value, f"{where}.{key}"):
            yield below, _with(document, key, made)


def _objects(document: Any, where: str) -> Iterator[tuple[str, str, Any]]:
    """The document once for each object in it that has keys, with one more key that stands for its first."""
    if isinstance(document, dict) and document:
        key = next(iter(document))
        yield f"{where}.{key}", key, {**document, _PLACE + key: _PLACE}
    for key, value in _items(document):
        for below, name, made in _objects(value, f"{where}.{key}"):
            yield below, name, _with(document, key, made)


def _items(document: Any) -> list[tuple[Any, Any]]:
    if isinstance(document, dict):
        return list(document.items())
    if isinstance(document, list) and document:
        return [(place, document[place]) for place in sorted({0, len(document) - 1})]
    return []


def _with(document: Any, key: Any, value: object) -> Any:
    whole = dict(document) if isinstance(document, dict) else list(document)
    whole[key] = value
    return whole
