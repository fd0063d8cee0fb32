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
"""The least number of rows from which to judge how many different values a column has."""


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
"""Usual names of a target column, each with the usual names of its source columns."""


def column_indices_by_name(names: Sequence[str]) -> tuple[int, ...] | None:
    """The columns of the sources, then of the target, if a table has usual names for them; else None."""
    for target, choices in SOURCES_BY_TARGET.items():
        for sources in choices:
            if {target, *sources} <= {*names}:
                return *map(names.index, sources), names.index(target)
    return None


def is_header(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: its cells are short, differ, and none occurs below it. Some may be empty."""
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
    """Whether a first row, which may be a header, differs in kind from the other rows: in some column most other cells
    are numbers, have several words or belong to few classes, but the cell of the first row does not.
    """
    for index, name in enumerate(first_row):
        cells = [row[index] for row in other_rows if index < len(row) and row[index]]
        num_others = sum(" " in cell.strip() or NUMBER_PATTERN.fullmatch(cell) is not None for cell in cells)
        if (
            name
            and " " not in name.strip()
            and (2 * num_others > len(cells) or (_has_classes(cells) and name not in cells))
        ):
            return True
    return False


def choose_column_indices(rows: Sequence[Sequence[str]], num_columns: int) -> tuple[int, ...]:
    """Choose the columns of the source, if any, and of the target, which comes last, by their cells, not their names.

    Lemma and features are the source in a table of inflections. Columns of numbers, URLs, dates, names with numbers
    (doc-17), one or two codes of languages, or a single value are not texts if there are other columns. A column of
    few different values is the target if there is a single text, or if it comes before several texts. A text beside
    only such names has no source.
    """
    columns = [[row[index] for row in rows if index < len(row)] for index in range(num_columns)]
    features = [index for index, cells in enumerate(columns) if _has_features(cells)]
    if num_columns == 3 and len(features) == 1:
        lemma, form = (index for index in range(3) if index not in features)
        return lemma, features[0], form
    texts = [index for index, cells in enumerate(columns) if any(cells) and not _has_numbers(cells)]
    unread = {index for index in texts if _is_unread(columns[index])}
    texts = [index for index in texts if index not in unread] or texts
    labels = [index for index, cells in enumerate(columns) if _has_classes(cells)]
    identifiers = {index for index in texts if _has_identifiers(columns[index])}
    if len({*texts} - identifiers) > int(num_columns < 3):
        texts = [index for index in texts if index not in identifiers]
    languages = {index for index, cells in enumerate(columns) if _has_languages(cells)}
    if len({*texts} - languages) > 1:  # with a single text they are labels: pos, neg
        texts = [index for index in texts if index not in languages]
        labels = [index for index in labels if index not in languages]
    free = [index for index in texts if index not in labels]
    numbered = [index for index in labels if index not in texts]
    if free and numbered and (len(free) == 1 or numbered[0] == 0):
        return next(filter(lambda index: _has_several_words(columns[index]), free), free[0]), numbered[0]
    if len(free) == 1 and labels:
        return free[0], labels[0]
    if len(texts) == 1 and num_columns > 1:
        other_indices = [index for index in range(num_columns) if index != texts[0]]
        if all(_has_no_text(columns[index]) for index in other_indices):
            return (texts[0],)
        return texts[0], int(texts[0] == 0)
    text_indices = free if len(free) > 1 else texts
    return (text_indices[0], text_indices[1]) if len(text_indices) > 1 else (0, 1)


def are_tatoeba_rows(rows: Sequence[Sequence[str]], column_indices: Sequence[int]) -> bool:
    """Whether rows are a number, a language and a sentence, as in Tatoeba, and the language would be the target."""
    have_three_cells = len(rows) >= MIN_ROWS_JUDGED and all(len(row) == 3 for row in rows)
    return (
        have_three_cells
        and tuple(column_indices) == (2, 1)
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
    """Whether cells hold no text: they are names with numbers, one value, or empty."""
    return not any(cells) or _has_identifiers(cells) or _is_constant(cells)


def _has_several_words(cells: Sequence[str]) -> bool:
    return any(" " in cell.strip() for cell in cells)


def _is_constant(cells: Sequence[str]) -> bool:
    return len(cells) >= MIN_ROWS_JUDGED and len({*cells}) == 1


def _has_languages(cells: Sequence[str]) -> bool:
    is_of_few = len({*cells}) <= 2 and len(cells) > len({*cells})
    return is_of_few and all(LANGUAGE_PATTERN.fullmatch(cell) for cell in cells)


def _has_identifiers(cells: Sequence[str]) -> bool:
    """Whether each cell is a different name with a number in it, such as doc-17."""
    are_distinct = len(cells) >= MIN_ROWS_JUDGED and len({*cells}) == len(cells)
    return are_distinct and all(IDENTIFIER_PATTERN.fullmatch(cell) for cell in cells)


def _has_classes(cells: Sequence[str]) -> bool:
    return len(cells) >= MIN_ROWS_JUDGED and 1 < len({*cells}) <= len(cells) / 2
