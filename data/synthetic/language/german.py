"""German inflection for the built-in corpus: articles, adjectives, nouns, verbs, contractions.

Genders are columns 0..3 (masculine, feminine, neuter, plural), cases are 0..3 (nominative, accusative,
dative, genitive), persons are 0..2 (ich; er, sie, es; plural, which is also the polite Sie).
"""

from collections.abc import Mapping

MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
FIRST, THIRD, PLURAL_PERSON = range(3)

DeclensionTable = tuple[tuple[str, str, str, str], ...]  # [gender][case]


def _make_declension_table(masculine: str, feminine: str, neuter: str, plural: str, stem: str = "") -> DeclensionTable:
    """Four rows of four endings; "-" is the empty ending."""
    rows = []
    for row in (masculine, feminine, neuter, plural):
        nominative, accusative, dative, genitive = (stem + ending.strip("-") for ending in row.split())
        rows.append((nominative, accusative, dative, genitive))
    return tuple(rows)


#                        masculine          feminine         neuter          plural
DEFINITE_ARTICLE = _make_declension_table("der den dem des", "die die der der", "das das dem des", "die die den der")
RELATIVE_PRONOUN = _make_declension_table(
    "der den dem dessen", "die die der deren", "das das dem dessen", "die die denen deren"
)

# Endings of an adjective, by the determiner before it.
WEAK_ENDINGS = _make_declension_table(
    "e en en en", "e e en en", "e e en en", "en en en en"
)  # after der, dieser, jeder, alle
MIXED_ENDINGS = _make_declension_table(
    "er en en en", "e e en en", "es es en en", "en en en en"
)  # after ein, kein, mein
STRONG_ENDINGS = _make_declension_table(
    "er en em en", "e e er er", "es es em en", "e e en er"
)  # after a number, viele, nothing


def decline_like_dieser(stem: str) -> DeclensionTable:
    """dieser, diese, dieses ... from "dies"; so also jeder, welcher, alle, viele."""
    return _make_declension_table("er en em es", "e e er er", "es es em es", "e e en er", stem)


def decline_like_ein(stem: str) -> DeclensionTable:
    """ein, eine, ein ... from "ein"; so also kein, mein, unser, Ihr."""
    return _make_declension_table("- en em es", "e e er er", "- - em es", "e e en er", stem)


def make_indeclinable_table(word: str) -> DeclensionTable:
    """A determiner that is the same in every gender and case: drei, dessen, Annas."""
    return ((word,) * 4,) * 4


def append_indeclinable_word(table: DeclensionTable, word: str) -> DeclensionTable:
    """`table` with `word` behind each of its forms: die drei, den drei."""
    return tuple((f"{a} {word}", f"{b} {word}", f"{c} {word}", f"{d} {word}") for a, b, c, d in table)


def noun_forms(singular: str, plural: str, gender: int, weak: bool) -> DeclensionTable:
    """Return (singular row, plural row) of a German noun, each by case.

    Weak nouns take their plural form outside the nominative. The genitive is right for people, the only possessors
    here.

    Args:
        singular: the nominative singular.
        plural: the nominative plural.
        gender: of the noun.
        weak: whether the noun is weak.
    """
    if weak:
        genitive, oblique = plural, plural
    else:
        oblique = singular
        genitive = singular if gender == FEMININE else singular + ("es" if _is_monosyllable(singular) else "s")
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    return (singular, oblique, oblique, genitive), (plural, plural, dative_plural, plural)


def _is_monosyllable(noun: str) -> bool:
    """One syllable that ends in a consonant: Mann, Kind, Gast take -es."""
    word = noun.lower()
    vowels = sum(letter in "aeiouäöü" for letter in word)
    return word[-1] not in "aeiouäöü" and (
        vowels == 1 or (vowels == 2 and any(two in word for two in ("au", "eu", "ie", "ei")))
    )


def parse_verb_forms(row: str) -> tuple[str, str, tuple[str, str, str], tuple[str, str, str], str]:
    """(prefix, bare infinitive, present by person, past by person, participle) of a dictionary entry.

    The entry is "kaufen" for a weak verb, else infinitive, er-form, past and participle: "sehen sieht sah
    gesehen". A separable prefix is marked: "an|rufen ruft rief gerufen".
    """
    first, *other_forms = row.split()
    prefix, _, infinitive = first.rpartition("|")
    stem = infinitive.removesuffix("en")
    if other_forms:
        third, past, participle = other_forms
    else:
        link = "e" if stem.endswith(("t", "d")) else ""
        third, past, participle = f"{stem}{link}t", f"{stem}{link}te", f"ge{stem}{link}t"
    past_plural = past + ("n" if past.endswith("e") else "en")
    return prefix, infinitive, (stem + "e", third, infinitive), (past, past, past_plural), prefix + participle


_CONTRACTIONS: Mapping[str, str] = {
    "an dem": "am",
    "in dem": "im",
    "von dem": "vom",
    "zu dem": "zum",
    "zu der": "zur",
    "in das": "ins",
}


def contract(preposition: str, phrase: str) -> str:
    """`preposition` and noun phrase as one: "zu" and "der alten Schule" give "zur alten Schule"."""
    article, _, rest = phrase.partition(" ")
    short = _CONTRACTIONS.get(f"{preposition} {article}")
    return f"{short} {rest}" if short else f"{preposition} {phrase}"
