"""Entities as spans of characters, as spaCy, doccano, prodigy and Label Studio export them: named, and not read."""

import json
from collections.abc import Mapping

BEGIN_KEYS, END_KEYS, LABEL_KEYS = ("start", "start_offset"), ("end", "end_offset"), ("label", "labels")


def spans_problem(value: object) -> str | None:
    """Why a value of a row is no text: it holds spans of entities; with what to do. None if it holds none."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "result" in value[0]:
        return spans_problem([each.get("value") for each in value[0]["result"] or () if isinstance(each, dict)])
    if isinstance(value, Mapping) and "entities" in value:
        return spans_problem(value["entities"])
    if not isinstance(value, list) or not value or not _is_span(value[0]):
        return None
    remedy = "write a word and its tag a line, as docs/external/spans_to_conll.py of tfm does, and set format"
    return f'holds spans of entities ({json.dumps(value[0], ensure_ascii=False):.40}): {remedy} = "conll"'


def _is_span(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(any(key in value for key in keys) for keys in (BEGIN_KEYS, END_KEYS, LABEL_KEYS))
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(type(each) is int for each in value[:2])
        and isinstance(value[2], str)
    )
