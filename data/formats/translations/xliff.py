"""Translations in XLIFF 1.2 (`trans-unit`) and 2.0 (`segment`), as tools for translators exchange them.

Formats: docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, docs.oasis-open.org/xliff/xliff-core/v2.0.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.translations.segments import read_segments
from tfm.data.formats.translations.units import TranslationUnit, WarningCallback, pairs_from_units
from tfm.data.formats.translations.xml_events import Event

UNIT_ELEMENTS = ("trans-unit", "segment")
"""The elements whose children are a source and a target, in 1.2 and 2.0."""
UNTRANSLATED_STATES = ("new", "needs-translation", "initial")
"""States of targets that are none yet, in 1.2 and 2.0."""
LANGUAGE_ATTRIBUTES = {"source": ("source-language", "srcLang"), "target": ("target-language", "trgLang")}
"""By side: what says its language, an attribute of `file` in 1.2 and of the first element in 2.0."""


def read_xliff(path: Path, corpus: CorpusConfig, on_warning: WarningCallback) -> Iterator[tuple[str, str]]:
    """The sources and targets of a file; `source` and `target` of the corpus are these, or the codes of languages.

    Properties to filter by are the attributes of the unit, of what is around it and of its target (`approved`,
    `state`). A unit without a target, or with one of white space alone, is not translated.
    """
    units = _read_units(path, keeps_tags=bool(corpus.inline_tags))
    if not any(each.startswith(("state=", "state!=")) for each in corpus.filters or ()):
        units = _remark_untranslated(units, path, on_warning)
    return pairs_from_units(units, path, corpus, on_warning)


def _remark_untranslated(
    units: Iterator[TranslationUnit], path: Path, on_warning: WarningCallback
) -> Iterator[TranslationUnit]:
    """The units, with a remark if the states of targets say that these are no translations: often they are copies."""
    counts: Counter[str] = Counter()
    for unit in units:
        if unit.texts[-1][1] is not None:
            counts[unit.properties.get("state", "")] += 1
        yield unit
    for state in UNTRANSLATED_STATES:
        if counts[state]:
            remedy = f'filters = ["state!={state}"] leaves them out'
            on_warning(
                path, f'targets with state = "{state}", which are not translated yet: {counts[state]:,}; {remedy}'
            )


def _read_units(path: Path, *, keeps_tags: bool) -> Iterator[TranslationUnit]:
    texts: dict[str, str] = {}
    of_target: dict[str, str] = {}
    for event in read_segments(path, _is_segment, keeps_tags=keeps_tags):
        name, attributes = event.element
        if not event.ancestors and name != "xliff":
            raise DataError(f"is XML, but no XLIFF: its first element is {name[:40]!r}", file=path)
        if event.kind == "segment":
            texts[name] = event.text if event.text.strip() else ""
            of_target = {**attributes} if name == "target" else of_target
        elif event.kind == "start" and name in UNIT_ELEMENTS:
            texts, of_target = {}, {}
        elif event.kind == "end" and name in UNIT_ELEMENTS:
            layers = (*(each.attributes for each in event.ancestors), attributes, of_target)
            properties = {key: value for layer in layers for key, value in layer.items()}
            yield TranslationUnit(
                [(_column_names_of_side(side, properties), texts.get(side) or None) for side in LANGUAGE_ATTRIBUTES],
                properties,
            )


def _column_names_of_side(side: str, attributes: dict[str, str]) -> tuple[str, ...]:
    return side, *(attributes[key] for key in LANGUAGE_ATTRIBUTES[side] if key in attributes)


def _is_segment(event: Event) -> bool:
    return (
        event.element.name in LANGUAGE_ATTRIBUTES
        and bool(event.ancestors)
        and event.ancestors[-1].name in UNIT_ELEMENTS
    )
