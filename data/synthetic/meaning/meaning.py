"""The meaning of a sentence of the built-in corpus `languages`, before any language says it.

Drawn so that each of its languages says it in one way, and no sentence of one language has two meanings: therefore an
object is plural only with a word that shows it, and negated clauses have no indefinite object.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tfm.data.synthetic.language import lexicon
from tfm.data.synthetic.language.lexicon import Adjective, Noun, Verb
from tfm.data.synthetic.language.phrases import ADJECTIVES_BY_NOUN, SeededRandom
from tfm.data.synthetic.meaning.hindi_lexicon import ADJECTIVES, NOUNS, VERBS

Determiner = Literal["the", "a", "this", "my", "our", "two", "three", "many"]
Tense = Literal["present", "past", "will", "want", "can"]
SentenceForm = Literal["statement", "fronted", "question", "that", "because"]
Name = Literal["Anna", "Maria", "Peter", "Paul"]
Pronoun = Literal["I", "we"]

NAMES: tuple[Name, ...] = ("Anna", "Maria", "Peter", "Paul")
TIMES = ("today", "now", "every day", "in the evening")
TENSES: tuple[Tense, ...] = ("present", "present", "past", "past", "will", "want", "can")
POSSESSIVES: tuple[Determiner, ...] = ("my", "our")

_NOUNS = tuple(noun for noun in lexicon.NOUNS if noun.lexeme in NOUNS)
_VERBS = tuple(verb for verb in lexicon.VERBS if verb.lexeme in VERBS and verb.frame in ("none", "object"))
_SAYING_VERBS = tuple(verb for verb in lexicon.TELLING_VERBS if verb.lexeme in ("say", "believe"))
_PLACES = tuple(noun for noun in _NOUNS if "inside" in noun.tags)
_ADJECTIVES_BY_NOUN = {
    noun: tuple(word for word in ADJECTIVES_BY_NOUN[noun] if word.lexeme in ADJECTIVES) for noun in _NOUNS
}
_DESCRIBABLE_NOUNS = tuple(
    noun for noun in _NOUNS if noun.tags & lexicon.BE.subjects[0].tags and _ADJECTIVES_BY_NOUN[noun]
)


@dataclass(frozen=True, slots=True)
class NounPhraseMeaning:
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
    def is_animate(self) -> bool:
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

    subject: NounPhraseMeaning | Name | Pronoun
    tense: Tense
    verb: Verb | None = None
    quality: Adjective | None = None
    object: NounPhraseMeaning | Name | None = None
    negated: bool = False
    time: str | None = None
    place: NounPhraseMeaning | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sentence: one clause, or two, of which the second is reported by the first or is its reason.

    Args:
        form: of the sentence.
        clause: the first clause.
        other: the second clause, if there is one.
    """

    form: SentenceForm
    clause: Clause
    other: Clause | None = None

    @property
    def verb_object_pairs(self) -> frozenset[tuple[str, str]]:
        """The pairs of a verb and its object, by their lexemes."""
        clauses = [each for each in (self.clause, self.other) if each is not None]
        return frozenset(
            (each.verb.lexeme, each.object.noun.lexeme)
            for each in clauses
            if each.verb is not None and isinstance(each.object, NounPhraseMeaning)
        )


class _DeterminerChoices(NamedTuple):
    """Determiners, each with whether the noun is plural."""

    entries: tuple[tuple[Determiner, bool], ...]


_DEFINITE_DETERMINERS: tuple[tuple[Determiner, bool], ...] = (
    *((("the", False),) * 6),
    *(("this", False), ("this", True), ("my", False), ("my", True), ("our", False)),
)
_SUBJECT_DETERMINERS = _DeterminerChoices(
    (*_DEFINITE_DETERMINERS, *((("the", True),) * 3), ("a", False), ("two", True), ("three", True), ("many", True))
)
_OBJECT_DETERMINERS = _DeterminerChoices(
    (*_DEFINITE_DETERMINERS, *((("a", False),) * 4), ("two", True), ("three", True), ("many", True))
)
_NEGATED_DETERMINERS = _DeterminerChoices(_DEFINITE_DETERMINERS)
_PLACE_DETERMINERS = _DeterminerChoices(tuple(each for each in _DEFINITE_DETERMINERS if not each[1]))


def draw_meaning(draw: SeededRandom) -> Meaning:
    """Draw a meaning at random."""
    form: SentenceForm = draw.choice(
        ("statement", "statement", "statement", "fronted", "question", "question", "that", "because")
    )
    if form == "that":
        saying = Clause(
            _draw_subject(draw, tuple(noun for noun in _NOUNS if "person" in noun.tags)),
            draw.choice(("present", "past")),
            draw.choice(_SAYING_VERBS),
        )
        return Meaning(form, saying, _draw_clause(draw))
    if form == "because":
        return Meaning(form, _draw_clause(draw), _draw_clause(draw))
    clause = _draw_clause(draw)
    while form == "fronted" and clause.time is None:
        clause = _draw_clause(draw)
    return Meaning(form, clause)


def _draw_clause(draw: SeededRandom) -> Clause:
    if draw.chance(0.15):
        noun = draw.choice(_DESCRIBABLE_NOUNS)
        tense: Tense = draw.choice(("present", "past"))
        determiner, plural = draw.choice(_SUBJECT_DETERMINERS.entries)
        return Clause(
            _make_noun_phrase(noun, determiner, plural), tense, quality=draw.choice(_ADJECTIVES_BY_NOUN[noun])
        )
    verb = draw.choice(_VERBS)
    subject = _draw_subject(draw, tuple(noun for noun in verb.subjects if noun in _NOUNS))
    negated = draw.chance(0.2)
    object_ = _draw_object(draw, verb, subject, negated) if verb.frame == "object" else None
    time = draw.choice(TIMES) if draw.chance(0.3) else None
    place = (
        _draw_noun_phrase(draw, draw.choice(_PLACES), _PLACE_DETERMINERS, 0.1)
        if not negated and draw.chance(0.25)
        else None
    )
    return Clause(subject, draw.choice(TENSES), verb, None, object_, negated, time, place)


def _draw_subject(draw: SeededRandom, nouns: tuple[Noun, ...]) -> NounPhraseMeaning | Name | Pronoun:
    noun = draw.choice(nouns)
    if "person" in noun.tags and draw.chance(0.3):
        pronouns: tuple[Pronoun, ...] = ("I", "we")
        return draw.choice(NAMES) if draw.chance(0.6) else draw.choice(pronouns)
    return _draw_noun_phrase(draw, noun, _SUBJECT_DETERMINERS, 0.25)


def _draw_object(
    draw: SeededRandom, verb: Verb, subject: NounPhraseMeaning | Name | Pronoun, negated: bool
) -> NounPhraseMeaning | Name:
    """Draw the object of the verb, other than the subject."""
    nouns = tuple(noun for noun in verb.objects if noun in _NOUNS)
    while True:
        noun = draw.choice(nouns)
        if "person" in noun.tags and draw.chance(0.25):
            name = draw.choice(NAMES)
            if name != subject:
                return name
        elif not isinstance(subject, NounPhraseMeaning) or noun is not subject.noun:
            return _draw_noun_phrase(draw, noun, _NEGATED_DETERMINERS if negated else _OBJECT_DETERMINERS, 0.25)


def _draw_noun_phrase(
    draw: SeededRandom, noun: Noun, determiner_choices: _DeterminerChoices, adjective_probability: float
) -> NounPhraseMeaning:
    determiner, plural = draw.choice(determiner_choices.entries)
    words = _ADJECTIVES_BY_NOUN[noun]
    adjective = draw.choice(words) if words and draw.chance(adjective_probability) else None
    return _make_noun_phrase(noun, determiner, plural, adjective)


def _make_noun_phrase(
    noun: Noun, determiner: Determiner, plural: bool, adjective: Adjective | None = None
) -> NounPhraseMeaning:
    if determiner in POSSESSIVES and "other" in noun.tags:
        determiner = "this"  # nobody owns it
    return NounPhraseMeaning(noun, determiner, plural, adjective)
