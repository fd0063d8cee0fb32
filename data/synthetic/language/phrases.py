"""Noun phrases of the built-in corpus, built at once in English and German."""

import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from tfm.data.synthetic.language import english, expressions, german, lexicon
from tfm.data.synthetic.language.determiners import (
    DEFINITE_DETERMINERS,
    NAME_GENITIVE_DETERMINERS,
    POSSESSIVE_PRONOUN_DETERMINERS,
    SUBJECT_DETERMINERS,
    THE,
    Determiner,
    DeterminerChoices,
)
from tfm.data.synthetic.language.german import (
    ACCUSATIVE,
    FIRST,
    GENITIVE,
    NOMINATIVE,
    PLURAL_PERSON,
    THIRD,
)
from tfm.data.synthetic.language.lexicon import Adjective, Noun

T = TypeVar("T")


class SeededRandom:
    """Random choices that are a pure function of `seed` on every machine."""

    __slots__ = ("_random",)

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self._random() < probability


class Phrase(NamedTuple):
    """A noun phrase in one case; comments beside its fields describe them."""

    english: str
    german: str
    uses: tuple[str, ...] = ()  # its lexemes; no two phrases of a clause share one
    person: int = THIRD
    definite: bool = True  # comes early in the German clause
    negative: bool = False  # holds kein, so that the clause needs no nicht
    quantified: bool = False  # every, no, many ...: not to be mixed with negation or "always"
    noun: Noun | None = None
    plural: bool = False

    @property
    def gender(self) -> int:
        """The column of German tables that agrees with it."""
        return german.PLURAL if self.plural or self.noun is None else self.noun.gender


ADJECTIVES_BY_NOUN = {
    noun: tuple(word for word in lexicon.ADJECTIVES if word.tags & noun.tags) for noun in lexicon.NOUNS
}


def inflect_noun_phrase(
    noun: Noun, determiner: Determiner, case: int, plural: bool = False, adjective: Adjective | None = None
) -> Phrase:
    """Return the noun phrase of some parts in a case, with everything agreeing.

    Args:
        noun: the noun.
        determiner: before it.
        case: of the German phrase.
        plural: whether the phrase is plural.
        adjective: before the noun, if there is one.
    """
    row = german.PLURAL if plural else noun.gender
    words = noun.english_plural if plural else noun.lexeme
    german_words = noun.german[plural][case]
    uses: tuple[str, ...] = (noun.lexeme,)
    if adjective is not None:
        words = f"{adjective.lexeme} {words}"
        german_words = f"{adjective.stem}{determiner.endings[row][case]} {german_words}"
        uses = (noun.lexeme, adjective.lexeme)
    english_determiner = determiner.english[plural]
    if english_determiner == "a":
        english_determiner = english.indefinite_article(words)
    return Phrase(
        f"{english_determiner} {words}" if english_determiner else words,
        f"{determiner.german[row][case]} {german_words}".lstrip(),
        uses,
        PLURAL_PERSON if plural else THIRD,
        determiner.definite,
        determiner.negative,
        determiner.quantified,
        noun,
        plural,
    )


def noun_phrase(
    draw: SeededRandom,
    noun: Noun,
    case: int,
    determiner_choices: DeterminerChoices,
    adjective_probability: float = 0.25,
) -> Phrase:
    """Draw a phrase about a noun with a determiner, and with an adjective that suits it or none.

    Args:
        draw: the random draws.
        noun: the noun.
        case: of the German phrase.
        determiner_choices: pairs of a determiner and whether the noun is plural, each as often as it is to come up.
        adjective_probability: the probability of an adjective.
    """
    determiner, plural = draw.choice(determiner_choices)
    is_indefinite_plural = plural and (determiner.owner or not determiner.definite)
    if (determiner.owner and "other" in noun.tags) or (is_indefinite_plural and "one" in noun.tags):
        determiner = THE
    suiting = ADJECTIVES_BY_NOUN[noun]
    adjective = draw.choice(suiting) if suiting and draw.chance(adjective_probability) else None
    return inflect_noun_phrase(noun, determiner, case, plural, adjective)


def genitive_phrase(draw: SeededRandom, noun: Noun, case: int) -> Phrase:
    """Draw a possessed noun: "the teacher's old dog", "der alte Hund des Lehrers"; or "Anna's dog", "Annas Hund".

    Args:
        draw: the random draws.
        noun: the noun.
        case: of the German phrase.
    """
    plural = "one" not in noun.tags and draw.chance(0.25)
    if draw.chance(0.4):
        return inflect_noun_phrase(noun, draw.choice(NAME_GENITIVE_DETERMINERS), case, plural)
    owner = draw.choice(OWNER_NOUNS)
    possessor = inflect_noun_phrase(
        owner,
        THE if "other" in owner.tags or draw.chance(0.6) else draw.choice(POSSESSIVE_PRONOUN_DETERMINERS),
        GENITIVE,
    )
    adjective = draw.choice(ADJECTIVES_BY_NOUN[noun]) if draw.chance(0.2) else None
    owned = inflect_noun_phrase(noun, THE, case, plural, adjective)
    return owned._replace(
        english=f"{possessor.english}'s {owned.english.removeprefix('the ')}",
        german=f"{owned.german} {possessor.german}",
        uses=owned.uses + possessor.uses,
    )


OWNER_NOUNS = lexicon.nouns_with_tags("person")
OWNABLE_NOUNS = frozenset(lexicon.nouns_with_tags("relation pet thing vehicle"))


class Pronoun(NamedTuple):
    subject: str
    object: str
    german: tuple[str, str, str]  # by case
    person: int
    uses: tuple[str, ...]  # I and we share one: "we see me" is not said


PRONOUNS = (
    Pronoun("I", "me", ("ich", "mich", "mir"), FIRST, ("I",)),
    Pronoun("you", "you", ("Sie", "Sie", "Ihnen"), PLURAL_PERSON, ("you",)),
    Pronoun("he", "him", ("er", "ihn", "ihm"), THIRD, ("he",)),
    Pronoun("she", "her", ("sie", "sie", "ihr"), THIRD, ("she",)),
    Pronoun("we", "us", ("wir", "uns", "uns"), PLURAL_PERSON, ("I",)),
    Pronoun("they", "them", ("sie", "sie", "ihnen"), PLURAL_PERSON, ("they",)),
)
_WEIGHTED_PRONOUNS = PRONOUNS + PRONOUNS[:1]  # the forms of ich have no other use, and so would be rare
IT = Phrase("it", "es")
WHO = Phrase("who", "wer")


def pronoun_or_name(draw: SeededRandom, case: int) -> Phrase:
    """A pronoun or a name."""
    if draw.chance(0.35):
        name = draw.choice(expressions.NAMES)
        return Phrase(name, name, (name,))
    pronoun = draw.choice(_WEIGHTED_PRONOUNS)
    word = pronoun.subject if case == NOMINATIVE else pronoun.object
    return Phrase(word, pronoun.german[case], pronoun.uses, pronoun.person)


def _coordinated_phrase(draw: SeededRandom, nouns: Sequence[Noun]) -> Phrase:
    """Two people as one subject: "Anna and the teacher"."""
    first = inflect_noun_phrase(draw.choice(nouns), THE, NOMINATIVE)
    name = draw.choice(expressions.NAMES)
    second = noun_phrase(draw, draw.choice(OWNER_NOUNS), NOMINATIVE, DEFINITE_DETERMINERS, adjective_probability=0.1)
    if second.noun is first.noun or draw.chance(0.5):
        first = Phrase(name, name, (name,))
    return Phrase(
        f"{first.english} and {second.english}",
        f"{first.german} und {second.german}",
        first.uses + second.uses,
        PLURAL_PERSON,
    )


def subject_phrase(
    draw: SeededRandom, nouns: Sequence[Noun], determiner_choices: DeterminerChoices = SUBJECT_DETERMINERS
) -> Phrase:
    """Draw a subject: one of `nouns` or, for people, also a pronoun, a name or a couple.

    Args:
        draw: the random draws.
        nouns: the nouns that may be the subject.
        determiner_choices: pairs of a determiner and whether the noun is plural, each as often as it is to come up.
    """
    noun = draw.choice(nouns)
    if "person" in noun.tags:
        if draw.chance(0.3):
            return pronoun_or_name(draw, NOMINATIVE)
        if draw.chance(0.05):
            return _coordinated_phrase(draw, OWNER_NOUNS)
    if noun in OWNABLE_NOUNS and draw.chance(0.06):
        return genitive_phrase(draw, noun, NOMINATIVE)
    return noun_phrase(draw, noun, NOMINATIVE, determiner_choices)


def object_phrase(
    draw: SeededRandom, nouns: Sequence[Noun], case: int, determiner_choices: DeterminerChoices, subject: Phrase
) -> Phrase:
    """Draw an object: one of `nouns`, other than the nouns that the subject has already named.

    Args:
        draw: the random draws.
        nouns: the nouns that may be the object.
        case: of the German phrase.
        determiner_choices: pairs of a determiner and whether the noun is plural, each as often as it is to come up.
        subject: of the clause.
    """
    while True:
        noun = draw.choice(nouns)
        if "person" in noun.tags and draw.chance(0.25):
            phrase = pronoun_or_name(draw, case)
        elif case == ACCUSATIVE and noun in OWNABLE_NOUNS and draw.chance(0.06):
            phrase = genitive_phrase(draw, noun, case)
        else:
            phrase = noun_phrase(draw, noun, case, determiner_choices)
        if not any(lexeme in subject.uses for lexeme in phrase.uses):
            return phrase
