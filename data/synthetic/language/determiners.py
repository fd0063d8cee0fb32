"""Determiners: the words before a noun, in English and German, and how often each comes up."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfm.data.synthetic.language import expressions, german
from tfm.data.synthetic.language.german import DeclensionTable


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    english: tuple[str, str]  # singular, plural
    german: DeclensionTable
    endings: DeclensionTable  # of an adjective behind it
    definite: bool = True
    negative: bool = False
    quantified: bool = False
    owner: bool = False


THE = Determiner(("the", "the"), german.DEFINITE_ARTICLE, german.WEAK_ENDINGS)
THIS = Determiner(("this", "these"), german.decline_like_dieser("dies"), german.WEAK_ENDINGS)
EVERY = Determiner(("every", ""), german.decline_like_dieser("jed"), german.WEAK_ENDINGS, quantified=True)
ALL = Determiner(("", "all"), german.decline_like_dieser("all"), german.WEAK_ENDINGS, quantified=True)
MANY = Determiner(
    ("", "many"), german.decline_like_dieser("viel"), german.STRONG_ENDINGS, definite=False, quantified=True
)
A = Determiner(("a", ""), german.decline_like_ein("ein"), german.MIXED_ENDINGS, definite=False)
EMPTY_DETERMINER = Determiner(("", ""), german.make_indeclinable_table(""), german.STRONG_ENDINGS, definite=False)
NO = Determiner(("no", "no"), german.decline_like_ein("kein"), german.MIXED_ENDINGS, definite=False, quantified=True)
# "does not see a dog" is "sieht keinen Hund": kein stands where English has a, or nothing.
NOT_A = Determiner(A.english, NO.german, NO.endings, definite=False, negative=True)
WHICH = Determiner(("which", "which"), german.decline_like_dieser("welch"), german.WEAK_ENDINGS)
HOW_MANY = Determiner(("", "how many"), german.make_indeclinable_table("wie viele"), german.STRONG_ENDINGS)
NUMBERS = tuple(
    Determiner(
        ("", number.english),
        german.make_indeclinable_table(number.german),
        german.STRONG_ENDINGS,
        definite=False,
        quantified=True,
    )
    for number in expressions.NUMBERS[1:]
)
THE_NUMBERS = tuple(
    Determiner(
        ("", f"the {number.english}"),
        german.append_indeclinable_word(german.DEFINITE_ARTICLE, number.german),
        german.WEAK_ENDINGS,
    )
    for number in expressions.NUMBERS[1:6]
)
POSSESSIVE_PRONOUN_DETERMINERS = tuple(
    Determiner((word, word), german.decline_like_ein(stem), german.MIXED_ENDINGS, owner=True)
    for word, stem in (
        ("my", "mein"),
        ("your", "Ihr"),
        ("his", "sein"),
        ("her", "ihr"),
        ("our", "unser"),
        ("their", "ihr"),
    )
)
NAME_GENITIVE_DETERMINERS = tuple(
    Determiner((f"{name}'s",) * 2, german.make_indeclinable_table(f"{name}s"), german.STRONG_ENDINGS)
    for name in expressions.NAMES
)

DeterminerChoices = tuple[tuple[Determiner, bool], ...]  # (determiner, plural), each as often as it is to come up


def _weighted_determiners(*rows: tuple[Sequence[Determiner], bool, int]) -> DeterminerChoices:
    """Each row: determiners of which one is as good as another, plural, weight (a multiple of their number)."""
    return tuple(
        (determiner, plural)
        for determiners, plural, weight in rows
        for determiner in determiners
        for _ in range(max(1, weight // len(determiners)))
    )


_COMMON_DETERMINERS = (
    ((THE,), False, 150),
    ((THE,), True, 60),
    (POSSESSIVE_PRONOUN_DETERMINERS, False, 48),
    (POSSESSIVE_PRONOUN_DETERMINERS, True, 18),
    ((THIS,), False, 24),
    ((THIS,), True, 12),
)
_QUANTIFIED_DETERMINERS = (
    ((EVERY,), False, 15),
    ((ALL,), True, 12),
    ((MANY,), True, 12),
    (NUMBERS, True, 22),
    (THE_NUMBERS, True, 10),
)
DEFINITE_DETERMINERS = _weighted_determiners(*_COMMON_DETERMINERS)
POSITIVE_DETERMINERS = _weighted_determiners(
    *_COMMON_DETERMINERS, *_QUANTIFIED_DETERMINERS, ((A,), False, 30)
)  # "does no man sleep?" is not asked
SUBJECT_DETERMINERS = _weighted_determiners(
    *_COMMON_DETERMINERS, *_QUANTIFIED_DETERMINERS, ((A,), False, 30), ((NO,), False, 8)
)
OBJECT_DETERMINERS = _weighted_determiners(
    *_COMMON_DETERMINERS, *_QUANTIFIED_DETERMINERS, ((A,), False, 100), ((EMPTY_DETERMINER,), True, 30)
)
NEGATED_OBJECT_DETERMINERS = _weighted_determiners(*_COMMON_DETERMINERS, ((NOT_A,), False, 80), ((NOT_A,), True, 40))
# What is given: "gives her apples" could be her apples, so no plural without a determiner.
THEME_DETERMINERS = _weighted_determiners(*_COMMON_DETERMINERS, *_QUANTIFIED_DETERMINERS, ((A,), False, 150))
NEGATED_THEME_DETERMINERS = _weighted_determiners(*_COMMON_DETERMINERS, ((NOT_A,), False, 80))
HEAD_DETERMINERS = _weighted_determiners(
    ((THE,), False, 10), ((THE,), True, 4), ((A,), False, 4)
)  # of a relative clause
PLACE_DETERMINERS = _weighted_determiners(
    ((THE,), False, 30), ((A,), False, 4), (POSSESSIVE_PRONOUN_DETERMINERS, False, 6), ((THIS,), False, 2)
)
EXISTENCE_DETERMINERS = _weighted_determiners(
    ((A,), False, 12), (NUMBERS, True, 11), ((MANY,), True, 4), ((NO,), False, 3)
)
