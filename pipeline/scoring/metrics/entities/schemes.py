"""Entities in the tags of a text, by conlleval's way or strictly by a scheme.

A tag is O, or a prefix and a type: B-PER begins an entity, I-PER (or M-) is inside it, E-PER (or L-) ends it, S-PER (or
U-, W-) is one by itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Entity: TypeAlias = tuple[int, int, str]
"""First word, word behind the last, type."""
Tag: TypeAlias = tuple[str, str]
"""Prefix and type; OUTSIDE_TAG is no entity."""

OUTSIDE_TAG: Tag = ("O", "")
PREFIXES_BY_SCHEME: Mapping[str, str] = {
    "conlleval": "BIESLUMW",
    "IOB2": "BI",
    "IOE2": "IE",
    "IOBES": "BIES",
    "BILOU": "BILU",
}
"""The prefixes that tags may have beside O, by the name of a way in a recipe."""
_TAG_PATTERN = re.compile(r"([BIESLUMW])(?:-(.*))?", re.DOTALL)
_LETTERS_OF_IOBES = str.maketrans("LUMW", "ESIS")


def parse_tag(label: str, scheme: str) -> Tag | None:
    """The tag that a label spells; None if it spells none of this way."""
    if label == "O":
        return OUTSIDE_TAG
    match = _TAG_PATTERN.fullmatch(label)
    if match is None or match[1] not in PREFIXES_BY_SCHEME[scheme]:
        return None
    return match[1].translate(_LETTERS_OF_IOBES), match[2] or "_"


def extract_entities(labels: Sequence[str], scheme: str) -> list[Entity]:
    """Return the entities in the labels of a text, in order; a label that is no tag of the scheme is outside."""
    tags = [parse_tag(label, scheme) or OUTSIDE_TAG for label in labels]
    entities: list[Entity] = []
    start = 0
    while start < len(tags):
        end = start + 1
        if not _BEGINS_ENTITY[scheme](tags[start]):
            start = end
            continue
        while end < len(tags) and continues_entity(tags[end - 1], tags[end]):
            end += 1
        if _CLOSES_ENTITY[scheme](tags[end - 1]):
            entities.append((start, end, tags[start][1]))
        start = end
    return entities


def continues_entity(previous: Tag, tag: Tag) -> bool:
    """Whether a tag is inside the entity that the one before it is in."""
    return previous[0] in "BI" and tag[0] in "IE" and previous[1] == tag[1]


_BEGINS_ENTITY: Mapping[str, Callable[[Tag], bool]] = {
    "conlleval": lambda tag: tag != OUTSIDE_TAG,
    "IOB2": lambda tag: tag[0] == "B",
    "IOE2": lambda tag: tag != OUTSIDE_TAG,
    "IOBES": lambda tag: tag[0] in "BS",
    "BILOU": lambda tag: tag[0] in "BS",
}
"""Whether an entity begins with a tag that is not inside one."""
_CLOSES_ENTITY: Mapping[str, Callable[[Tag], bool]] = {
    "conlleval": lambda last: True,
    "IOB2": lambda last: True,
    "IOE2": lambda last: last[0] == "E",
    "IOBES": lambda last: last[0] in "ES",
    "BILOU": lambda last: last[0] in "ES",
}
"""Whether a span that ends in this tag is an entity."""
