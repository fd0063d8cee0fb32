"""Complements of a verb, by its frame, in both languages: objects, places, predicates."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tfm.data.synthetic.language import determiners, lexicon, phrases
from tfm.data.synthetic.language.expressions import BilingualWords
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE, contract
from tfm.data.synthetic.language.lexicon import Noun, Verb
from tfm.data.synthetic.language.phrases import Phrase, SeededRandom, noun_phrase, object_phrase


class Complement(NamedTuple):
    english: str = ""
    early: str = ""  # German, before the adverbs
    late: str = ""  # German, after them
    uses: tuple[str, ...] = ()
    negative: bool = False  # holds kein
    quantified: bool = False  # every, many ...: "never" would be unclear


def _draw_no_complement(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    return Complement()


def _draw_object(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool, case: int = ACCUSATIVE) -> Complement:
    phrase = object_phrase(
        draw,
        verb.objects,
        case,
        determiners.NEGATED_OBJECT_DETERMINERS if negated else determiners.OBJECT_DETERMINERS,
        subject,
    )
    early, late = (phrase.german, "") if phrase.definite else ("", phrase.german)
    return Complement(phrase.english, early, late, phrase.uses, phrase.negative, phrase.quantified)


def _draw_recipient_and_theme(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    """Draw a person and a thing: "gives the child a ball"."""
    recipient = object_phrase(draw, phrases.OWNER_NOUNS, DATIVE, determiners.DEFINITE_DETERMINERS, subject)
    theme = noun_phrase(
        draw,
        draw.choice(verb.objects),
        ACCUSATIVE,
        determiners.NEGATED_THEME_DETERMINERS if negated else determiners.THEME_DETERMINERS,
    )
    early, late = (f"{recipient.german} {theme.german}", "") if theme.definite else (recipient.german, theme.german)
    return Complement(
        f"{recipient.english} {theme.english}",
        early,
        late,
        recipient.uses + theme.uses,
        theme.negative,
        theme.quantified,
    )


def _draw_prepositional_object(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    assert verb.preposition is not None
    english, german, case = verb.preposition
    phrase = object_phrase(draw, verb.objects, case, determiners.DEFINITE_DETERMINERS, subject)
    return Complement(f"{english} {phrase.english}", late=contract(german, phrase.german), uses=phrase.uses)


def _draw_destination(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    """Draw a destination: into (in, accusative) if one can be inside, else to (zu, dative)."""
    noun = draw.choice(verb.objects)
    can_enter = "inside" in noun.tags
    if "building" in noun.tags:
        can_enter = "outside" not in verb.traits and draw.chance(0.5)
    phrase = noun_phrase(draw, noun, ACCUSATIVE if can_enter else DATIVE, determiners.PLACE_DETERMINERS)
    english, german = ("into", "in") if can_enter else ("to", "zu")
    return Complement(f"{english} {phrase.english}", late=contract(german, phrase.german), uses=phrase.uses)


def _draw_origin(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    phrase = noun_phrase(draw, draw.choice(verb.objects), DATIVE, determiners.PLACE_DETERMINERS)
    return Complement(f"from {phrase.english}", late=f"aus {phrase.german}", uses=phrase.uses)


_ON, _UNDER, _BESIDE = ("on", "auf"), ("under", "unter"), ("next to", "neben")
_BEHIND, _BEFORE = ("behind", "hinter"), ("in front of", "vor")
_SURFACES = lexicon.nouns_with_tags("furniture")
_BUILDINGS = lexicon.nouns_with_tags("building")
_ROOMS = lexicon.nouns_with_tags("inside")


def _draw_locative_complement(draw: SeededRandom, thing: Noun | None, case: int) -> Complement:
    """Draw a place in which a thing stands or lies (dative), or on which it is put (accusative)."""
    if thing is not None and "vehicle" in thing.tags:
        noun, (english, german) = draw.choice(_BUILDINGS), draw.choice((_BEHIND, _BEFORE, _BESIDE))
    elif thing is not None and "furniture" in thing.tags:
        noun, (english, german) = draw.choice(_ROOMS[:6]), ("in", "in")
    else:
        noun, (english, german) = draw.choice(_SURFACES), draw.choice((_ON, _ON, _UNDER, _BESIDE))
    phrase = noun_phrase(draw, noun, case, determiners.PLACE_DETERMINERS)
    return Complement(f"{english} {phrase.english}", late=contract(german, phrase.german), uses=phrase.uses)


def _draw_standing_place(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    return _draw_locative_complement(draw, subject.noun, DATIVE)


def _draw_object_and_place(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    thing = _draw_object(draw, verb, subject, negated)
    spot = _draw_locative_complement(draw, None, ACCUSATIVE)
    return Complement(
        f"{thing.english} {spot.english}",
        thing.early,
        f"{thing.late} {spot.late}".lstrip(),
        thing.uses + spot.uses,
        thing.negative,
        thing.quantified,
    )


_QUALITY_BY_ADJECTIVE = {word.lexeme: word.quality for word in lexicon.ADJECTIVES}
_PERSON_ADJECTIVES = tuple(word for word in lexicon.ADJECTIVES if "person" in word.tags)


def _draw_predicate_adjective(draw: SeededRandom, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    suiting = _PERSON_ADJECTIVES if subject.noun is None else phrases.ADJECTIVES_BY_NOUN[subject.noun]
    said = [_QUALITY_BY_ADJECTIVE[lexeme] for lexeme in subject.uses if lexeme in _QUALITY_BY_ADJECTIVE]
    while (adjective := draw.choice(suiting)).quality in said:
        pass
    return Complement(adjective.lexeme, late=adjective.german, uses=(adjective.lexeme,))


COMPLEMENTS: dict[str, Callable[[SeededRandom, Verb, Phrase, bool], Complement]] = {
    "none": _draw_no_complement,
    "object": _draw_object,
    "dative": partial(_draw_object, case=DATIVE),
    "give": _draw_recipient_and_theme,
    "preposition": _draw_prepositional_object,
    "go": _draw_destination,
    "come": _draw_origin,
    "stand": _draw_standing_place,
    "put": _draw_object_and_place,
    "predicate": _draw_predicate_adjective,
    "that": _draw_no_complement,
    "whether": _draw_no_complement,
    "to": _draw_no_complement,
}

_LOCATIONS = lexicon.nouns_with_tags("inside at-auf on-auf at-an")


def draw_location(draw: SeededRandom) -> tuple[BilingualWords, tuple[str, ...]]:
    """A place where people do things, and its lexemes: "in the garden", "im Garten"."""
    noun = draw.choice(_LOCATIONS)
    if "building" in noun.tags and draw.chance(0.4):
        english, german = draw.choice((_BEHIND, _BEFORE, _BESIDE))
    elif "inside" in noun.tags:
        english, german = "in", "in"
    else:
        english = "on" if "on-auf" in noun.tags else "at"
        german = "an" if "at-an" in noun.tags else "auf"
    phrase = noun_phrase(draw, noun, DATIVE, determiners.PLACE_DETERMINERS)
    return BilingualWords(f"{english} {phrase.english}", contract(german, phrase.german)), phrase.uses
