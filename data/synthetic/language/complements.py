"""Complements of a verb, by its frame, in both languages: objects, places, predicates."""

from collections.abc import Callable
from typing import NamedTuple

from tfm.data.synthetic.language import lexicon, phrases
from tfm.data.synthetic.language.expressions import Words
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE, contract
from tfm.data.synthetic.language.lexicon import Noun, Verb
from tfm.data.synthetic.language.phrases import Draw, Phrase, noun_phrase, object_phrase


class Complement(NamedTuple):
    english: str = ""
    early: str = ""  # German, before the adverbs
    late: str = ""  # German, after them
    uses: tuple[str, ...] = ()
    negative: bool = False  # holds kein
    quantified: bool = False  # every, many ...: "never" would be unclear


def _nothing(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    return Complement()


def _object(draw: Draw, verb: Verb, subject: Phrase, negated: bool, case: int = ACCUSATIVE) -> Complement:
    phrase = object_phrase(
        draw, verb.objects, case, phrases.NEGATED_OBJECT_DETERMINERS if negated else phrases.OBJECT, subject
    )
    early, late = (phrase.german, "") if phrase.definite else ("", phrase.german)
    return Complement(phrase.english, early, late, phrase.uses, phrase.negative, phrase.quantified)


def _dative(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    return _object(draw, verb, subject, negated, DATIVE)


def _give(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    """Draw a person and a thing: "gives the child a ball"."""
    recipient = object_phrase(draw, phrases.OWNER_NOUNS, DATIVE, phrases.DEFINITE, subject)
    theme = noun_phrase(
        draw,
        draw.one(verb.objects),
        ACCUSATIVE,
        phrases.NEGATED_THEME_DETERMINERS if negated else phrases.THEME_DETERMINERS,
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


def _with_preposition(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    assert verb.preposition is not None
    english, german, case = verb.preposition
    phrase = object_phrase(draw, verb.objects, case, phrases.DEFINITE, subject)
    return Complement(f"{english} {phrase.english}", late=contract(german, phrase.german), uses=phrase.uses)


def _go(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    """Draw a destination: into (in, accusative) if one can be inside, else to (zu, dative)."""
    noun = draw.one(verb.objects)
    into = "inside" in noun.tags
    if "building" in noun.tags:
        into = "outside" not in verb.traits and draw.chance(0.5)
    phrase = noun_phrase(draw, noun, ACCUSATIVE if into else DATIVE, phrases.PLACE_DETERMINERS)
    english, german = ("into", "in") if into else ("to", "zu")
    return Complement(f"{english} {phrase.english}", late=contract(german, phrase.german), uses=phrase.uses)


def _come(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    phrase = noun_phrase(draw, draw.one(verb.objects), DATIVE, phrases.PLACE_DETERMINERS)
    return Complement(f"from {phrase.english}", late=f"aus {phrase.german}", uses=phrase.uses)


_ON, _UNDER, _BESIDE = ("on", "auf"), ("under", "unter"), ("next to", "neben")
_BEHIND, _BEFORE = ("behind", "hinter"), ("in front of", "vor")
_SURFACES = lexicon.tagged("furniture")
_BUILDINGS = lexicon.tagged("building")
_ROOMS = lexicon.tagged("inside")


def _place_complement(draw: Draw, thing: Noun | None, case: int) -> Complement:
    """Draw a place in which a thing stands or lies (dative), or on which it is put (accusative)."""
    if thing is not None and "vehicle" in thing.tags:
        noun, (english, german) = draw.one(_BUILDINGS), draw.one((_BEHIND, _BEFORE, _BESIDE))
    elif thing is not None and "furniture" in thing.tags:
        noun, (english, german) = draw.one(_ROOMS[:6]), ("in", "in")
    else:
        noun, (english, german) = draw.one(_SURFACES), draw.one((_ON, _ON, _UNDER, _BESIDE))
    phrase = noun_phrase(draw, noun, case, phrases.PLACE_DETERMINERS)
    return Complement(f"{english} {phrase.english}", late=contract(german, phrase.german), uses=phrase.uses)


def _stand(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    return _place_complement(draw, subject.noun, DATIVE)


def _put(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    thing = _object(draw, verb, subject, negated)
    spot = _place_complement(draw, None, ACCUSATIVE)
    return Complement(
        f"{thing.english} {spot.english}",
        thing.early,
        f"{thing.late} {spot.late}".lstrip(),
        thing.uses + spot.uses,
        thing.negative,
        thing.quantified,
    )


_QUALITIES = {word.lexeme: word.quality for word in lexicon.ADJECTIVES}
_PERSON_ADJECTIVES = tuple(word for word in lexicon.ADJECTIVES if "person" in word.tags)


def _predicate(draw: Draw, verb: Verb, subject: Phrase, negated: bool) -> Complement:
    suiting = _PERSON_ADJECTIVES if subject.noun is None else phrases.SUITING_ADJECTIVES[subject.noun]
    said = [_QUALITIES[lexeme] for lexeme in subject.uses if lexeme in _QUALITIES]
    while (adjective := draw.one(suiting)).quality in said:
        pass
    return Complement(adjective.lexeme, late=adjective.german, uses=(adjective.lexeme,))


COMPLEMENTS: dict[str, Callable[[Draw, Verb, Phrase, bool], Complement]] = {
    "none": _nothing,
    "object": _object,
    "dative": _dative,
    "give": _give,
    "preposition": _with_preposition,
    "go": _go,
    "come": _come,
    "stand": _stand,
    "put": _put,
    "predicate": _predicate,
    "that": _nothing,
    "whether": _nothing,
    "to": _nothing,
}

_LOCATIONS = lexicon.tagged("inside at-auf on-auf at-an")


def location(draw: Draw) -> tuple[Words, tuple[str, ...]]:
    """A place where people do things, and its lexemes: "in the garden", "im Garten"."""
    noun = draw.one(_LOCATIONS)
    if "building" in noun.tags and draw.chance(0.4):
        english, german = draw.one((_BEHIND, _BEFORE, _BESIDE))
    elif "inside" in noun.tags:
        english, german = "in", "in"
    else:
        english = "on" if "on-auf" in noun.tags else "at"
        german = "an" if "at-an" in noun.tags else "auf"
    phrase = noun_phrase(draw, noun, DATIVE, phrases.PLACE_DETERMINERS)
    return Words(f"{english} {phrase.english}", contract(german, phrase.german)), phrase.uses
