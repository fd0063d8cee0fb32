"""Constructions of one clause: statements, negation, modal verbs, questions, being, numbers."""

from tfm.data.synthetic.language import determiners, expressions, lexicon, phrases
from tfm.data.synthetic.language.clauses import (
    EVENT_VERBS,
    MODAL_TENSES,
    NO_WORDS,
    NON_MODAL_TENSES,
    STATEMENT_VERBS,
    VERBS,
    Tense,
    draw_clause,
)
from tfm.data.synthetic.language.complements import Complement, draw_location
from tfm.data.synthetic.language.expressions import BilingualWords, Modal
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE, NOMINATIVE
from tfm.data.synthetic.language.lexicon import BE, Verb
from tfm.data.synthetic.language.phrases import SeededRandom, inflect_noun_phrase, noun_phrase, subject_phrase
from tfm.data.synthetic.language.sentence import Sentence, make_sentence

_ANY_TENSE: tuple[Tense, ...] = NON_MODAL_TENSES * 2 + MODAL_TENSES
_OBJECT_VERBS = tuple(verb for verb in lexicon.VERBS if verb.frame in ("object", "dative"))
_INTENTIONAL_VERBS = tuple(verb for verb in EVENT_VERBS if "accident" not in verb.traits)
_PERSON_VERBS = tuple(verb for verb in EVENT_VERBS if any("person" in noun.tags for noun in verb.subjects))
_PLACE_VERBS = tuple(verb for verb in EVENT_VERBS if "place" in verb.traits)
_GO_VERBS = tuple(verb for verb in EVENT_VERBS if verb.frame == "go")


def statement(draw: SeededRandom) -> Sentence:
    """Draw a statement, such as "The woman buys a book." - "Die Frau kauft ein Buch."."""
    clause = draw_clause(
        draw, NON_MODAL_TENSES, verbs=lexicon.VERBS + lexicon.WEATHER_VERBS
    )  # without be, which is for predicate()
    return make_sentence(".", clause.english(), clause.german(), (clause.uses, "statement"))


def negated_statement(draw: SeededRandom) -> Sentence:
    """Draw a negated statement, such as "The woman does not buy the book." - "Die Frau kauft das Buch nicht.".

    With an indefinite object: "a book" - "kein Buch".
    """
    clause = draw_clause(draw, _ANY_TENSE, verbs=VERBS, negated=True)
    return make_sentence(".", clause.english(), clause.german(), (clause.uses, "negation"))


def modal_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement with a modal verb: "The woman wants to buy a book." - "Die Frau will ein Buch kaufen."."""
    clause = draw_clause(draw, MODAL_TENSES, verbs=_INTENTIONAL_VERBS)
    while not isinstance(clause.tense, Modal):
        clause = draw_clause(draw, MODAL_TENSES, verbs=_INTENTIONAL_VERBS)
    return make_sentence(".", clause.english(), clause.german(), (clause.uses, "modal"))


def fronted_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement with a time or place first.

    Example: "Today the woman buys a book." - "Heute kauft die Frau ein Buch."
    """
    clause = draw_clause(draw, _ANY_TENSE, verbs=EVENT_VERBS)
    while not (clause.time.english or clause.place.english):
        clause = draw_clause(draw, _ANY_TENSE, verbs=EVENT_VERBS)
    if clause.time.english:
        first, clause.time = clause.time, NO_WORDS
    else:
        first, clause.place = clause.place, NO_WORDS
    english, german = f"{first.english} {clause.english()}", f"{first.german} {clause.german_inverted()}"
    return make_sentence(".", english, german, (clause.uses, "fronted"))


def yes_no_question(draw: SeededRandom) -> Sentence:
    """Draw a question, such as "Does the woman buy a book?" - "Kauft die Frau ein Buch?"."""
    clause = draw_clause(draw, _ANY_TENSE, verbs=STATEMENT_VERBS, subjects=determiners.POSITIVE_DETERMINERS)
    return make_sentence("?", clause.english_question(), clause.german_inverted(), (clause.uses, "question"))


def subject_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the subject, such as "Who buys the book?" - "Wer kauft das Buch?"."""
    clause = draw_clause(draw, _ANY_TENSE, verbs=_PERSON_VERBS, subject=phrases.WHO)
    return make_sentence("?", clause.english(), clause.german(), (clause.uses, "who"))


def _interrogative_phrase(draw: SeededRandom, verb: Verb) -> tuple[BilingualWords, tuple[str, ...]]:
    """The words that ask for the object of `verb`, and its lexemes: "what", "was"; "which book", "welches Buch"."""
    noun = draw.choice(verb.objects)
    case = DATIVE if verb.frame == "dative" else ACCUSATIVE
    if draw.chance(0.5):
        determiner, plural = draw.choice(
            ((determiners.WHICH, False), (determiners.WHICH, True), (determiners.HOW_MANY, True))
        )
        asked = inflect_noun_phrase(noun, determiners.WHICH if case == DATIVE else determiner, case, plural)
        return BilingualWords(asked.english, asked.german), asked.uses
    if "person" in noun.tags or case == DATIVE:
        return BilingualWords("whom", "wem" if case == DATIVE else "wen"), ()
    return BilingualWords("what", "was"), ()


def object_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the object: "Which book does the woman see?" - "Welches Buch sieht die Frau?"

    The question word is what, whom, which or how many; was, wen, welches, wie viele.
    """
    verb = draw.choice(_OBJECT_VERBS)
    asked, lexemes = _interrogative_phrase(draw, verb)
    clause = draw_clause(
        draw, _ANY_TENSE, verbs=(verb,), complement=Complement(uses=lexemes), subjects=determiners.POSITIVE_DETERMINERS
    )
    while clause.subject.quantified or any(lexeme in lexemes for lexeme in clause.subject.uses):
        clause.subject = subject_phrase(draw, verb.subjects, determiners.DEFINITE_DETERMINERS)
    english, german = f"{asked.english} {clause.english_question()}", f"{asked.german} {clause.german_inverted()}"
    return make_sentence("?", english, german, (clause.uses, "what"))


def place_question(draw: SeededRandom) -> Sentence:
    """Draw a question for a place or a destination.

    Examples: "Where does the child sleep?" - "Wo schläft das Kind?"; "Where does it go?" - "Wohin geht es?"
    """
    if draw.chance(0.3):
        clause = draw_clause(
            draw, _ANY_TENSE, verbs=_GO_VERBS, complement=Complement(), subjects=determiners.POSITIVE_DETERMINERS
        )
        word = "wohin"
    else:
        clause = draw_clause(draw, _ANY_TENSE, verbs=_PLACE_VERBS, subjects=determiners.POSITIVE_DETERMINERS)
        clause.place, clause.place_uses = NO_WORDS, ()
        word = "wo"
    return make_sentence(
        "?", f"where {clause.english_question()}", f"{word} {clause.german_inverted()}", (clause.uses, "where")
    )


def time_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the time, such as "When will the train arrive?" - "Wann wird der Zug ankommen?"."""
    clause = draw_clause(draw, _ANY_TENSE, verbs=EVENT_VERBS, subjects=determiners.POSITIVE_DETERMINERS)
    clause.time = clause.frequency = NO_WORDS
    return make_sentence(
        "?", f"when {clause.english_question()}", f"wann {clause.german_inverted()}", (clause.uses, "when")
    )


def reason_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the reason, such as "Why is the child not sleeping?" - "Warum schläft das Kind nicht?"."""
    clause = draw_clause(
        draw, _ANY_TENSE, verbs=VERBS, negated=draw.chance(0.25), subjects=determiners.POSITIVE_DETERMINERS
    )
    return make_sentence(
        "?", f"why {clause.english_question()}", f"warum {clause.german_inverted()}", (clause.uses, "why")
    )


# ---- Being ------------------------------------------------------------------------------------------

_ADULTS = lexicon.nouns_with_tags("adult")
_PRICED_NOUNS = tuple(noun for noun in lexicon.nouns_with_tags("thing furniture vehicle") if "text" not in noun.tags)
_COMPARABLE_NOUN_TAGS = {"person", "animal", "thing", "vehicle", "food", "building"}
_EXISTENCE_NOUNS = lexicon.nouns_with_tags("person animal")


def quality_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement on a quality, such as "The old dog is tired." - "Der alte Hund ist müde."."""
    clause = draw_clause(draw, ("present", "past"), verbs=(BE,))
    return make_sentence(".", clause.english(), clause.german(), (clause.uses, "predicate"))


def comparison(draw: SeededRandom) -> Sentence:
    """Draw a comparison, such as "The dog is as old as the cat." - "Der Hund ist so alt wie die Katze."."""
    clause = draw_clause(draw, ("present", "past"), verbs=(BE,), negated=draw.chance(0.3))
    while clause.subject.noun is None:
        clause = draw_clause(draw, ("present", "past"), verbs=(BE,), negated=clause.negated)
    adjective = clause.complement
    kinds = clause.subject.noun.tags & _COMPARABLE_NOUN_TAGS or {"thing"}
    comparable_nouns = [
        noun
        for noun in lexicon.NOUNS
        if noun is not clause.subject.noun
        and noun.tags & kinds
        and any(word.lexeme == adjective.english for word in phrases.ADJECTIVES_BY_NOUN[noun])
    ]
    compared_phrase = noun_phrase(
        draw, draw.choice(comparable_nouns), NOMINATIVE, determiners.DEFINITE_DETERMINERS, adjective_probability=0
    )
    clause.complement = Complement(
        f"as {adjective.english} as {compared_phrase.english}",
        late=f"so {adjective.late} wie {compared_phrase.german}",
        uses=adjective.uses + compared_phrase.uses,
    )
    return make_sentence(".", clause.english(), clause.german(), (clause.uses, "comparison"))


def existence_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement on existence: "There are three cats in the garden." - "Im Garten sind drei Katzen."."""
    place, place_uses = draw_location(draw)
    phrase = noun_phrase(draw, draw.choice(_EXISTENCE_NOUNS), NOMINATIVE, determiners.EXISTENCE_DETERMINERS)
    past = draw.chance(0.4)
    verb = (("are", "were") if phrase.plural else ("is", "was"))[past]
    finite = (BE.past if past else BE.present)[phrase.person]
    return make_sentence(
        ".",
        f"there {verb} {phrase.english} {place.english}",
        f"{place.german} {finite} {phrase.german}",
        (phrase.uses + place_uses, "existence"),
    )


# ---- Numbers ----------------------------------------------------------------------------------------


def age_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement on age: "My uncle is forty-two years old." - "Mein Onkel ist zweiundvierzig Jahre alt."."""
    number = draw.choice(expressions.LARGE_NUMBERS)
    subject = subject_phrase(draw, _ADULTS, determiners.DEFINITE_DETERMINERS)
    years = Complement(f"{number.english} years old", late=f"{number.german} Jahre alt")
    clause = draw_clause(draw, ("present", "past"), verbs=(BE,), subject=subject, complement=years)
    return make_sentence(".", clause.english(), clause.german(), (clause.subject.uses, "age"))


def price_statement(draw: SeededRandom) -> Sentence:
    """Draw a sentence on a price, such as "This lamp costs thirty euros." - "Diese Lampe kostet dreißig Euro."."""
    number = draw.choice(expressions.LARGE_NUMBERS)
    phrase = noun_phrase(draw, draw.choice(_PRICED_NOUNS), NOMINATIVE, determiners.DEFINITE_DETERMINERS)
    costs, kostet = ("cost", "kosten") if phrase.plural else ("costs", "kostet")
    return make_sentence(
        ".",
        f"{phrase.english} {costs} {number.english} euros",
        f"{phrase.german} {kostet} {number.german} Euro",
        (phrase.uses, "price"),
    )
