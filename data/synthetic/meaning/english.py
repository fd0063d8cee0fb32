"""English for the built-in corpus `languages`: subject, verb, object; do in questions and negation."""

from tfm.data.synthetic.language import phrases
from tfm.data.synthetic.language.german import NOMINATIVE
from tfm.data.synthetic.meaning.determiners import DETERMINERS
from tfm.data.synthetic.meaning.meaning import Clause, Meaning, NounPhraseMeaning


def realize_sentence(meaning: Meaning) -> str:
    """The meaning in English."""
    if meaning.form == "question":
        text = realize_question(meaning.clause) + "?"
    elif meaning.form == "fronted":
        text = f"{meaning.clause.time} {realize_statement(meaning.clause, with_time=False)}."
    else:
        text = realize_statement(meaning.clause)
        if meaning.other is not None:
            text += f" {meaning.form} {realize_statement(meaning.other)}"
        text += "."
    return text[0].upper() + text[1:]


def realize_statement(clause: Clause, with_time: bool = True) -> str:
    """The queen sees a dog in the garden today."""
    negation = "not" if clause.negated else ""
    helper, verb = _auxiliary_and_verb(clause)
    if helper == "can" and negation:
        helper, negation = "cannot", ""
    if not helper and negation:
        helper, verb = _do_form(clause), _base_verb(clause)
    return _join_words(_noun_phrase(clause.subject), helper, negation, verb, *_clause_tail_words(clause, with_time))


def realize_question(clause: Clause) -> str:
    """Return the question of a clause, such as "Does the queen see a dog in the garden today?"."""
    negation = "not" if clause.negated else ""
    helper, verb = _auxiliary_and_verb(clause)
    if clause.quality is not None:
        return _join_words(verb, _noun_phrase(clause.subject), *_clause_tail_words(clause, True))
    if not helper:
        helper, verb = _do_form(clause), _base_verb(clause)
    return _join_words(helper, _noun_phrase(clause.subject), negation, verb, *_clause_tail_words(clause, True))


def _auxiliary_and_verb(clause: Clause) -> tuple[str, str]:
    """The auxiliary verb, if any, and the other."""
    is_plural, is_first_person = _has_plural_subject(clause), clause.subject == "I"
    if clause.quality is not None:
        if clause.tense == "past":
            return "", "were" if is_plural else "was"
        return "", "are" if is_plural else "am" if is_first_person else "is"
    assert clause.verb is not None
    base, third, past = clause.verb.english[:3]
    if clause.tense in ("will", "can"):
        return clause.tense, base
    if clause.tense == "want":
        return "", f"{'want' if is_plural or is_first_person else 'wants'} to {base}"
    return "", past if clause.tense == "past" else base if is_plural or is_first_person else third


def _do_form(clause: Clause) -> str:
    if clause.tense == "past":
        return "did"
    return "do" if _has_plural_subject(clause) or clause.subject == "I" else "does"


def _base_verb(clause: Clause) -> str:
    assert clause.verb is not None
    return f"want to {clause.verb.english[0]}" if clause.tense == "want" else clause.verb.english[0]


def _clause_tail_words(clause: Clause, with_time: bool) -> list[str]:
    quality = "" if clause.quality is None else clause.quality.lexeme
    place = "" if clause.place is None else f"in {_noun_phrase(clause.place)}"
    return [quality, _noun_phrase(clause.object), place, clause.time or "" if with_time else ""]


def _has_plural_subject(clause: Clause) -> bool:
    return clause.subject == "we" if isinstance(clause.subject, str) else clause.subject.plural


def _noun_phrase(phrase: NounPhraseMeaning | str | None) -> str:
    if phrase is None or isinstance(phrase, str):
        return phrase or ""
    determiner = DETERMINERS[phrase.determiner]
    return phrases.inflect_noun_phrase(phrase.noun, determiner, NOMINATIVE, phrase.plural, phrase.adjective).english


def _join_words(*words: str) -> str:
    return " ".join(filter(None, words))
