"""A corpus of inflected nouns: an invented stem and the features that are wanted, and the form.

The rules are those of Turkish nouns: vowels of suffixes follow those of the stem (vowel harmony), stops at the end of
longer stems are voiced before a vowel, and d is t after a voiceless consonant.
"""

import random
from collections.abc import Callable, Iterator
from hashlib import blake2b

from tfm.data.errors import DataError

SPLITS = ("train", "valid", "test", "combinations")
FRONT_VOWELS, BACK_VOWELS = "eiöü", "aıou"
VOWELS = FRONT_VOWELS + BACK_VOWELS
VOICELESS_CONSONANTS = "pçtkfhsş"
CONSONANTS = "bcçdfghjklmnprsştvyz"
VOICED_CONSONANTS = {"p": "b", "ç": "c", "t": "d", "k": "ğ"}
HIGH_VOWELS = {"a": "ı", "ı": "ı", "e": "i", "i": "i", "o": "u", "u": "u", "ö": "ü", "ü": "ü"}
"""The high vowel that follows a vowel."""
NUMBER_SUFFIXES = {"SG": "", "PL": "lAr"}
POSSESSIVE_SUFFIXES = {"": "", "PSS1S": "(I)m", "PSS2S": "(I)n", "PSS3S": "(s)I", "PSS1P": "(I)mIz"}
CASE_SUFFIXES = {"NOM": "", "ACC": "(y)I", "DAT": "(y)A", "LOC": "DA", "ABL": "DAn", "GEN": "(n)In"}
"""Suffixes: A is a or e, I a high vowel, D is d or t; letters in brackets keep vowels or consonants apart."""
HELD_OUT_FEATURES = frozenset(
    {("PL", "PSS1S", "ABL"), ("PL", "PSS2S", "DAT"), ("SG", "PSS1P", "LOC"), ("SG", "PSS2S", "GEN")}
)
"""Bundles of features that only the split `combinations` has."""

Features = tuple[str, str, str]


def inflect(stem: str, features: Features) -> str:
    """The form of a stem with a number, a possessor ("" for none) and a case."""
    number, possessor, case = features
    form, is_polysyllabic = stem, sum(letter in VOWELS for letter in stem) > 1
    for suffix in (NUMBER_SUFFIXES[number], POSSESSIVE_SUFFIXES[possessor]):
        form = _append_suffix(form, suffix, voice_final_stop=is_polysyllabic and form == stem)
    suffix = CASE_SUFFIXES[case]
    if possessor == "PSS3S" and suffix:  # n stands between it and a case
        suffix = "n" + suffix.replace("(y)", "").replace("(n)", "")
    return _append_suffix(form, suffix, voice_final_stop=is_polysyllabic and form == stem)


def generate(split: str, size: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield different pairs, a pure function of the arguments: "kitap PL;PSS1S;DAT" and "kitaplarıma".

    A stem is in one split alone, by its hash; `combinations` has stems of the test set.

    Args:
        split: one of SPLITS.
        size: the number of pairs.
        seed: of the draws.

    Raises:
        DataError: there is no such split.
    """
    if split not in SPLITS:
        raise DataError(f"the corpus inflection has no split {split!r}; choose one of {', '.join(SPLITS)}")
    draw = random.Random(f"inflection {split} {seed}").random
    bundles = [
        (number, possessor, case)
        for number in NUMBER_SUFFIXES
        for possessor in POSSESSIVE_SUFFIXES
        for case in CASE_SUFFIXES
        if ((number, possessor, case) in HELD_OUT_FEATURES) == (split == "combinations")
    ]
    stem_split = "test" if split == "combinations" else split
    seen: set[str] = set()
    while len(seen) < size:
        stem, features = _draw_stem(draw), bundles[int(draw() * len(bundles))]
        source = f"{stem} {';'.join(filter(None, features))}"
        if source in seen or split_of(stem) != stem_split:
            continue
        seen.add(source)
        yield source, inflect(stem, features)


def split_of(stem: str) -> str:
    """The one split that may have a stem, by its hash: train 8, valid 1, test 1 of 10."""
    return ("valid", "test", *("train",) * 8)[blake2b(stem.encode(), digest_size=8).digest()[0] % 10]


def _draw_stem(draw: Callable[[], float]) -> str:
    """One to three syllables whose vowels are all front or all back."""
    vowels = FRONT_VOWELS if draw() < 0.5 else BACK_VOWELS
    syllables = 1 + int(draw() * 3)
    letters = []
    for number in range(syllables):
        letters += [_draw_letter(draw, CONSONANTS), _draw_letter(draw, vowels)]
        if draw() < (0.7 if number == syllables - 1 else 0.2) or syllables == 1:
            letters.append(_draw_letter(draw, CONSONANTS))
    return "".join(letters)


def _draw_letter(draw: Callable[[], float], letters: str) -> str:
    return letters[int(draw() * len(letters))]


def _append_suffix(form: str, suffix: str, *, voice_final_stop: bool) -> str:
    """A form with one more suffix; voice_final_stop: whether a stop at its end is voiced before a vowel."""
    if not suffix:
        return form
    ends_in_vowel = form[-1] in VOWELS
    if suffix.startswith("("):
        letter, rest = suffix[1], suffix[3:]
        has_linking_letter = not ends_in_vowel if letter == "I" else ends_in_vowel
        suffix = (letter if has_linking_letter else "") + rest
    if voice_final_stop and suffix[0] in "AI" and form[-1] in VOICED_CONSONANTS:
        form = form[:-1] + VOICED_CONSONANTS[form[-1]]
    for letter in suffix:
        last_vowel = next(each for each in reversed(form) if each in VOWELS)
        spelled = {
            "A": "a" if last_vowel in BACK_VOWELS else "e",
            "I": HIGH_VOWELS[last_vowel],
            "D": "t" if form[-1] in VOICELESS_CONSONANTS else "d",
        }
        form += spelled.get(letter, letter)
    return form
