"""Entities as spans of characters, as spaCy, doccano, prodigy, Label Studio and Rasa have them, by kind and text, as
CLUENER, or as parts of a text, as SNIPS: named, and not read.
"""

import json
from collections.abc import Mapping, Sequence

BEGIN_KEYS, END_KEYS, LABEL_KEYS = (
    ("start", "start_offset"),
    ("end", "end_offset"),
    ("label", "labels", "entity", "entity_group"),
)
PART_KEYS = {"text", "entity"}


def spans_problem(value: object) -> str | None:
    """Why a value of a row is no text: it holds spans of entities; with what to do. None if it holds none."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "result" in value[0]:
        return spans_problem([each.get("value") for each in value[0]["result"] or () if isinstance(each, dict)])
    if isinstance(value, Mapping) and "entities" in value:
        return spans_problem(value["entities"])
    if isinstance(value, Mapping) and value and all(map(_has_places_by_text, value.values())):
        value = [value]
    elif not isinstance(value, list) or not value or not (_is_span(value[0]) or _are_parts(value)):
        return None
    remedy = "write a word and its tag a line, as docs/external/spans_to_conll.py of tfm does, and set format"
    return f'holds spans of entities ({json.dumps(value[0], ensure_ascii=False):.40}): {remedy} = "conll"'


def _has_places_by_text(value: object) -> bool:
    """Whether a value has, by their texts, the places of the entities of a kind: {"Bonn": [[3, 6]]}."""
    return isinstance(value, Mapping) and bool(value) and all(map(_are_places, value.values()))


def _are_places(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, list) and len(each) == 2 and all(type(edge) is int for edge in each) for each in value)
    )


def _are_parts(values: Sequence[object]) -> bool:
    """Whether objects are parts of a text, some of which are entities: {"text": "Bonn", "entity": "x"}."""
    keys = [{*value} if isinstance(value, Mapping) else set() for value in values]
    return PART_KEYS in keys and all({"text"} <= each <= PART_KEYS for each in keys)


def _is_span(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(any(key in value for key in keys) for keys in (BEGIN_KEYS, END_KEYS, LABEL_KEYS))
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(type(each) is int for each in value[:2])
        and isinstance(value[2], str)
    )
