"""Which columns of a file hold words and which labels, by what is in them; numbers and places in a text are neither."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

from tfm.data.formats.conll.layout import (
    COMMENT_MARK,
    MAX_WORDS_SAMPLED,
    MIN_WORDS_SAMPLED,
    TAG_PATTERN,
    ColumnLayout,
    is_marked,
)
from tfm.data.lines import open_lines

MIN_HEADS, MIN_NUMBERS_JUDGED, MIN_SENTENCES_JUDGED = 8, 6, 2
PLACE_PATTERN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
"""The number of a word or character, or a time."""
PLACES_PATTERN = re.compile(r"[0-9]+-[0-9]+")
"""The number of a word behind that of its sentence, or its first and last character, as WebAnno has them."""
NO_LABELS = frozenset({"_", "-", "?"})
"""Signs in place of the labels of a test set."""
WORD_PATTERN = re.compile(r"\S+")
UNLABELLED_REMEDY = "write those of a sentence in a line, which `tfm translate` labels, as by {}"
ONE_COLUMN_PROBLEM = "its lines have one column; those of a word and its label stand between tabs or spaces"


def number_column_problem(path: Path, layout: ColumnLayout) -> str | None:
    """Why the first column cannot be that of words; None if it can.

    In the first sentences it has numbers that count or go on, or tags, or it is the same at all words of a sentence.
    """
    if layout.table is not None:
        return None
    sentences = _sample_sentences(path, layout)
    return _problem_of_words(sentences, 0, layout.width)


def find_word_column(path: Path, layout: ColumnLayout) -> int:
    """The first column that may be that of words; if it is not the first of all, it has no numbers."""
    sentences = [] if layout.table is not None else _sample_sentences(path, layout)
    if not sentences or _problem_of_words(sentences, 0, layout.width) is None:
        return layout.word_column
    places = (
        place
        for place in range(1, layout.width)
        if not _are_numbers(sentences, place) and _problem_of_words(sentences, place, layout.width) is None
    )
    return next(places, layout.word_column)


def find_label_column(path: Path, layout: ColumnLayout, word_column: int) -> int | None:
    """The column of labels if it is not the last one; None if it is.

    Args:
        path: the file.
        layout: of the file.
        word_column: the place of its words.
    """
    if layout.table is not None or layout.has_arguments:
        return None
    if (place := find_column_before_numbers(path, layout)) is not None:
        return place
    sentences = _sample_sentences(path, layout)
    last = layout.width - 1
    if all(TAG_PATTERN.fullmatch(row[last]) for sentence in sentences for row in sentence):
        return None
    tagged = [place for place in range(layout.width) if place != word_column and _has_tags(sentences, place)]
    if tagged:
        return tagged[0]
    if word_column != last and not _has_signs(sentences, last):
        return None
    others = (place for place in reversed(range(last)) if place != word_column)
    return next(
        (each for each in others if not _are_numbers(sentences, each) and not _has_signs(sentences, each)), None
    )


def other_tag_columns(path: Path, layout: ColumnLayout) -> list[int]:
    """The columns before the last that hold tags of entities which the last, in the first words, does not hold.

    So of GermEval's two layers the last has the few names within names. Tags of phrases are of other types.
    """
    rows = (cells for _, cells in layout.rows(path) if len(cells) == layout.width and not is_marked(cells[0]))
    sample = list(islice(rows, int(layout.is_headed), MAX_WORDS_SAMPLED))
    types = [_tag_types([cells[place] for cells in sample]) for place in range(layout.width)]
    last = types[-1]
    return [place for place, found in enumerate(types[1:-1], 1) if found and (not last or found & last)]


def find_column_before_numbers(path: Path, layout: ColumnLayout) -> int | None:
    """The last column without numbers where the last of all holds numbers, as of heads or places, and the first holds
    none; None if it does not. Numbers of few values, as of classes, are labels.
    """
    if layout.table is not None or layout.has_arguments or layout.width < 3:
        return None
    sentences = _sample_sentences(path, layout)
    last = layout.width - 1
    numbers = {row[last] for sentence in sentences for row in sentence}
    are_heads = len(numbers) >= MIN_HEADS and all(map(str.isdecimal, numbers))
    if not are_heads and not _go_on(sentences, last):
        return None
    others = [place for place in range(1, last) if not _are_numbers(sentences, place)]
    return others[-1] if others and (others[-1] == last - 1 or _go_on(sentences, last)) else None


def unlabelled_problem(path: Path, layout: ColumnLayout) -> str | None:
    """Why a file has no labels, as the test sets of shared tasks have none: its columns are words, their numbers, and
    signs in place of labels. None if it has some.
    """
    if layout.table is not None or layout.has_arguments or not layout.width:
        return None
    if layout.width == 1:
        return None if one_column_problem(path) == ONE_COLUMN_PROBLEM else one_column_problem(path)
    sentences = _sample_sentences(path, layout)
    rows = [row for sentence in sentences for row in sentence]
    word = find_word_column(path, layout)
    others = [place for place in range(layout.width) if place != word]
    are_numbered = others and word > 0 and all(_are_numbers(sentences, place) for place in others)
    have_signs = others and all(_has_signs(sentences, place) for place in others)
    if len(rows) < MIN_WORDS_SAMPLED or not (are_numbered or have_signs):
        return None
    has_comments = any(line.startswith(COMMENT_MARK) for line in islice(open_lines(path), MAX_WORDS_SAMPLED))
    separator = "\t" if layout.separator == "tabs" else " "
    remedy = UNLABELLED_REMEDY.format(sentences_command(word, separator, has_comments=has_comments))
    return f"has words (column {word}) and no labels: {remedy}"


def one_column_problem(path: Path) -> str:
    """Why a file of one column has no labels: its lines are words alone, or no columns."""
    lines = [line for line in islice(open_lines(path), MAX_WORDS_SAMPLED) if not is_marked(line)]
    return f"has a word a line and no labels: {WORDS_ALONE_REMEDY}" if are_words_alone(lines) else ONE_COLUMN_PROBLEM


def are_words_alone(lines: Sequence[str]) -> bool:
    """Whether lines are words without labels, with marks of punctuation among them and blank lines between sentences.

    lines: the first of a file.
    """
    words = [line.strip() for line in lines]
    filled = [word for word in words if word]
    num_sentences = sum(bool(word) and not before for before, word in pairwise(["", *words]))
    return (
        num_sentences >= MIN_SENTENCES_JUDGED
        and len(filled) >= 2 * num_sentences
        and all(map(WORD_PATTERN.fullmatch, filled))
        and any(not any(map(str.isalnum, word)) for word in filled)
        and 2 * sum(any(map(str.isalpha, word)) for word in filled) > len(filled)
    )


def sentences_command(word_column: int, separator: str = " ", *, has_comments: bool = False) -> str:
    """The command that writes the words of each sentence in a line.

    Args:
        word_column: the place of the words.
        separator: between columns: a tab, or a space for any white space.
        has_comments: whether lines that begin with # are comments.
    """
    skip = "/^#/ {next} " if has_comments else ""
    option = "-F'\\t' " if separator == "\t" else ""
    join = f'NF {{line = line (line == "" ? "" : " ") ${word_column + 1}; next}}'
    return (
        f"""awk {option}'{skip}{join} line != "" {{print line; line = ""}} END {{if (line != "") print line}}' FILE"""
    )


WORDS_ALONE_REMEDY = UNLABELLED_REMEDY.format(sentences_command(0))


def _sample_sentences(path: Path, layout: ColumnLayout) -> list[list[list[str]]]:
    """The first sentences, of words of all columns."""
    sentences: list[list[list[str]]] = [[]]
    for row in islice(_unmarked_rows(path, layout), int(layout.is_headed), MAX_WORDS_SAMPLED):
        if not row:
            sentences.append([])
        elif len(row) == layout.width:
            sentences[-1].append(row)
    return [sentence for sentence in sentences if sentence]


def _unmarked_rows(path: Path, layout: ColumnLayout) -> Iterator[list[str]]:
    return (cells for _, cells in layout.rows(path) if not cells or not is_marked(cells[0]))


def _problem_of_words(sentences: Sequence[Sequence[Sequence[str]]], place: int, width: int) -> str | None:
    """Why a column cannot be that of words; None if it can.

    Args:
        sentences: the first of a file.
        place: of the column.
        width: the number of columns.
    """
    columns = [[row[place] for row in sentence] for sentence in sentences]
    cells = [cell for column in columns for cell in column]
    name = "its first column" if place == 0 else f"its column {place}"
    if len(cells) < MIN_WORDS_SAMPLED:
        return None
    for begin in (0, 1):
        if all(cell == str(number) for column in columns for number, cell in enumerate(column, begin)):
            return f"{name} counts the words ({', '.join(cells[:3])}, ...)"
    if _go_on(sentences, place):
        return f"{name} has numbers of words or characters ({', '.join(cells[:3])}, ...)"
    if len(cells) > 2 * MIN_WORDS_SAMPLED and len({*cells}) == 1:
        return f"{name} is {cells[0]:.40} at every word"
    longer = [{*column} for column in columns if len(column) > 1]
    has_several = len(longer) >= MIN_SENTENCES_JUDGED and len(cells) >= MIN_NUMBERS_JUDGED and len({*cells}) > 1
    if has_several and all(len(each) == 1 for each in longer):
        return f"{name} is the same at every word of a sentence ({cells[0]:.40})"
    if width > 1 and _has_tags(sentences, place) and not _has_tags(sentences, width - 1):
        return f"{name} has tags ({', '.join(dict.fromkeys(cells))[:40]})"
    return None


def _are_numbers(sentences: Sequence[Sequence[Sequence[str]]], place: int) -> bool:
    return all(
        PLACE_PATTERN.fullmatch(row[place]) or PLACES_PATTERN.fullmatch(row[place])
        for sentence in sentences
        for row in sentence
    )


def _has_signs(sentences: Sequence[Sequence[Sequence[str]]], place: int) -> bool:
    return {row[place] for sentence in sentences for row in sentence} <= NO_LABELS


def _go_on(sentences: Sequence[Sequence[Sequence[str]]], place: int) -> bool:
    """Whether a column has numbers that grow within each sentence, of words, characters or seconds."""
    if sum(map(len, sentences)) < MIN_NUMBERS_JUDGED or all(len(sentence) == 1 for sentence in sentences):
        return False
    if not _are_numbers(sentences, place):
        return False
    places = [[[*map(float, row[place].split("-"))] for row in sentence] for sentence in sentences]
    return all(before < after for sentence in places for before, after in pairwise(sentence))


def _has_tags(sentences: Sequence[Sequence[Sequence[str]]], place: int) -> bool:
    return bool(_tag_types([row[place] for sentence in sentences for row in sentence]))


def _tag_types(labels: Sequence[str]) -> set[str]:
    """The types of the tags that labels are; none if one of them is no tag."""
    matches = [match for label in labels if (match := TAG_PATTERN.fullmatch(label)) is not None]
    return {match[1] for match in matches if match[1]} if len(matches) == len(labels) else set()
