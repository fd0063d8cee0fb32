"""German for the built-in corpus `languages`: the finite verb is second; first in questions, last in subordinates."""

from typing import Literal

from tfm.data.synthetic.language import phrases
from tfm.data.synthetic.language.expressions import CAN, WANT, WILL
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE, FIRST, NOMINATIVE, PLURAL_PERSON, THIRD, contract
from tfm.data.synthetic.language.lexicon import BE
from tfm.data.synthetic.meaning.determiners import DETERMINERS
from tfm.data.synthetic.meaning.meaning import Clause, Meaning, Thing

Place = Literal["first", "second", "last"]  # of the finite verb
_TIMES = {"today": "heute", "now": "jetzt", "every day": "jeden Tag", "in the evening": "am Abend"}
_MODALS = {"will": WILL, "want": WANT, "can": CAN}


def sentence(meaning: Meaning) -> str:
    """The meaning in German."""
    if meaning.form == "question":
        text = clause(meaning.clause, "first") + "?"
    elif meaning.form == "fronted":
        text = f"{_TIMES[str(meaning.clause.time)]} {clause(meaning.clause, 'first', timed=False)}."
    else:
        text = clause(meaning.clause, "second")
        if meaning.other is not None:
            text += f", {'dass' if meaning.form == 'that' else 'weil'} {clause(meaning.other, 'last')}"
        text += "."
    return text[0].upper() + text[1:]


def clause(said: Clause, place: Place, timed: bool = True) -> str:
    """Return the German clause of a meaning.

    Examples: "Die Königin sieht heute einen Hund im Garten"; "weil die Königin heute einen Hund im Garten sieht".

    Args:
        said: the meaning.
        place: of the finite verb.
        timed: whether the time is said.
    """
    finite, rest = _verbs(said, last=place == "last")
    subject, time = _noun_phrase(said.subject, NOMINATIVE), _TIMES[said.time] if said.time and timed else ""
    where = "" if said.place is None else contract("in", _noun_phrase(said.place, DATIVE))
    quality = "" if said.quality is None else said.quality.german
    middle = [time, _noun_phrase(said.object, ACCUSATIVE), "nicht" if said.negated else "", where, quality, rest]
    words = {
        "first": [finite, subject, *middle],
        "second": [subject, finite, *middle],
        "last": [subject, *middle, finite],
    }
    return " ".join(filter(None, words[place]))


def _verbs(said: Clause, last: bool) -> tuple[str, str]:
    """The finite verb, and the end of a main clause: prefix or infinitive."""
    person = _person(said)
    verb = BE if said.verb is None else said.verb
    if said.tense in _MODALS:
        return _MODALS[said.tense].german[person], verb.prefix + verb.infinitive
    finite = (verb.past if said.tense == "past" else verb.present)[person]
    return (verb.prefix + finite, "") if last else (finite, verb.prefix)


def _person(said: Clause) -> int:
    if isinstance(said.subject, str):
        return {"I": FIRST, "we": PLURAL_PERSON}.get(said.subject, THIRD)
    return PLURAL_PERSON if said.subject.plural else THIRD


def _noun_phrase(thing: Thing | str | None, case: int) -> str:
    if thing is None or isinstance(thing, str):
        return {"I": "ich", "we": "wir"}.get(thing or "", thing or "")
    determiner = DETERMINERS[thing.determiner]
    return phrases.inflect(thing.noun, determiner, case, thing.plural, thing.adjective).german
