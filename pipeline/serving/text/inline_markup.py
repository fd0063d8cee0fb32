"""The markup inside of a sentence, as a tree whose leaves stand at characters of the sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

TagKind = Literal["open", "close", "point", "unit"]
MAX_DEPTH = 100
"""Elements within one another; tags of more stay in their order."""


@dataclass(frozen=True)
class InlineTag:
    """A tag, or what is kept whole, in a stretch of text.

    position: the character before which it stands. kind: "point" is a comment, an image and all else without text to be
    read; "unit" stands for one character of the stretch, and is read as `text`, which is not translated.
    """

    position: int
    kind: TagKind
    raw: str
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class MarkupPoint:
    """Markup at a place: a comment, an image, an empty element."""

    position: int
    raw: str


@dataclass(frozen=True)
class VerbatimUnit:
    """Text from `start` to `end` that stands in a translation as `raw`, not translated."""

    start: int
    end: int
    raw: str


@dataclass(frozen=True)
class UnpairedTag:
    """A tag whose partner is outside of the sentence, or that is not nested properly: it stays in its order."""

    position: int
    raw: str


@dataclass(frozen=True)
class Element:
    """An element with text from `start` to `end`, between its two tags."""

    start: int
    end: int
    opening: str
    closing: str
    content: "tuple[InlineMarkup, ...]"


InlineMarkup: TypeAlias = MarkupPoint | VerbatimUnit | UnpairedTag | Element


def build_markup_tree(tags: Sequence[InlineTag], units: Sequence[tuple[int, int]]) -> tuple[InlineMarkup, ...]:
    """Return the markup of a sentence as a tree.

    Tags without a partner are dividers, which stand at the top; where tags are not nested properly, all are.

    Args:
        tags: of the sentence, in order, their places in the text that is translated.
        units: the spans of the units there, in order.
    """
    partners = match_tags(tags)
    if partners is None:
        return tuple(UnpairedTag(tag.position, tag.raw) for tag in tags)
    spans = iter(units)
    levels: list[list[InlineMarkup]] = [[]]
    openings: list[InlineTag] = []
    for number, tag in enumerate(tags):
        if tag.kind == "unit":
            levels[-1].append(VerbatimUnit(*next(spans), tag.raw))
        elif tag.kind == "point":
            levels[-1].append(MarkupPoint(tag.position, tag.raw))
        elif number not in partners:
            levels[-1].append(UnpairedTag(tag.position, tag.raw))
        elif tag.kind == "open":
            openings.append(tag)
            levels.append([])
        else:
            content, opening = levels.pop(), openings.pop()
            levels[-1].append(Element(opening.position, tag.position, opening.raw, tag.raw, tuple(content)))
    return tuple(levels[0])


def match_tags(tags: Sequence[InlineTag]) -> dict[int, int] | None:
    """Return the number of the partner of each tag that has one; None if tags cross, or are nested too deeply.

    A tag without a partner inside of an element that ends counts as crossing too.
    """
    partners: dict[int, int] = {}
    open_tags: list[int] = []
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            open_tags.append(number)
            if len(open_tags) > MAX_DEPTH:
                return None
        elif tag.kind == "close":
            if open_tags and tags[open_tags[-1]].name == tag.name:
                first = open_tags.pop()
                partners[first], partners[number] = number, first
            elif open_tags:
                return None
    return partners
