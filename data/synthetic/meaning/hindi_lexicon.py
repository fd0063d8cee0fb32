"""Hindi words of the built-in corpus `languages` with their forms, parsed from the tables of hindi_words.py."""

from typing import NamedTuple

from tfm.data.synthetic.meaning import hindi_words
from tfm.data.synthetic.meaning.hindi_words import FEMININE, MASCULINE, split_cells

FINAL_A, VOWEL_SIGN_I, VOWEL_SIGN_U = "ा", "ी", "ू"


class HindiNoun(NamedTuple):
    gender: str
    forms: tuple[tuple[str, str], tuple[str, str]]  # singular and plural, each direct and oblique


class HindiVerb(NamedTuple):
    before: str  # साफ़ of साफ़ करना
    stem: str
    perfective: str  # masculine singular
    ergative: bool  # its subject takes ने in the past


def noun_forms(word: str, gender: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The four forms of a noun, from its ending and its gender; "=" before it: its singular does not change."""
    fixed, word = word.startswith("="), word.removeprefix("=")
    if word.endswith("िया"):
        return (word, word), (word[:-1] + "ाँ", word[:-1] + "ों")
    if word.endswith(FINAL_A) and gender == MASCULINE and not fixed:
        stem = word[:-1]
        return (word, stem + "े"), (stem + "े", stem + "ों")
    if word.endswith(VOWEL_SIGN_I):
        short = word[:-1] + "ि"
        return (word, word), (short + "याँ" if gender == FEMININE else word, short + "यों")
    if word.endswith(VOWEL_SIGN_U):
        return (word, word), (word, word[:-1] + "ुओं")
    if word.endswith(("ा", "ई")):  # राजा, भाई, रसोई
        oblique = word[:-1] + "इयों" if word.endswith("ई") else word + "ओं"
        direct = word[:-1] + "इयाँ" if gender == FEMININE else word
        return (word, word), (direct, oblique)
    return (word, word), (word + "ें" if gender == FEMININE else word, word + "ों")


def _parse_noun(cell: str) -> tuple[str, HindiNoun]:
    lexeme, word, gender = cell.split()
    return lexeme, HindiNoun(gender, noun_forms(word, gender))


def _parse_verb(cell: str) -> tuple[str, HindiVerb]:
    lexeme, entry = (each.strip() for each in cell.split("|"))
    words = entry.split()
    ergative = words[-1] == "ने"
    *first_words, stem, perfective = words[:-1] if ergative else words
    return lexeme, HindiVerb(" ".join(first_words), stem, perfective, ergative)


NOUNS = dict(map(_parse_noun, split_cells(hindi_words.NOUNS)))
ADJECTIVES = dict(cell.split(" ", 1) for cell in split_cells(hindi_words.ADJECTIVES))
VERBS = dict(map(_parse_verb, split_cells(hindi_words.VERBS)))
