"""Lists of words whose columns stand between spaces: dictionaries of two languages, lexicons of words and their phones,
and vocabularies with numbers.

Probabilities are looked for before vocabularies, whose rows have numbers too; lexicons that are read come before both,
and pairs of words last, as any text of two words a line looks like these.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from tfm.data.formats.fasttext import SOUND_PATTERN
from tfm.data.scripts import has_spaceless_script

MIN_ENTRIES_JUDGED, MIN_ENTRIES_BESIDE_MARKS = 8, 3
"""Fewer lines of two words, or of short ones, may be texts; words for silence beside them are only in lexicons."""
MAX_TRANSLATIONS = 4
"""How many translations the words of a dictionary have at most, on average."""
MAX_UNIT_CHARACTERS = 6
"""The characters of a phone with its stress or place in the word, such as AH0_B."""
UNITS_PER_CHARACTER, NUM_FURTHER_UNITS = 2, 3
"""The phones of a word are at most so many times its characters, and these more; few have more, such as AAA."""
MAX_INVENTORY_SHARE, MIN_INVENTORY = 0.4, 6
"""A lexicon has at most as many different phones as this share of all its phones, and these more."""
PROBABILITY_PATTERN = re.compile(r"[01]?\.[0-9]+|[1-9][0-9]*\.[0-9]+|[0-9]+(?:\.[0-9]+)?[eE]-?[0-9]+")
PLACE_IN_WORD = re.compile(r"_[BIES]|[0-9]")
LETTER_PATTERN = re.compile(r"[^\W\d_]")
CELL_ENDS, CODES_END = ",;:", "</w>"


def are_word_pairs(lines: Sequence[str]) -> bool:
    """Whether lines are a word and its translation each, as of MUSE: two words, the second of which are mostly
    different. A first name and a surname look alike.

    lines: the first of a file.
    """
    rows = _filled_rows(lines)
    if len(rows) < MIN_ENTRIES_JUDGED or len(rows) < len(lines) or any(len(row) != 2 for row in rows):
        return False
    have_letters = all(_has_letter(row[0]) and _has_letter(row[1]) for row in rows)
    if all(row[0][-1] in CELL_ENDS for row in rows):
        return False
    words, translations = ({row[place] for row in rows} for place in (0, 1))
    return have_letters and MAX_TRANSLATIONS * len(words) >= len(rows) and 2 * len(translations) > len(rows)


def is_lexicon(lines: Sequence[str]) -> bool:
    """Whether lines are a word and its phones each, as of Kaldi and the Montreal Forced Aligner.

    Phones are short, few in number, mostly no words of the lexicon, and not many more than the characters of the word.

    lines: the first of a file.
    """
    return _are_pronunciations(_filled_rows(lines))


def lexicon_problem(lines: Sequence[str]) -> str | None:
    """Why lines are a lexicon that is not read: probabilities stand between its words and their phones; None if not.

    lines: the first of a file.
    """
    rows = _filled_rows(lines)
    stripped = [_without_probabilities(row) for row in rows]
    if rows == stripped or not _are_pronunciations(stripped):
        return None
    remedy = r"sed -E 's/^([^ \t]+)([ \t]+[0-9.e-]+)*[ \t]+/\1\t/' FILE"
    return (
        "is a lexicon with probabilities (Kaldi, Montreal Forced Aligner): cut these, as by "
        f'{remedy}, and set format = "tsv", source = 0, target = 1'
    )


def vocabulary_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts, but words with their numbers, frequencies or flags, translations of words with their
    probabilities, or merges of byte-pair encoding; None if not.

    lines: the first of a file.
    """
    rows = _filled_rows(lines)
    if len(rows) < MIN_ENTRIES_JUDGED:
        return None
    widths = {*map(len, rows)}
    if widths == {1} and lines[0].strip().isdecimal() and 2 * sum("/" in row[0][1:] for row in rows) > len(rows):
        return "is words with flags, as of Hunspell: cut the words, as by sed '1d; s|/.*||' FILE"
    if widths == {3} and all(PROBABILITY_PATTERN.fullmatch(row[2]) and _has_letter(row[0]) for row in rows):
        remedy = """awk '{print $1 "\\t" $2}' FILE, and set format = "tsv", source = 0, target = 1"""
        return f"is translations of words with their probabilities, as of Moses: cut these, as by {remedy}"
    are_merges = widths == {2} or (widths == {3} and all(row[2].isdecimal() for row in rows))
    if are_merges and any(row[1].endswith(CODES_END) for row in rows):
        return "is codes of byte-pair encoding, and no text: `tfm tokenize --from FILE` reads them"
    if widths != {2}:
        return None
    for place, command in ((1, "awk '{print $1}' FILE"), (0, "awk '{print $2}' FILE")):
        numbers = [row[place] for row in rows]
        words = [row[1 - place] for row in rows]
        if not all(map(str.isdecimal, numbers)) or len({*words}) < len(words) or not all(map(_has_letter, words[1:])):
            continue
        values = [*map(int, numbers)]
        counts_up = all(after == before + 1 for before, after in pairwise(values))
        falls = all(after <= before for before, after in pairwise(values)) and values[0] > values[-1]
        if (counts_up and place == 1) or falls:
            return f"is words with their numbers or frequencies, which are no texts: cut the words, as by {command}"
    return None


def _are_pronunciations(rows: Sequence[Sequence[str]]) -> bool:
    num_rows = len(rows)
    rows = [row for row in rows if SOUND_PATTERN.fullmatch(row[0]) is None]
    min_rows = MIN_ENTRIES_JUDGED if len(rows) == num_rows else MIN_ENTRIES_BESIDE_MARKS
    if len(rows) < min_rows or any(len(row) < 2 or PROBABILITY_PATTERN.fullmatch(row[1]) for row in rows):
        return False
    words, units = {row[0] for row in rows}, [unit for row in rows for unit in row[1:]]
    if 2 * len(words) < len(rows) or 4 * sum(len(word) == 1 for word in words) > 3 * len(words):
        return False
    if all("".join(row[1:]).casefold() == row[0].casefold() for row in rows):  # it is spelled
        return any(len(row) > 2 for row in rows)
    unit_size = sum(len(PLACE_IN_WORD.sub("", unit)) for unit in units) / len(units)
    are_longer = has_spaceless_script(words) or sum(map(len, words)) >= unit_size * len(words)
    num_long = sum(len(row) - 1 > UNITS_PER_CHARACTER * len(row[0]) + NUM_FURTHER_UNITS for row in rows)
    has_lengths = len({*map(len, rows)}) > 1 and 10 * num_long <= len(rows)
    return are_longer and has_lengths and _are_phones(units, words)


def _are_phones(units: Sequence[str], words: Collection[str]) -> bool:
    """Whether units are short, most with a letter, and few different ones, and hardly words of the lexicon."""
    inventory = {*units}
    return (
        max(map(len, units)) <= MAX_UNIT_CHARACTERS
        and 4 * sum(map(_has_letter, units)) >= 3 * len(units)
        and len(inventory) <= MAX_INVENTORY_SHARE * len(units) + MIN_INVENTORY
        and 2 * len(inventory.intersection(words)) <= len(words)
        and not has_spaceless_script(inventory)
    )


def _without_probabilities(row: Sequence[str]) -> list[str]:
    begin = next((place for place, cell in enumerate(row[1:], 1) if not PROBABILITY_PATTERN.fullmatch(cell)), len(row))
    return [row[0], *row[begin:]]


def _filled_rows(lines: Sequence[str]) -> list[list[str]]:
    return [line.split() for line in lines if line.strip()]


def _has_letter(text: str) -> bool:
    return LETTER_PATTERN.search(text) is not None
