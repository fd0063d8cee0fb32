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
    it = draw_clause(
        draw, NON_MODAL_TENSES, verbs=lexicon.VERBS + lexicon.WEATHER_VERBS
    )  # without be, which is for predicate()
    return make_sentence(".", it.english(), it.german(), (it.uses, "statement"))


def negated_statement(draw: SeededRandom) -> Sentence:
    """Draw a negated statement, such as "The woman does not buy the book." - "Die Frau kauft das Buch nicht.".

    With an indefinite object: "a book" - "kein Buch".
    """
    it = draw_clause(draw, _ANY_TENSE, verbs=VERBS, negated=True)
    return make_sentence(".", it.english(), it.german(), (it.uses, "negation"))


def modal_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement with a modal verb: "The woman wants to buy a book." - "Die Frau will ein Buch kaufen."."""
    it = draw_clause(draw, MODAL_TENSES, verbs=_INTENTIONAL_VERBS)
    while not isinstance(it.tense, Modal):
        it = draw_clause(draw, MODAL_TENSES, verbs=_INTENTIONAL_VERBS)
    return make_sentence(".", it.english(), it.german(), (it.uses, "modal"))


def fronted_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement with a time or place first.

    Example: "Today the woman buys a book." - "Heute kauft die Frau ein Buch."
    """
    it = draw_clause(draw, _ANY_TENSE, verbs=EVENT_VERBS)
    while not (it.time.english or it.place.english):
        it = draw_clause(draw, _ANY_TENSE, verbs=EVENT_VERBS)
    if it.time.english:
        first, it.time = it.time, NO_WORDS
    else:
        first, it.place = it.place, NO_WORDS
    english, german = f"{first.english} {it.english()}", f"{first.german} {it.german_inverted()}"
    return make_sentence(".", english, german, (it.uses, "fronted"))


def yes_no_question(draw: SeededRandom) -> Sentence:
    """Draw a question, such as "Does the woman buy a book?" - "Kauft die Frau ein Buch?"."""
    it = draw_clause(draw, _ANY_TENSE, verbs=STATEMENT_VERBS, subjects=determiners.POSITIVE_DETERMINERS)
    return make_sentence("?", it.english_question(), it.german_inverted(), (it.uses, "question"))


def subject_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the subject, such as "Who buys the book?" - "Wer kauft das Buch?"."""
    it = draw_clause(draw, _ANY_TENSE, verbs=_PERSON_VERBS, subject=phrases.WHO)
    return make_sentence("?", it.english(), it.german(), (it.uses, "who"))


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
    it = draw_clause(
        draw, _ANY_TENSE, verbs=(verb,), complement=Complement(uses=lexemes), subjects=determiners.POSITIVE_DETERMINERS
    )
    while it.subject.quantified or any(lexeme in lexemes for lexeme in it.subject.uses):
        it.subject = subject_phrase(draw, verb.subjects, determiners.DEFINITE_DETERMINERS)
    english, german = f"{asked.english} {it.english_question()}", f"{asked.german} {it.german_inverted()}"
    return make_sentence("?", english, german, (it.uses, "what"))


def place_question(draw: SeededRandom) -> Sentence:
    """Draw a question for a place or a destination.

    Examples: "Where does the child sleep?" - "Wo schläft das Kind?"; "Where does it go?" - "Wohin geht es?"
    """
    if draw.chance(0.3):
        it = draw_clause(
            draw, _ANY_TENSE, verbs=_GO_VERBS, complement=Complement(), subjects=determiners.POSITIVE_DETERMINERS
        )
        word = "wohin"
    else:
        it = draw_clause(draw, _ANY_TENSE, verbs=_PLACE_VERBS, subjects=determiners.POSITIVE_DETERMINERS)
        it.place, it.place_uses = NO_WORDS, ()
        word = "wo"
    return make_sentence("?", f"where {it.english_question()}", f"{word} {it.german_inverted()}", (it.uses, "where"))


def time_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the time, such as "When will the train arrive?" - "Wann wird der Zug ankommen?"."""
    it = draw_clause(draw, _ANY_TENSE, verbs=EVENT_VERBS, subjects=determiners.POSITIVE_DETERMINERS)
    it.time = it.frequency = NO_WORDS
    return make_sentence("?", f"when {it.english_question()}", f"wann {it.german_inverted()}", (it.uses, "when"))


def reason_question(draw: SeededRandom) -> Sentence:
    """Draw a question for the reason, such as "Why is the child not sleeping?" - "Warum schläft das Kind nicht?"."""
    it = draw_clause(
        draw, _ANY_TENSE, verbs=VERBS, negated=draw.chance(0.25), subjects=determiners.POSITIVE_DETERMINERS
    )
    return make_sentence("?", f"why {it.english_question()}", f"warum {it.german_inverted()}", (it.uses, "why"))


# ---- Being ------------------------------------------------------------------------------------------

_ADULTS = lexicon.nouns_with_tags("adult")
_PRICED_NOUNS = tuple(noun for noun in lexicon.nouns_with_tags("thing furniture vehicle") if "text" not in noun.tags)
_COMPARABLE_NOUN_TAGS = {"person", "animal", "thing", "vehicle", "food", "building"}
_EXISTENCE_NOUNS = lexicon.nouns_with_tags("person animal")


def quality_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement on a quality, such as "The old dog is tired." - "Der alte Hund ist müde."."""
    it = draw_clause(draw, ("present", "past"), verbs=(BE,))
    return make_sentence(".", it.english(), it.german(), (it.uses, "predicate"))


def comparison(draw: SeededRandom) -> Sentence:
    """Draw a comparison, such as "The dog is as old as the cat." - "Der Hund ist so alt wie die Katze."."""
    it = draw_clause(draw, ("present", "past"), verbs=(BE,), negated=draw.chance(0.3))
    while it.subject.noun is None:
        it = draw_clause(draw, ("present", "past"), verbs=(BE,), negated=it.negated)
    adjective = it.complement
    kinds = it.subject.noun.tags & _COMPARABLE_NOUN_TAGS or {"thing"}
    alike = [
        noun
        for noun in lexicon.NOUNS
        if noun is not it.subject.noun
        and noun.tags & kinds
        and any(word.lexeme == adjective.english for word in phrases.ADJECTIVES_BY_NOUN[noun])
    ]
    other = noun_phrase(draw, draw.choice(alike), NOMINATIVE, determiners.DEFINITE_DETERMINERS, adjective_probability=0)
    it.complement = Complement(
        f"as {adjective.english} as {other.english}",
        late=f"so {adjective.late} wie {other.german}",
        uses=adjective.uses + other.uses,
    )
    return make_sentence(".", it.english(), it.german(), (it.uses, "comparison"))


def existence_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement on existence: "There are three cats in the garden." - "Im Garten sind drei Katzen."."""
    place, place_uses = draw_location(draw)
    thing = noun_phrase(draw, draw.choice(_EXISTENCE_NOUNS), NOMINATIVE, determiners.EXISTENCE_DETERMINERS)
    past = draw.chance(0.4)
    verb = (("are", "were") if thing.plural else ("is", "was"))[past]
    finite = (BE.past if past else BE.present)[thing.person]
    return make_sentence(
        ".",
        f"there {verb} {thing.english} {place.english}",
        f"{place.german} {finite} {thing.german}",
        (thing.uses + place_uses, "existence"),
    )


# ---- Numbers ----------------------------------------------------------------------------------------


def age_statement(draw: SeededRandom) -> Sentence:
    """Draw a statement on age: "My uncle is forty-two years old." - "Mein Onkel ist zweiundvierzig Jahre alt."."""
    number = draw.choice(expressions.LARGE_NUMBERS)
    subject = subject_phrase(draw, _ADULTS, determiners.DEFINITE_DETERMINERS)
    years = Complement(f"{number.english} years old", late=f"{number.german} Jahre alt")
    it = draw_clause(draw, ("present", "past"), verbs=(BE,), subject=subject, complement=years)
    return make_sentence(".", it.english(), it.german(), (it.subject.uses, "age"))


def price_statement(draw: SeededRandom) -> Sentence:
    """Draw a sentence on a price, such as "This lamp costs thirty euros." - "Diese Lampe kostet dreißig Euro."."""
    number = draw.choice(expressions.LARGE_NUMBERS)
    thing = noun_phrase(draw, draw.choice(_PRICED_NOUNS), NOMINATIVE, determiners.DEFINITE_DETERMINERS)
    costs, kostet = ("cost", "kosten") if thing.plural else ("costs", "kostet")
    return make_sentence(
        ".",
        f"{thing.english} {costs} {number.english} euros",
        f"{thing.german} {kostet} {number.german} Euro",
        (thing.uses, "price"),
    )
