"""The choice of a table's source and target columns, and whether a first row names them.

Usual names are asked first, since they say what cells cannot. By its cells a column is then no text (numbers, files,
dates), a text, or a class; a single text and a class are source and target, then two texts, then a text and anything.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from tfm.data.corpora.tables.layouts import LANGUAGE_CODE, MIN_ROWS_JUDGED, are_column_names
from tfm.data.corpora.tables.structures import AUDIO_ENDINGS
from tfm.data.corpora.tables.word_lists import are_word_pairs

COLUMN_NAME_PATTERN = re.compile(r"(?!(?:\S* ){4})[#_]?[^\W_][\w .:/()#?-]{0,39}")
"""A cell that may be the name of a column, of at most four words."""
NUMBER_PATTERN = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?")
IDENTIFIER_PATTERN = re.compile(r"[^\W_][\w.:/-]*")
ID_NAME_PATTERN = re.compile(r" *(?:.*[_ -])?(?:[iI][dD]|idx|index|uuid) *|.*[a-z]I[dD]")
ID_OR_NUMBER_NAME_PATTERN = re.compile(rf"{ID_NAME_PATTERN.pattern}|.*\bnumber *|.*_number *")
FILE_PATTERN = re.compile(r"\S*[\w*]\.[A-Za-z][A-Za-z0-9]{2,3}")
MEDIA_PATTERN = re.compile(rf"\S+\.(?:{AUDIO_ENDINGS}|jpe?g|png)(?:#[0-9]+)?", re.IGNORECASE)
"""Names of files, and those of recordings and pictures, as a table has them beside texts."""
SPLIT_NAMES = frozenset({"train", "training", "dev", "valid", "validation", "val", "test", "testing"})
FEATURES_PATTERN = re.compile(r"[A-Z][^\sa-z;]*(?:;[^\s;]+)*|[a-z]+=[^\s,=]+(?:,[a-z]+=[^\s,=]+)*")
"""The features of a word form, as UniMorph writes them (V;PST;3;SG), or SIGMORPHON of 2016 (pos=V,tense=PST)."""
URL_PATTERN = re.compile(r"https?://\S+")
DATE_PATTERN = re.compile(
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]?[0-9] [0-9:]{8} \S+ [0-9]{4}"
    r"|[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}(?:[T ][0-9:.]+\S*)?|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{2,4}(?: [0-9:]+)?"
)
UNREAD_PATTERNS = (MEDIA_PATTERN, FILE_PATTERN, URL_PATTERN, DATE_PATTERN)
MIN_NAMES, MIN_ROWS_PER_NAME = 3, 20
"""A name that is also a cell is none of fewer columns, or where it is more often a cell."""
TEXT_NAME = "text"
MAX_VERSES_JUDGED = 20
"""Verses whose numbers are compared; further down some may be missing."""


SOURCES_BY_TARGET: Mapping[str, Sequence[tuple[str, ...]]] = {
    "output": (("instruction", "input"), ("input",)),
    "gold_label": (("sentence1", "sentence2"),),
    "entailment_judgment": (("sentence_A", "sentence_B"),),
    "Label": (("Context", "Utterance"),),
    "snippet": (("intent",),),
    "query": (("question",),),
    "stars": (("review_body",),),
    "airline_sentiment": (("text",),),
    "is_duplicate": (("question1", "question2"),),
    "Quality": (("#1 String", "#2 String"),),
    "label": (
        ("premise", "hypothesis"), ("premise", "hypo"), ("sentence1", "sentence2"), ("question1", "question2"),
        ("question", "sentence"),
        ("text",), ("sentence",), ("review",), ("tweet",), ("content",),
    ),
    **dict.fromkeys(
        ("class", "category", "sentiment", "intent"),
        (("text",), ("sentence",), ("review",), ("tweet",), ("content",), ("utt",)),
    ),
    "completion": (("prompt",),),
    "response": (("prompt",), ("instruction", "context"), ("instruction",)),
    "highlights": (("article",),),
    "summary": (("document",), ("dialogue",), ("article",), ("text",), ("content",), ("body",)),
    "answer": (("question", "context"), ("question", "passage"), ("question",)),
    "docstring": (("code",),),
    "accept": (("text",),),
    "answers.text": (("question", "context"),),
    "target": (("source",),),
    "tgt": (("src",),),
    "ner_tags": (("tokens",),),
}  # fmt: skip
"""Usual names of a column of targets, and of those of its sources beside it."""


def column_indices_by_name(names: Sequence[str]) -> tuple[int, ...] | None:
    """The columns of the sources and, last, that of the target by usual names; None if they have none of these."""
    for target, choices in SOURCES_BY_TARGET.items():
        for sources in choices:
            if {target, *sources} <= {*names}:
                return *map(names.index, sources), names.index(target)
    return None


def is_header(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns: short, different, and none of them is a cell below. Some may be empty, and
    one of several may be a cell of a row or two, if the first row is unlike the others.
    """
    names = [cell.strip() for cell in first_row]
    filled = [name for name in names if name]
    return (
        bool(filled)
        and all(COLUMN_NAME_PATTERN.fullmatch(name) and not name[0].isdecimal() for name in filled)
        and not any(map(URL_PATTERN.match, filled))
        and len({*filled}) == len(filled)
        and _are_rare_below(names, first_row, other_rows)
    )


def _are_rare_below(names: Sequence[str], first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether names are no cells of their columns, or one of three and more is in hardly any row."""
    places = [
        place
        for row in other_rows
        for place, (name, cell) in enumerate(zip(names, row, strict=False))
        if name and name == cell.strip()
    ]
    is_one_of_many = len({*places}) == 1 and len([*filter(None, names)]) >= MIN_NAMES
    is_rare = is_one_of_many and MIN_ROWS_PER_NAME * len(places) <= len(other_rows)
    return not places or (is_rare and differs_from_rows(first_row, other_rows))


def differs_from_rows(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether a first row that may name columns is unlike the others: in some column most of them are numbers or have
    several words, or all are of few classes, and it is none of these.
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


def has_repeated_names(first_row: Sequence[str], other_rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names columns, and several alike: `en,de,en`."""
    names = [*dict.fromkeys(first_row)]
    if len({*filter(None, first_row)}) == len([*filter(None, first_row)]):
        return False
    if are_column_names(names):
        return True
    places = [first_row.index(name) for name in names]
    cells = [[row[place] if place < len(row) else "" for place in places] for row in other_rows]
    return len(names) > 1 and is_header(names, cells) and differs_from_rows(names, cells)


def choose_column_indices(
    rows: Sequence[Sequence[str]], num_columns: int, names: Sequence[str] = ()
) -> tuple[int, ...]:
    """The columns of the source, if any, and, last, that of the target, by what is in them.

    Lemma and features are the source in a table of inflections. Columns of numbers, of URLs, of one or two codes of
    languages, of dates, of names with numbers (doc-17), of files or splits and of one value are no texts where there
    are others, nor are those called `id`; of four columns or more those of several words are the texts. Beside a single
    text, and before several, a column of few different values is the target (of numbers that with the fewest), and
    behind two texts one of 0 and 1. A text beside names alone, or beside recordings or pictures, has no source.

    Args:
        rows: the first of the table, without a header.
        num_columns: their number.
        names: of the columns, if they have some.
    """
    columns = [[row[index] for row in rows if index < len(row)] for index in range(num_columns)]
    features = [index for index, cells in enumerate(columns) if _has_features(cells)]
    if num_columns == 3 and len(features) == 1:
        lemma, form = (index for index in range(3) if index not in features)
        return lemma, features[0], form
    if num_columns == 2 and are_word_pairs([" ".join(row) for row in rows if any(row)]):
        return 0, 1
    texts, labels, unread = _find_texts(columns, names)
    free = [index for index in texts if index not in labels]
    if len(free) == 1 and any(cells and all(map(MEDIA_PATTERN.fullmatch, cells)) for cells in columns):
        return (free[0],)
    sentences = [index for index in free if _has_mostly_several_words(columns[index])]
    if num_columns > 3 and len(sentences) > 1:
        free = sentences
    if num_columns == 3 and free == [0, 1] and {*columns[2]} == {"0", "1"} and labels == [2]:
        return 0, 1, 2
    numbered = [index for index in labels if index not in texts]
    if len(free) == 1 and labels:
        return free[0], min(numbered, key=lambda index: len({*columns[index]}), default=labels[0])
    if free and numbered and numbered[0] == 0:
        return next((index for index in free if _has_several_words(columns[index])), free[0]), 0
    if len(texts) == 1 and num_columns > 1:
        others = [index for index in range(num_columns) if index not in {*texts, *unread}]
        targets = [index for index in others if not _has_no_text(columns[index])]
        return texts[0], *targets[:1]
    chosen = free if len(free) > 1 else texts
    return (chosen[0], chosen[1]) if len(chosen) > 1 else (0, 1)


def choose_text_index(rows: Sequence[Sequence[str]], num_columns: int, names: Sequence[str] = ()) -> int:
    """The column of texts alone: that which is called so, else that with the longest cells, the last of several.

    Args:
        rows: the first of the table, without a header.
        num_columns: their number.
        names: of the columns, if they have some.
    """
    if TEXT_NAME in names:
        return names.index(TEXT_NAME)
    lengths = [sum(len(row[index]) for row in rows if index < len(row)) for index in range(num_columns)]
    return max(range(num_columns), key=lambda index: (lengths[index], index), default=0)


def _find_texts(columns: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[list[int], list[int], set[int]]:
    """The columns of texts, those of few different values, and those that are read as neither if there are others.

    Args:
        columns: their cells.
        names: their names, if they have some.
    """
    texts = [place for place, cells in enumerate(columns) if any(cells) and not _has_numbers(cells)]
    unread = {place for place in texts if _is_unread(columns[place])}
    id_name = ID_NAME_PATTERN if len(columns) < 3 else ID_OR_NUMBER_NAME_PATTERN
    unread |= {place for place, name in enumerate(names) if id_name.fullmatch(name)} | _verse_columns(columns)
    texts = [place for place in texts if place not in unread] or texts
    labels = [place for place, cells in enumerate(columns) if _has_classes(cells) and place not in unread]
    identifiers = {place for place in texts if _has_identifiers(columns[place])}
    if len({*texts} - identifiers) > int(len(columns) < 3 and not _have_one_prefix(columns, identifiers)):
        texts = [place for place in texts if place not in identifiers]
    languages = {place for place, cells in enumerate(columns) if _has_languages(cells)}
    if len({*texts} - languages) > 1:  # beside a single text they are labels: pos, neg
        texts = [place for place in texts if place not in languages]
        labels = [place for place in labels if place not in languages]
    return texts, labels, unread


def _verse_columns(columns: Sequence[Sequence[str]]) -> set[int]:
    """The columns of numbers of chapters and verses, and those of numbers before them, as of books."""
    for place, (chapters, verses) in enumerate(pairwise(columns)):
        rows = [*zip(chapters, verses, strict=False)][:MAX_VERSES_JUDGED]
        if len(rows) < MIN_ROWS_JUDGED or not all(cell.isdecimal() for row in rows for cell in row):
            continue
        numbers = [(int(chapter), int(verse)) for chapter, verse in rows]
        if (
            numbers[0] == (1, 1)
            and any(verse > 1 for _, verse in numbers)
            and all(after in ((before[0], before[1] + 1), (before[0] + 1, 1)) for before, after in pairwise(numbers))
        ):
            return {place, place + 1, *(before for before in range(place) if _has_numbers(columns[before]))}
    return set()


def are_tatoeba_rows(rows: Sequence[Sequence[str]], places: Sequence[int]) -> bool:
    """Whether rows are a number, a language and a sentence, and these languages would be the target."""
    return tuple(places) == (2, 1) and all(
        len(row) == 3 and row[0].isdecimal() and LANGUAGE_CODE.fullmatch(row[1]) for row in rows
    )


def _has_features(cells: Sequence[str]) -> bool:
    return any(";" in cell or "=" in cell for cell in cells) and all(FEATURES_PATTERN.fullmatch(cell) for cell in cells)


def _has_numbers(cells: Sequence[str]) -> bool:
    return all(NUMBER_PATTERN.fullmatch(cell) for cell in cells if cell)


def _is_unread(cells: Sequence[str]) -> bool:
    """Whether cells are no texts where there are others: one value, or names of files, addresses, dates or splits."""
    is_of_kind = any(all(map(pattern.fullmatch, cells)) for pattern in UNREAD_PATTERNS)
    return is_of_kind or _is_constant(cells) or {*map(str.lower, cells)} <= SPLIT_NAMES


def _has_no_text(cells: Sequence[str]) -> bool:
    """Whether cells are names with numbers, one value or empty."""
    return not any(cells) or _has_identifiers(cells) or _is_constant(cells)


def _has_several_words(cells: Sequence[str]) -> bool:
    return any(" " in cell.strip() for cell in cells)


def _has_mostly_several_words(cells: Sequence[str]) -> bool:
    return 2 * sum(" " in cell.strip() for cell in cells) > len(cells)


def _have_one_prefix(columns: Sequence[Sequence[str]], places: Collection[int]) -> bool:
    """Whether the cells of each of some columns begin with the same letters, as names of a corpus do."""
    begins = [{cell[:2] for cell in columns[place]} for place in places]
    return all(len(each) == 1 and min(each).isalpha() for each in begins)


def _is_constant(cells: Sequence[str]) -> bool:
    return len(cells) >= MIN_ROWS_JUDGED and len({*cells}) == 1


def _has_languages(cells: Sequence[str]) -> bool:
    is_of_few = len({*cells}) <= 2 and len(cells) > len({*cells})
    return is_of_few and all(LANGUAGE_CODE.fullmatch(cell) for cell in cells)


def _has_identifiers(cells: Sequence[str]) -> bool:
    """Whether each cell is a name of its own, and most have a digit, such as doc-17."""
    are_distinct = len(cells) >= MIN_ROWS_JUDGED and len({*cells}) == len(cells)
    have_digits = 2 * sum(any(map(str.isdigit, cell)) for cell in cells) > len(cells)
    return are_distinct and have_digits and all(IDENTIFIER_PATTERN.fullmatch(cell) for cell in cells)


def _has_classes(cells: Sequence[str]) -> bool:
    return len(cells) >= MIN_ROWS_JUDGED and 1 < len({*cells}) <= len(cells) / 2
