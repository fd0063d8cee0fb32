"""Translation memories in TMX: units (`tu`) with a segment in each of several languages (`tuv`).

The format is TMX 1.4b, of LISA (www.gala-global.org/tmx-14b).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.translations.segments import read_segments
from tfm.data.formats.translations.units import TranslationUnit, WarningCallback, pairs_from_units
from tfm.data.formats.translations.xml_events import Event

MAX_TEXTS_PER_UNIT = 10_000
"""Texts and properties of a unit."""


def read_tmx(path: Path, corpus: CorpusConfig, on_warning: WarningCallback) -> Iterator[tuple[str, str]]:
    """The segments of a file in two languages, which `source` and `target` of the corpus name.

    Properties to filter by are the attributes of a unit (`creationid`) and its `prop` by their type.
    """
    return pairs_from_units(_read_units(path, keeps_tags=bool(corpus.inline_tags)), path, corpus, on_warning)


def languages_of_first_unit(path: Path) -> list[str]:
    """The codes of the languages of the first unit of a file, without regions (en of en-US) where these are no part of
    what tells them apart.
    """
    unit = next(_read_units(path, keeps_tags=False), TranslationUnit([], {}))
    codes = [name for names, _ in unit.texts for name in names]
    languages = [re.split("[-_]", code)[0] for code in codes]
    return [
        language if languages.count(language) == 1 else code for language, code in zip(languages, codes, strict=True)
    ]


def _read_units(path: Path, *, keeps_tags: bool) -> Iterator[TranslationUnit]:
    unit = TranslationUnit([], {})
    for event in read_segments(path, _is_segment, keeps_tags=keeps_tags):
        name, attributes = event.element
        if not event.ancestors and name != "tmx":
            raise DataError(f"is XML, but no TMX: its first element is {name[:40]!r}", file=path)
        if event.kind == "start" and name == "tu":
            unit = TranslationUnit([], dict(attributes))
        elif event.kind == "segment" and name == "prop":
            unit.properties[attributes.get("type", "")] = event.text
        elif event.kind == "segment":
            variant = event.ancestors[-1].attributes
            unit.texts.append(((variant.get("xml:lang", variant.get("lang", "")),), event.text))
        elif event.kind == "end" and name == "tu":
            yield unit
        if len(unit.texts) + len(unit.properties) > MAX_TEXTS_PER_UNIT:
            raise DataError(f"has a unit with more than {MAX_TEXTS_PER_UNIT:,} texts", file=path)


def _is_segment(event: Event) -> bool:
    name, parent = event.element.name, event.ancestors[-1].name if event.ancestors else ""
    return (name, parent) in (("seg", "tuv"), ("prop", "tu"))
