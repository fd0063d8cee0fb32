"""English for the built-in corpus `languages`: subject, verb, object; do in questions and negation."""

from tfm.data.synthetic.language import phrases
from tfm.data.synthetic.language.german import NOMINATIVE
from tfm.data.synthetic.meaning.determiners import DETERMINERS
from tfm.data.synthetic.meaning.meaning import Clause, Meaning, Thing


def sentence(meaning: Meaning) -> str:
    """The meaning in English."""
    if meaning.form == "question":
        text = question(meaning.clause) + "?"
    elif meaning.form == "fronted":
        text = f"{meaning.clause.time} {statement(meaning.clause, timed=False)}."
    else:
        text = statement(meaning.clause)
        if meaning.other is not None:
            text += f" {meaning.form} {statement(meaning.other)}"
        text += "."
    return text[0].upper() + text[1:]


def statement(clause: Clause, timed: bool = True) -> str:
    """The queen sees a dog in the garden today."""
    negation = "not" if clause.negated else ""
    helper, verb = _verbs(clause)
    if helper == "can" and negation:
        helper, negation = "cannot", ""
    if not helper and negation:
        helper, verb = _do_form(clause), _base_verb(clause)
    return _joined(_noun_phrase(clause.subject), helper, negation, verb, *_clause_rest(clause, timed))


def question(clause: Clause) -> str:
    """Return the question of a clause, such as "Does the queen see a dog in the garden today?"."""
    negation = "not" if clause.negated else ""
    helper, verb = _verbs(clause)
    if clause.quality is not None:
        return _joined(verb, _noun_phrase(clause.subject), *_clause_rest(clause, True))
    if not helper:
        helper, verb = _do_form(clause), _base_verb(clause)
    return _joined(helper, _noun_phrase(clause.subject), negation, verb, *_clause_rest(clause, True))


def _verbs(clause: Clause) -> tuple[str, str]:
    """The auxiliary verb, if any, and the other."""
    several, first = _plural(clause), clause.subject == "I"
    if clause.quality is not None:
        if clause.tense == "past":
            return "", "were" if several else "was"
        return "", "are" if several else "am" if first else "is"
    assert clause.verb is not None
    base, third, past = clause.verb.english[:3]
    if clause.tense in ("will", "can"):
        return clause.tense, base
    if clause.tense == "want":
        return "", f"{'want' if several or first else 'wants'} to {base}"
    return "", past if clause.tense == "past" else base if several or first else third


def _do_form(clause: Clause) -> str:
    if clause.tense == "past":
        return "did"
    return "do" if _plural(clause) or clause.subject == "I" else "does"


def _base_verb(clause: Clause) -> str:
    assert clause.verb is not None
    return f"want to {clause.verb.english[0]}" if clause.tense == "want" else clause.verb.english[0]


def _clause_rest(clause: Clause, timed: bool) -> list[str]:
    quality = "" if clause.quality is None else clause.quality.lexeme
    place = "" if clause.place is None else f"in {_noun_phrase(clause.place)}"
    return [quality, _noun_phrase(clause.object), place, clause.time or "" if timed else ""]


def _plural(clause: Clause) -> bool:
    return clause.subject == "we" if isinstance(clause.subject, str) else clause.subject.plural


def _noun_phrase(thing: Thing | str | None) -> str:
    if thing is None or isinstance(thing, str):
        return thing or ""
    determiner = DETERMINERS[thing.determiner]
    return phrases.inflect(thing.noun, determiner, NOMINATIVE, thing.plural, thing.adjective).english


def _joined(*words: str) -> str:
    return " ".join(filter(None, words))
