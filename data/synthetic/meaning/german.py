"""German for the built-in corpus `languages`: the finite verb is second; first in questions, last in subordinates."""

from typing import Literal

from tfm.data.synthetic.language import phrases
from tfm.data.synthetic.language.expressions import CAN, WANT, WILL
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE, FIRST, NOMINATIVE, PLURAL_PERSON, THIRD, contract
from tfm.data.synthetic.language.lexicon import BE
from tfm.data.synthetic.meaning.determiners import DETERMINERS
from tfm.data.synthetic.meaning.meaning import Clause, Meaning, NounPhraseMeaning

VerbPosition = Literal["first", "second", "last"]  # of the finite verb
_TIMES = {"today": "heute", "now": "jetzt", "every day": "jeden Tag", "in the evening": "am Abend"}
_MODALS = {"will": WILL, "want": WANT, "can": CAN}


def realize_sentence(meaning: Meaning) -> str:
    """The meaning in German."""
    if meaning.form == "question":
        text = realize_clause(meaning.clause, "first") + "?"
    elif meaning.form == "fronted":
        text = f"{_TIMES[str(meaning.clause.time)]} {realize_clause(meaning.clause, 'first', with_time=False)}."
    else:
        text = realize_clause(meaning.clause, "second")
        if meaning.other is not None:
            text += f", {'dass' if meaning.form == 'that' else 'weil'} {realize_clause(meaning.other, 'last')}"
        text += "."
    return text[0].upper() + text[1:]


def realize_clause(clause_meaning: Clause, verb_position: VerbPosition, with_time: bool = True) -> str:
    """Return the German clause of a meaning.

    Examples: "Die Königin sieht heute einen Hund im Garten"; "weil die Königin heute einen Hund im Garten sieht".

    Args:
        clause_meaning: the meaning.
        verb_position: of the finite verb.
        with_time: whether the time is said.
    """
    finite, rest = _finite_verb_and_rest(clause_meaning, is_verb_last=verb_position == "last")
    subject, time = (
        _noun_phrase(clause_meaning.subject, NOMINATIVE),
        _TIMES[clause_meaning.time] if clause_meaning.time and with_time else "",
    )
    place = "" if clause_meaning.place is None else contract("in", _noun_phrase(clause_meaning.place, DATIVE))
    quality = "" if clause_meaning.quality is None else clause_meaning.quality.german
    middle = [
        time,
        _noun_phrase(clause_meaning.object, ACCUSATIVE),
        "nicht" if clause_meaning.negated else "",
        place,
        quality,
        rest,
    ]
    words = {
        "first": [finite, subject, *middle],
        "second": [subject, finite, *middle],
        "last": [subject, *middle, finite],
    }
    return " ".join(filter(None, words[verb_position]))


def _finite_verb_and_rest(clause_meaning: Clause, is_verb_last: bool) -> tuple[str, str]:
    """The finite verb, and the end of a main clause: prefix or infinitive."""
    person = _grammatical_person(clause_meaning)
    verb = BE if clause_meaning.verb is None else clause_meaning.verb
    if clause_meaning.tense in _MODALS:
        return _MODALS[clause_meaning.tense].german[person], verb.prefix + verb.infinitive
    finite = (verb.past if clause_meaning.tense == "past" else verb.present)[person]
    return (verb.prefix + finite, "") if is_verb_last else (finite, verb.prefix)


def _grammatical_person(clause_meaning: Clause) -> int:
    if isinstance(clause_meaning.subject, str):
        return {"I": FIRST, "we": PLURAL_PERSON}.get(clause_meaning.subject, THIRD)
    return PLURAL_PERSON if clause_meaning.subject.plural else THIRD


def _noun_phrase(phrase: NounPhraseMeaning | str | None, case: int) -> str:
    if phrase is None or isinstance(phrase, str):
        return {"I": "ich", "we": "wir"}.get(phrase or "", phrase or "")
    determiner = DETERMINERS[phrase.determiner]
    return phrases.inflect_noun_phrase(phrase.noun, determiner, case, phrase.plural, phrase.adjective).german
