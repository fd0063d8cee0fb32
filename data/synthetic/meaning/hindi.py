"""Hindi for the built-in corpus `languages`: the verb comes last, postpositions follow, verbs agree in gender.

    The queen sees a small dog in the garden. - रानी बाग़ में एक छोटे कुत्ते को देखती है।

Before a postposition (में in, को of a living object, ने) words take their oblique form. In the past of most verbs with
an object the subject takes ने and the verb agrees with the object, or with nothing if that has को
(McGregor, Outline of Hindi Grammar, 1995).
"""

from typing import NamedTuple
from unicodedata import normalize

from tfm.data.synthetic.meaning.hindi_lexicon import ADJECTIVES, FINAL_A, NOUNS, VERBS, HindiVerb
from tfm.data.synthetic.meaning.hindi_words import FEMININE, MASCULINE
from tfm.data.synthetic.meaning.meaning import Clause, Meaning, NounPhraseMeaning


class Agreement(NamedTuple):
    """The features that a verb agrees with.

    Args:
        gender: masculine or feminine.
        plural: whether the number is plural.
        first: whether the person is the first.
    """

    gender: str
    plural: bool
    first: bool = False


_SAYING_VERBS = {"say": HindiVerb("", "कह", "कहा", True), "believe": HindiVerb("", "मान", "माना", True)}
_NAMES = {
    "Anna": ("अन्ना", FEMININE),
    "Maria": ("मारिया", FEMININE),
    "Peter": ("पीटर", MASCULINE),
    "Paul": ("पॉल", MASCULINE),
}
_TIMES = {"today": "आज", "now": "अब", "every day": "हर रोज़", "in the evening": "शाम को"}
_INVARIABLE_DETERMINERS = {"the": "", "a": "एक", "two": "दो", "three": "तीन", "many": "कई"}
_POSSESSIVES = {"my": "मेरा", "our": "हमारा"}
_IRREGULAR_FORMS = {
    "हुआ": ("हुआ", "हुए", "हुई", "हुईं"),
    "किया": ("किया", "किए", "की", "कीं"),
    "नया": ("नया", "नए", "नई", "नईं"),
}


def realize_sentence(meaning: Meaning) -> str:
    """The meaning in Hindi, in Unicode's normal form C."""
    return normalize("NFC", _realize_unnormalized_sentence(meaning))


def _realize_unnormalized_sentence(meaning: Meaning) -> str:
    first_clause, second_clause = meaning.clause, meaning.other
    if meaning.form == "question":
        return f"क्या {_realize_clause(first_clause)}?"
    text = _realize_clause(first_clause, fronted=meaning.form == "fronted")
    if second_clause is not None:
        text += f" {'कि' if meaning.form == 'that' else 'क्योंकि'} {_realize_clause(second_clause)}"
    return text + "।"


def inflect_hindi(word: str, agreement: Agreement) -> str:
    """A word in -ा, adjective or participle, as it agrees: -ा, -े, -ी, and -ीं of the plural of a participle."""
    column = (2 if agreement.gender == FEMININE else 0) + agreement.plural
    if word in _IRREGULAR_FORMS:
        return _IRREGULAR_FORMS[word][column]
    if word.endswith("या"):
        return word[:-2] + ("या", "ए", "ई", "ईं")[column]
    return word[:-1] + ("ा", "े", "ी", "ीं")[column] if word.endswith(FINAL_A) else word


def realize_noun_phrase(phrase: NounPhraseMeaning, oblique: bool) -> str:
    """A noun phrase, direct or oblique; in the oblique, adjectives of masculine nouns have the form of the plural."""
    noun = NOUNS[phrase.noun.lexeme]
    agrees = Agreement(noun.gender, noun.gender == MASCULINE and (phrase.plural or oblique))
    words = [_inflect_determiner(phrase, oblique, agrees)]
    if phrase.adjective is not None:
        words.append(_inflect_adjective(phrase.adjective.lexeme, agrees))
    return " ".join(filter(None, [*words, noun.forms[phrase.plural][oblique]]))


def _inflect_determiner(phrase: NounPhraseMeaning, oblique: bool, agreement: Agreement) -> str:
    if phrase.determiner == "this":
        return (("यह", "इस"), ("ये", "इन"))[phrase.plural][oblique]
    if phrase.determiner in _POSSESSIVES:
        return inflect_hindi(_POSSESSIVES[phrase.determiner], agreement)
    return _INVARIABLE_DETERMINERS[phrase.determiner]


def _inflect_adjective(lexeme: str, agreement: Agreement) -> str:
    """An adjective, each word of it; feminine adjectives have no plural."""
    adjective_agreement = agreement if agreement.gender == MASCULINE else Agreement(FEMININE, False)
    return " ".join(inflect_hindi(word, adjective_agreement) for word in ADJECTIVES[lexeme].split())


def _realize_clause(clause: Clause, fronted: bool = False) -> str:
    """The words of a clause: subject, time, place, object, verb."""
    verb = None if clause.verb is None else _SAYING_VERBS.get(clause.verb.lexeme) or VERBS[clause.verb.lexeme]
    ergative = verb is not None and verb.ergative and clause.tense == "past"
    subject, agrees = _realize_subject(clause, ergative)
    time = "" if clause.time is None else _TIMES[clause.time]
    words = [time, subject] if fronted else [subject, time]
    if clause.place is not None:
        words.append(f"{realize_noun_phrase(clause.place, True)} में")
    if clause.quality is not None:
        words.append(_inflect_adjective(clause.quality.lexeme, agrees))
        return " ".join(filter(None, [*words, _copula(clause.tense == "past", agrees)]))
    assert verb is not None
    if clause.object is not None:
        words.append(_realize_object(clause))
    words.append(verb.before)
    return " ".join(
        filter(None, [*words, _finite_verb(clause, verb, _ergative_agreement(clause, agrees) if ergative else agrees)])
    )


def _realize_subject(clause: Clause, ergative: bool) -> tuple[str, Agreement]:
    subject = clause.subject
    if isinstance(subject, str):
        if subject in ("I", "we"):
            word = {"I": "मैं", "we": "हम"}[subject]
            return word + ("ने" if ergative else ""), Agreement(MASCULINE, subject == "we", subject == "I")
        name, gender = _NAMES[subject]
        return name + (" ने" if ergative else ""), Agreement(gender, False)
    agrees = Agreement(NOUNS[subject.noun.lexeme].gender, subject.plural)
    return realize_noun_phrase(subject, ergative) + (" ने" if ergative else ""), agrees


def _realize_object(clause: Clause) -> str:
    object_ = clause.object
    if isinstance(object_, str):
        return f"{_NAMES[object_][0]} को"
    assert object_ is not None
    return f"{realize_noun_phrase(object_, True)} को" if object_.is_animate else realize_noun_phrase(object_, False)


def _ergative_agreement(clause: Clause, subject: Agreement) -> Agreement:
    """The features of a past verb whose subject has ने: those of an object without को, or masculine singular."""
    object_ = clause.object
    if object_ is None or isinstance(object_, str) or object_.is_animate:
        return Agreement(MASCULINE, False)
    return Agreement(NOUNS[object_.noun.lexeme].gender, object_.plural)


def _finite_verb(clause: Clause, verb: HindiVerb, agreement: Agreement) -> str:
    negation = "नहीं " if clause.negated else ""
    singular = Agreement(agreement.gender, agreement.plural and agreement.gender == MASCULINE)  # ती is the plural too
    if clause.tense == "past":
        return negation + inflect_hindi(verb.perfective, agreement)
    if clause.tense == "will":
        return negation + _future_verb(verb.stem, agreement)
    if clause.tense == "want":
        return f"{verb.stem}ना {negation}{inflect_hindi('चाहता', singular)} {_copula(False, agreement)}"
    habit = verb.stem + ("ता" if clause.tense == "present" else " सकता")
    return f"{negation}{inflect_hindi(habit, singular)} {_copula(False, agreement)}"


def _future_verb(stem: str, agreement: Agreement) -> str:
    after_vowel = stem[-1] in "ाोीे"
    if agreement.first:
        person = "ऊँ" if after_vowel else "ूँ"
    elif agreement.plural:
        person = "एँ" if after_vowel else "ें"
    else:
        person = "ए" if after_vowel else "े"
    return (
        stem
        + person
        + inflect_hindi("गा", Agreement(agreement.gender, agreement.plural and agreement.gender == MASCULINE))
    )


def _copula(past: bool, agreement: Agreement) -> str:
    if past:
        return inflect_hindi("था", agreement)
    return "हूँ" if agreement.first else "हैं" if agreement.plural else "है"
