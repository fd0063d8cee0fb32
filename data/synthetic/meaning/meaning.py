"""The meaning of a sentence of the built-in corpus `languages`, before any language says it.

Drawn so that each of its languages says it in one way, and no sentence of one language has two meanings: therefore an
object is plural only with a word that shows it, and negated clauses have no indefinite object.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfm.data.synthetic.language import lexicon
from tfm.data.synthetic.language.lexicon import Adjective, Noun, Verb
from tfm.data.synthetic.language.phrases import SUITING_ADJECTIVES, Draw
from tfm.data.synthetic.meaning.hindi import ADJECTIVES, NOUNS, VERBS

Determiner = Literal["the", "a", "this", "my", "our", "two", "three", "many"]
Tense = Literal["present", "past", "will", "want", "can"]
Form = Literal["statement", "fronted", "question", "that", "because"]
Name = Literal["Anna", "Maria", "Peter", "Paul"]
Pronoun = Literal["I", "we"]

NAMES: tuple[Name, ...] = ("Anna", "Maria", "Peter", "Paul")
TIMES = ("today", "now", "every day", "in the evening")
TENSES: tuple[Tense, ...] = ("present", "present", "past", "past", "will", "want", "can")
OWNERS: tuple[Determiner, ...] = ("my", "our")

_NOUNS = tuple(noun for noun in lexicon.NOUNS if noun.lexeme in NOUNS)
_VERBS = tuple(verb for verb in lexicon.VERBS if verb.lexeme in VERBS and verb.frame in ("none", "object"))
_SAYING_VERBS = tuple(verb for verb in lexicon.TELLING_VERBS if verb.lexeme in ("say", "believe"))
_PLACES = tuple(noun for noun in _NOUNS if "inside" in noun.tags)
_QUALITIES = {noun: tuple(word for word in SUITING_ADJECTIVES[noun] if word.lexeme in ADJECTIVES) for noun in _NOUNS}
_DESCRIBABLE_NOUNS = tuple(noun for noun in _NOUNS if noun.tags & lexicon.BE.subjects[0].tags and _QUALITIES[noun])


@dataclass(frozen=True, slots=True)
class Thing:
    """A noun phrase about a noun.

    Args:
        noun: the noun.
        determiner: before it.
        plural: whether the phrase is plural.
        adjective: before the noun, if there is one.
    """

    noun: Noun
    determiner: Determiner
    plural: bool
    adjective: Adjective | None = None

    @property
    def animate(self) -> bool:
        """Whether the thing is a person or an animal."""
        return bool(self.noun.tags & {"person", "animal"})


@dataclass(frozen=True, slots=True)
class Clause:
    """An event or, without a verb, a quality of the subject.

    Args:
        subject: of the clause.
        tense: of the clause.
        verb: of an event.
        quality: of the subject.
        object: of the verb, if it has one.
        negated: whether the clause is negated.
        time: of the event, if said.
        place: of the event, if said.
    """

    subject: Thing | Name | Pronoun
    tense: Tense
    verb: Verb | None = None
    quality: Adjective | None = None
    object: Thing | Name | None = None
    negated: bool = False
    time: str | None = None
    place: Thing | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sentence: one clause, or one that another one says or is the reason of.

    Args:
        form: of the sentence.
        clause: the first clause.
        other: the second clause, if there is one.
    """

    form: Form
    clause: Clause
    other: Clause | None = None

    @property
    def pairs(self) -> frozenset[tuple[str, str]]:
        """The pairs of a verb and its object, by their lexemes."""
        clauses = [each for each in (self.clause, self.other) if each is not None]
        return frozenset(
            (each.verb.lexeme, each.object.noun.lexeme)
            for each in clauses
            if each.verb is not None and isinstance(each.object, Thing)
        )


class _DeterminerMenu(NamedTuple):
    """Determiners, each with whether the noun is plural."""

    entries: tuple[tuple[Determiner, bool], ...]


_DEFINITE: tuple[tuple[Determiner, bool], ...] = (
    *((("the", False),) * 6),
    *(("this", False), ("this", True), ("my", False), ("my", True), ("our", False)),
)
_SUBJECT_DETERMINERS = _DeterminerMenu(
    (*_DEFINITE, *((("the", True),) * 3), ("a", False), ("two", True), ("three", True), ("many", True))
)
_OBJECT_DETERMINERS = _DeterminerMenu(
    (*_DEFINITE, *((("a", False),) * 4), ("two", True), ("three", True), ("many", True))
)
_NEGATED_DETERMINERS = _DeterminerMenu(_DEFINITE)
_PLACE_DETERMINERS = _DeterminerMenu(tuple(each for each in _DEFINITE if not each[1]))


def draw_meaning(draw: Draw) -> Meaning:
    """One meaning, by random choices alone."""
    form: Form = draw.one(("statement", "statement", "statement", "fronted", "question", "question", "that", "because"))
    if form == "that":
        saying = Clause(_subject(draw, _person_nouns()), draw.one(("present", "past")), draw.one(_SAYING_VERBS))
        return Meaning(form, saying, _clause(draw))
    if form == "because":
        return Meaning(form, _clause(draw), _clause(draw))
    clause = _clause(draw)
    while form == "fronted" and clause.time is None:
        clause = _clause(draw)
    return Meaning(form, clause)


def _clause(draw: Draw) -> Clause:
    if draw.chance(0.15):
        noun = draw.one(_DESCRIBABLE_NOUNS)
        tense: Tense = draw.one(("present", "past"))
        determiner, plural = draw.one(_SUBJECT_DETERMINERS.entries)
        return Clause(_thing(noun, determiner, plural), tense, quality=draw.one(_QUALITIES[noun]))
    verb = draw.one(_VERBS)
    subject = _subject(draw, tuple(noun for noun in verb.subjects if noun in _NOUNS))
    negated = draw.chance(0.2)
    object_ = _object(draw, verb, subject, negated) if verb.frame == "object" else None
    time = draw.one(TIMES) if draw.chance(0.3) else None
    place = _phrase(draw, draw.one(_PLACES), _PLACE_DETERMINERS, 0.1) if not negated and draw.chance(0.25) else None
    return Clause(subject, draw.one(TENSES), verb, None, object_, negated, time, place)


def _person_nouns() -> tuple[Noun, ...]:
    return tuple(noun for noun in _NOUNS if "person" in noun.tags)


def _subject(draw: Draw, nouns: tuple[Noun, ...]) -> Thing | Name | Pronoun:
    noun = draw.one(nouns)
    if "person" in noun.tags and draw.chance(0.3):
        pronouns: tuple[Pronoun, ...] = ("I", "we")
        return draw.one(NAMES) if draw.chance(0.6) else draw.one(pronouns)
    return _phrase(draw, noun, _SUBJECT_DETERMINERS, 0.25)


def _object(draw: Draw, verb: Verb, subject: Thing | Name | Pronoun, negated: bool) -> Thing | Name:
    """Draw the object of the verb, other than the subject."""
    nouns = tuple(noun for noun in verb.objects if noun in _NOUNS)
    while True:
        noun = draw.one(nouns)
        if "person" in noun.tags and draw.chance(0.25):
            name = draw.one(NAMES)
            if name != subject:
                return name
        elif not isinstance(subject, Thing) or noun is not subject.noun:
            return _phrase(draw, noun, _NEGATED_DETERMINERS if negated else _OBJECT_DETERMINERS, 0.25)


def _phrase(draw: Draw, noun: Noun, menu: _DeterminerMenu, adjectives: float) -> Thing:
    determiner, plural = draw.one(menu.entries)
    words = _QUALITIES[noun]
    adjective = draw.one(words) if words and draw.chance(adjectives) else None
    return _thing(noun, determiner, plural, adjective)


def _thing(noun: Noun, determiner: Determiner, plural: bool, adjective: Adjective | None = None) -> Thing:
    if determiner in OWNERS and "other" in noun.tags:
        determiner = "this"  # nobody owns it
    return Thing(noun, determiner, plural, adjective)
