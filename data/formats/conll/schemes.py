"""Tags of spans, one a word (B-PER, I-PER, O; of a single type B, I, O): which scheme they follow, and where not.

Schemes: IOB1 (Ramshaw and Marcus 1995; B only between two spans of one type), IOB2 or BIO (B begins each span), IOE1
and IOE2 (the same with E, which ends a span), IOBES and, with other letters, BILOU, BMES and BMEWO (E ends a span, S is
one of a single word).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tfm.data.errors import format_count

TAG_LETTERS = "BIESLUMW"
TAG_PATTERN = re.compile(rf"(?:([{TAG_LETTERS}])(?:-(.+))?|O)")
ENTITY_TAG_PATTERN = re.compile(rf"[{TAG_LETTERS}]-(\S+)|O")
"""A tag of a span with a type, or outside of all, as cells of unknown files are: letters alone may be words."""
LETTERS_WITHIN_SPANS: Mapping[str, str] = {"IOB2": "I", "IOB1": "B", "IOE2": "I", "IOE1": "E"}
"""By scheme without letters for spans of one word: the letter that only stands behind (IOB) or before (IOE) a span of
its type.
"""
MAX_STRAY_SHARE = 0.05
"""The share of labels that are no tags among tags, up to which they are taken for errors."""
LETTERS_BY_SCHEME: Mapping[str, Mapping[str, str]] = {
    "IOBES": {},
    "BILOU": {"L": "E", "U": "S"},
    "BMES": {"M": "I"},
    "BMEWO": {"M": "I", "W": "S"},
}
"""By scheme that has an end of spans: its letters as those of IOBES."""
OTHER_SPELLINGS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "PER-B": (re.compile(rf"\S+-[{TAG_LETTERS}]|O"), rf"s/([^ \t]+)-([{TAG_LETTERS}])$/\2-\1/"),
    "B_PER": (re.compile(rf"[{TAG_LETTERS}]_\S+|O"), rf"s/([ \t][{TAG_LETTERS}])_([^ \t]+)$/\1-\2/"),
    "b-per": (re.compile(rf"[{TAG_LETTERS.lower()}]-\S+|o"), rf"s/[ \t]([{TAG_LETTERS.lower()}]-[^ \t]+|o)$/\U&/"),
}
"""By an example: how all labels are spelled, and what makes tags of them."""
SENTENCE_END = "the end of the sentence"


def are_entity_tags(cells: Iterable[str]) -> bool:
    """Whether all cells are tags of entities."""
    return all(map(ENTITY_TAG_PATTERN.fullmatch, cells))


@dataclass
class SchemeViolations:
    """How often a scheme is broken, and where first: the line and the two tags."""

    count: int = 0
    first: tuple[int, str, str] | None = None


@dataclass
class TagSchemeChecker:
    """Reads the tags of sentences and counts, for each scheme, what it does not allow."""

    is_tagged: bool = True
    has_types: bool = False
    letters: set[str] = field(default_factory=set)
    num_labels: int = 0
    num_strays: int = 0
    first_stray: tuple[int, str] | None = None
    spellings: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(OTHER_SPELLINGS, False))
    breaks: dict[str, SchemeViolations] = field(
        default_factory=lambda: {name: SchemeViolations() for name in (*LETTERS_WITHIN_SPANS, *LETTERS_BY_SCHEME)}
    )

    def add(self, tags: Sequence[str], lines: Sequence[int]) -> None:
        """Count a sentence. lines: the line of each tag."""
        parsed = [TAG_PATTERN.fullmatch(tag) for tag in tags]
        self.num_labels += len(tags)
        if not self.is_tagged or None in parsed:
            self.is_tagged = False
            self.has_types |= any(match is not None and match[2] for match in parsed)
            self._add_spellings(tags)
            strays = [(line, tag) for line, tag, match in zip(lines, tags, parsed, strict=True) if match is None]
            self.num_strays += len(strays)
            self.first_stray = self.first_stray or next(iter(strays), None)
            return
        spans = [("O", "") if match is None or match[1] is None else (match[1], match[2] or "") for match in parsed]
        self.has_types |= any(kind for _, kind in spans)
        self.letters.update(letter for letter, _ in spans)
        begin = ("O", "")
        for place, (before, span) in enumerate(zip([begin, *spans], [*spans, begin], strict=True)):
            names = (
                tags[place - 1] if place else "the beginning of the sentence",
                tags[place] if place < len(tags) else SENTENCE_END,
            )
            line = lines[min(place, len(lines) - 1)]
            for scheme, breaks in self.breaks.items():
                if not _may_follow(scheme, before, span):
                    breaks.count += 1
                    breaks.first = breaks.first or (line, *names)

    def _add_spellings(self, labels: Sequence[str]) -> None:
        """Keep the other spellings of tags that all labels have, and whether one of them is of a span."""
        for name in [*self.spellings]:
            if not all(map(OTHER_SPELLINGS[name][0].fullmatch, labels)):
                del self.spellings[name]
            elif any(label not in "Oo" for label in labels):
                self.spellings[name] = True

    @property
    def scheme(self) -> str | None:
        """The scheme of the tags that were read: by their letters, of two with the same letters the one broken less."""
        if not self.is_tagged or self.letters <= {"O"} or not (self.has_types or "B" in self.letters):
            return None  # single letters without B are labels of another kind
        for letters, name in (("LU", "BILOU"), ("W", "BMEWO"), ("M", "BMES")):
            if not self.letters.isdisjoint(letters):
                return name
        if self.letters <= {"O", "I", "E"} and "E" in self.letters:
            return self._less_broken("IOE2", "IOE1")
        if self.letters & {"E", "S"}:
            return "IOBES"
        return self._less_broken("IOB2", "IOB1")

    def _less_broken(self, usual: str, other: str) -> str:
        return other if self.breaks[other].count < self.breaks[usual].count else usual

    def warning(self) -> str | None:
        """The scheme and its breaks in a line, or how else tags are spelled; None if there is no scheme."""
        if other := next((name for name, is_one in self.spellings.items() if is_one and not self.is_tagged), None):
            remedy = f"B-PER is written by sed -E '{OTHER_SPELLINGS[other][1]}' FILE"
            return f"its labels seem to be tags ({other}), whose spans entity_f1 does not find: {remedy}"
        if self.has_types and self.first_stray and self.num_strays <= MAX_STRAY_SHARE * self.num_labels:
            line, label = self.first_stray
            number = format_count(self.num_strays, "label")
            verb = "is" if self.num_strays == 1 else "are"
            return (
                f'{number} of {self.num_labels:,} {verb} no tag, the first in line {line} ("{label:.40}"); all others '
                "are tags of entities, and entity_f1 scores no references with such a label: correct it"
            )
        if (scheme := self.scheme) is None:
            return None
        breaks = self.breaks[scheme]
        if breaks.first is None:
            return f"its tags are {scheme}, without invalid transitions"
        line, before, tag = breaks.first
        how_many = f"{breaks.count:,} invalid transition{'s' if breaks.count > 1 else ''}"
        return f"its tags are {scheme}, with {how_many}, the first in line {line}: {before} to {tag}"


def _letter_of_iobes(scheme: str, letter: str) -> str:
    """The letter of IOBES for one of another scheme; a letter that is written in another way there stands for none."""
    letters = LETTERS_BY_SCHEME[scheme]
    return "" if letter in letters.values() else letters.get(letter, letter)


def _may_follow(scheme: str, previous: tuple[str, str], tag: tuple[str, str]) -> bool:
    """Whether a tag may follow another, each as letter and type; O also stands before and behind a sentence."""
    is_same_type = previous[1] == tag[1]
    if scheme in ("IOB2", "IOB1"):
        return tag[0] != LETTERS_WITHIN_SPANS[scheme] or (previous[0] in "BI" and is_same_type)
    if scheme in ("IOE2", "IOE1"):
        return previous[0] != LETTERS_WITHIN_SPANS[scheme] or (tag[0] in "IE" and is_same_type)
    last, first = (_letter_of_iobes(scheme, letter) for letter in (previous[0], tag[0]))
    if last in ("B", "I"):
        return first in ("I", "E") and is_same_type
    return first in ("O", "B", "S")
