"""Units of translation memories and catalogs: a text in two or more languages, with properties to filter by."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, format_names
from tfm.data.lines import join_lines

NUM_SOURCES_JUDGED = 20
MESSAGE_NAME = re.compile(r"\w+(?:[._:/-]\w+)+")
"""A name that a program has for a message, such as menu.file.open."""
MAX_LANGUAGES = 1000
"""How many names of languages are remembered for messages."""
WarningCallback = Callable[[Path, str], None]


@dataclass
class TranslationUnit:
    """A text in several languages.

    texts: with each text what it is called: the code of its language, `source`, `target`; None is no translation.
    properties: its attributes and those around it, by name.
    """

    texts: list[tuple[tuple[str, ...], str | None]]
    properties: dict[str, str]


def pairs_from_units(
    units: Iterable[TranslationUnit], path: Path, corpus: CorpusConfig, on_warning: WarningCallback
) -> Iterator[tuple[str, str]]:
    """The source and target of each unit that has both, and the properties that the corpus asks for.

    Args:
        units: of a file.
        path: the file, for messages.
        corpus: `source` and `target` name languages; `filters` properties.
        on_warning: is told how many units are left out.

    Raises:
        DataError: no unit has a language that is asked for.
    """
    sides = [*corpus.source_columns, corpus.target]
    filters = [_parse_property_filter(each) for each in corpus.filters or ()]
    there: dict[str, None] = {}
    missing = {*sides}
    num_lacking = num_other = num_several = 0
    languages: dict[str, str] = {}
    first_sources: list[str] = []
    for unit in units:
        if len(there) < MAX_LANGUAGES:
            there.update((names[-1], None) for names, _ in unit.texts)
        places_by_side = [_find_language(unit, side) for side in sides]
        missing -= {side for side, places in zip(sides, places_by_side, strict=True) if places}
        texts = [unit.texts[places[0]][1] if places else None for places in places_by_side]
        if any((unit.properties.get(name, "") == value) != is_wanted for name, value, is_wanted in filters):
            num_other += 1
        elif any(text is None for text in texts):
            num_lacking += 1
        else:
            num_several += any(len(places) > 1 for places in places_by_side)
            for side, places in zip(sides, places_by_side, strict=True):
                _check_single_language(side, unit.texts[places[0]][0], languages, path)
            if len(first_sources) < NUM_SOURCES_JUDGED:
                first_sources.append(texts[0] or "")
            yield "" if corpus.source is None else join_lines(texts[0] or ""), join_lines(texts[-1] or "")
    if missing and there:
        language = next(side for side in sides if side in missing)
        problem = f'holds no text in "{language}"; set source and target to two of: {format_names(there)}'
        raise DataError(problem, file=path)
    if corpus.source is not None and len(first_sources) > 1 and all(map(MESSAGE_NAME.fullmatch, first_sources)):
        remedy = "put the texts of a language in their place"
        remedy += ", as by poswap -t TARGET.po SOURCE.po OUT.po of translate-toolkit" if corpus.format == "po" else ""
        on_warning(path, f"its sources are names of messages ({first_sources[0]:.40}), read as texts: {remedy}")
    if num_lacking:
        on_warning(path, f"{_format_segment_count(num_lacking, ' without a translation')} left out")
    if num_several:
        have = "segment has" if num_several == 1 else "segments have"
        on_warning(path, f"{num_several:,} {have} several texts in a language, of which the first is read")
    if num_other:
        on_warning(path, f"{_format_segment_count(num_other)} left out by filters = {list(corpus.filters or ())}")


def _check_single_language(side: str, names: Sequence[str], languages: dict[str, str], path: Path) -> None:
    """Raise DataError if a side is of another language than those before it.

    Args:
        side: its name in the corpus, which may be no code.
        names: of a text, the code of its language last, if one is said.
        languages: the languages so far, by side; the first is added.
        path: the file, for messages.
    """
    if side != names[0] or len(names) < 2:
        return
    language = _normalize_code(names[-1]).partition("-")[0]
    if languages.setdefault(side, language) != language:
        problem = f"has {side}s in several languages ({languages[side]}, {language:.40})"
        raise DataError(f'{problem}: set {side} to the code of one, as {side} = "{languages[side]}"', file=path)


def _format_segment_count(count: int, kind: str = "") -> str:
    return f"{count:,} segment{kind} is" if count == 1 else f"{count:,} segments{kind} are"


def _parse_property_filter(text: str) -> tuple[str, str, bool]:
    """A property, a value, and whether the property shall have it: of `state=final`, or `state!=final`."""
    name, _, value = text.partition("=")
    return name.removesuffix("!"), value, not name.endswith("!")


def _find_language(unit: TranslationUnit, code: str) -> list[int]:
    """The places of the texts in a language: with this code, else with ones that go on behind it (en: en-US)."""
    language = _normalize_code(code)
    called = [[_normalize_code(name) for name in names] for names, _ in unit.texts]
    exact = [place for place, names in enumerate(called) if language in names]
    return exact or [
        place for place, names in enumerate(called) if any(name.startswith(f"{language}-") for name in names)
    ]


def _normalize_code(code: str) -> str:
    return code.replace("_", "-").lower()
