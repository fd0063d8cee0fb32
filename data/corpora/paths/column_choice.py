"""The choice of a table's source and target columns by what is in them, and whether a first row names them."""

import re
from collections.abc import Mapping, Sequence

COLUMN_NAME_PATTERN = re.compile(r"(?!(?:\S* ){4})[#_]?[^\W_][\w .:/()#?-]{0,39}")
"""A cell that may be the name of a column, of at most four words."""
NUMBER_PATTERN = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?")
LANGUAGE_PATTERN = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]+)?")
IDENTIFIER_PATTERN = re.compile(r"(?=\D*[0-9])[^\W_][\w.:/-]*")
FEATURES_PATTERN = re.compile(r"[A-Z][^\sa-z;]*(?:;[^\s;]+)*|[a-z]+=[^\s,=]+(?:,[a-z]+=[^\s,=]+)*")
"""The features of a word form, as UniMorph writes them (V;PST;3;SG), or SIGMORPHON of 2016 (pos=V,tense=PST)."""
URL_PATTERN = re.compile(r"https?://\S+")
DATE_PATTERN = re.compile(
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]?[0-9] [0-9:]{8} \S+ [0-9]{4}"
    r"|[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?:[T ][0-9:.]+\S*)?|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}(?: [0-9:]+)?"
)
MIN_ROWS_JUDGED = 4
"""With fewer rows nothing is said of how many different values a column has."""


SOURCES_BY_TARGET: Mapping[str, Sequence[tuple[str, ...]]] = {
    "output": (("instruction", "input"), ("input",)),
    "gold_label": (("sentence1", "sentence2"),),
    "is_duplicate": (("question1", "question2"),),
    "Quality": (("#1 String", "#2 String"),),
    "label": (
        ("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"), ("question", "sentence"),
        ("text",), ("sentence",), ("review",), ("tweet",), ("content",),
    ),
    **dict.fromkeys(
        ("class", "category", "sentiment", "intent"), (("text",), ("sentence",), ("review",), ("tweet",), ("content",))
    ),
    "completion": (("prompt",),),
    "response": (("prompt",), ("instruction", "context"), ("instruction",)),
    "highlights": (("article",),),
    "summary": (("document",), ("dialogue",), ("article",), ("text",)),
    "answer": (("question", "context"), ("question",)),
    "accept": (("text",),),
    "answers.text": (("question", "context"),),
    "target": (("source",),),
    "tgt": (("src",),),
    "ner_tags": (("tokens",),),
}  # fmt: skip
"""Usual names of a column of targets, and of those of its sources beside it."""


def places_by_names(names: Sequence[str]) -> tuple[int, ...] | None:
    """The columns of the sources and, last, that of the target by usual names; None if they have none of these."""
    for target, choices in SOURCES_BY_TARGET.items():
        for sources in choices:
            if {target, *sources} <= {*names}:
                return *map(names.index, sources), names.index(target)
    return None


def is_header(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: short, different, and none of them is a cell below. Some may be empty."""
    names = [cell.strip() for cell in first_row]
    filled = [name for name in names if name]
    return (
        bool(filled)
        and all(COLUMN_NAME_PATTERN.fullmatch(name) and not name[0].isdecimal() for name in filled)
        and not any(map(URL_PATTERN.match, filled))
        and len({*filled}) == len(filled)
        and not any(name and name == cell.strip() for row in other_rows for name, cell in zip(names, row, strict=False))
    )


def differs_from_rows(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row that may name columns is unlike the others: in some column most of them are numbers or have
    several words, or all are of few classes, and it is none of these.
    """
    for place, name in enumerate(first_row):
        cells = [row[place] for row in other_rows if place < len(row) and row[place]]
        num_others = sum(" " in cell.strip() or NUMBER_PATTERN.fullmatch(cell) is not None for cell in cells)
        if (
            name
            and " " not in name.strip()
            and (2 * num_others > len(cells) or (_has_classes(cells) and name not in cells))
        ):
            return True
    return False


def choose_places(rows: Sequence[Sequence[str]], num_columns: int) -> tuple[int, ...]:
    """The columns of the source, if any, and, last, that of the target, without their names.

    Lemma and features are the source in a table of inflections. Columns of numbers, of URLs, of one or two codes of
    languages, of dates, of names with numbers (doc-17) and of one value are no texts where there are others. Beside a
    single text, and before several, a column of few different values is the target. A text beside names alone has no
    source.
    """
    columns = [[row[place] for row in rows if place < len(row)] for place in range(num_columns)]
    features = [place for place, cells in enumerate(columns) if _has_features(cells)]
    if num_columns == 3 and len(features) == 1:
        lemma, form = (place for place in range(3) if place not in features)
        return lemma, features[0], form
    texts = [place for place, cells in enumerate(columns) if any(cells) and not _has_numbers(cells)]
    unread = {place for place in texts if _is_unread(columns[place])}
    texts = [place for place in texts if place not in unread] or texts
    labels = [place for place, cells in enumerate(columns) if _has_classes(cells)]
    identifiers = {place for place in texts if _has_identifiers(columns[place])}
    if len({*texts} - identifiers) > int(num_columns < 3):
        texts = [place for place in texts if place not in identifiers]
    languages = {place for place, cells in enumerate(columns) if _has_languages(cells)}
    if len({*texts} - languages) > 1:  # beside a single text they are labels: pos, neg
        texts = [place for place in texts if place not in languages]
        labels = [place for place in labels if place not in languages]
    free = [place for place in texts if place not in labels]
    numbered = [place for place in labels if place not in texts]
    if free and numbered and (len(free) == 1 or numbered[0] == 0):
        return next(filter(lambda place: _has_several_words(columns[place]), free), free[0]), numbered[0]
    if len(free) == 1 and labels:
        return free[0], labels[0]
    if len(texts) == 1 and num_columns > 1:
        others = [place for place in range(num_columns) if place != texts[0]]
        if all(_has_no_text(columns[place]) for place in others):
            return (texts[0],)
        return texts[0], int(texts[0] == 0)
    chosen = free if len(free) > 1 else texts
    return (chosen[0], chosen[1]) if len(chosen) > 1 else (0, 1)


def has_languages_of_rows(rows: Sequence[Sequence[str]], places: Sequence[int]) -> bool:
    """Whether rows are a number, a language and a sentence, and these languages would be the target."""
    are_three = len(rows) >= MIN_ROWS_JUDGED and all(len(row) == 3 for row in rows)
    return (
        are_three
        and tuple(places) == (2, 1)
        and all(row[0].isdecimal() and LANGUAGE_PATTERN.fullmatch(row[1]) for row in rows)
    )


def _has_features(cells: Sequence[str]) -> bool:
    return any(";" in cell or "=" in cell for cell in cells) and all(FEATURES_PATTERN.fullmatch(cell) for cell in cells)


def _has_numbers(cells: Sequence[str]) -> bool:
    return all(NUMBER_PATTERN.fullmatch(cell) for cell in cells if cell)


def _has_urls(cells: Sequence[str]) -> bool:
    return all(map(URL_PATTERN.fullmatch, cells))


def _is_unread(cells: Sequence[str]) -> bool:
    return _is_constant(cells) or _has_urls(cells) or all(map(DATE_PATTERN.fullmatch, cells))


def _has_no_text(cells: Sequence[str]) -> bool:
    """Whether cells are names with numbers, one value, or empty, as those that hold no text are."""
    return not any(cells) or _has_identifiers(cells) or _is_constant(cells)


def _has_several_words(cells: Sequence[str]) -> bool:
    return any(" " in cell.strip() for cell in cells)


def _is_constant(cells: Sequence[str]) -> bool:
    return len(cells) >= MIN_ROWS_JUDGED and len({*cells}) == 1


def _has_languages(cells: Sequence[str]) -> bool:
    is_of_few = len({*cells}) <= 2 and len(cells) > len({*cells})
    return is_of_few and all(LANGUAGE_PATTERN.fullmatch(cell) for cell in cells)


def _has_identifiers(cells: Sequence[str]) -> bool:
    """Whether each cell is a name of its own with a number in it, such as doc-17."""
    are_distinct = len(cells) >= MIN_ROWS_JUDGED and len({*cells}) == len(cells)
    return are_distinct and all(IDENTIFIER_PATTERN.fullmatch(cell) for cell in cells)


def _has_classes(cells: Sequence[str]) -> bool:
    return len(cells) >= MIN_ROWS_JUDGED and 1 < len({*cells}) <= len(cells) / 2
