"""Constructions of two clauses: the German verb of the second is last, or an infinitive with zu; or both are main
clauses."""

from collections.abc import Sequence
from typing import NamedTuple

from tfm.data.synthetic.language.clauses import (
    EVENT_VERBS,
    MODAL_TENSES,
    NO_WORDS,
    NON_MODAL_TENSES,
    PAST_TENSES,
    PAST_TIME_TENSES,
    PRESENT_TENSES,
    PRESENT_TIME_TENSES,
    STATEMENT_VERBS,
    VERBS,
    Clause,
    Tense,
    draw_clause,
)
from tfm.data.synthetic.language.determiners import POSITIVE_DETERMINERS
from tfm.data.synthetic.language.expressions import WILL
from tfm.data.synthetic.language.lexicon import TELLING_VERBS, TO_INFINITIVE_VERBS, WEATHER_VERBS, Verb
from tfm.data.synthetic.language.phrases import OWNER_NOUNS, Phrase, SeededRandom, subject_phrase
from tfm.data.synthetic.language.sentence import Sentence, make_sentence


class Conjunction(NamedTuple):
    english: str
    german: str
    main: Sequence[Tense]
    subordinate: Sequence[Tense]


CONJUNCTIONS = (
    Conjunction("because", "weil", PRESENT_TIME_TENSES, PRESENT_TIME_TENSES),
    Conjunction("because", "weil", PAST_TIME_TENSES, PAST_TIME_TENSES),
    Conjunction("although", "obwohl", PRESENT_TIME_TENSES, PRESENT_TIME_TENSES),
    Conjunction("although", "obwohl", PAST_TIME_TENSES, PAST_TIME_TENSES),
    Conjunction("if", "wenn", (*PRESENT_TIME_TENSES, *(WILL,) * 4), PRESENT_TENSES),
    # when is wenn of what happens again and again, als of what happened once.
    Conjunction("when", "wenn", PRESENT_TENSES, PRESENT_TENSES),
    Conjunction("when", "als", PAST_TENSES, PAST_TENSES),
    Conjunction("while", "während", PAST_TENSES, PAST_TENSES),
    Conjunction("before", "bevor", PAST_TENSES, PAST_TENSES),
)
_TEMPORAL_CONJUNCTIONS = ("when", "while", "before")  # events, in simple main clauses
_DURATIVE_VERBS = tuple(verb for verb in EVENT_VERBS if "moment" not in verb.traits) + WEATHER_VERBS
_DELIBERATE_VERBS = tuple(
    verb
    for verb in EVENT_VERBS
    if any("person" in noun.tags for noun in verb.subjects)
    and "moment" not in verb.traits
    and "accident" not in verb.traits
)
_PURPOSE_VERBS = tuple(verb for verb in _DELIBERATE_VERBS if verb.frame not in ("go", "come", "none"))
_MOTION_VERBS = tuple(verb for verb in EVENT_VERBS if verb.frame == "go")


def _draw_conjoined_clauses(draw: SeededRandom) -> tuple[Conjunction, Clause, Clause]:
    """A conjunction, a main clause without adverbs, and a subordinate clause."""
    conjunction = draw.choice(CONJUNCTIONS)
    is_temporal = conjunction.english in _TEMPORAL_CONJUNCTIONS
    main = draw_clause(
        draw,
        conjunction.main,
        verbs=EVENT_VERBS if is_temporal else VERBS,
        negated=not is_temporal and draw.chance(0.15),
        subjects=POSITIVE_DETERMINERS,
        adverbs=False,
    )
    inner = draw_clause(
        draw,
        conjunction.subordinate,
        verbs=_DURATIVE_VERBS if is_temporal else STATEMENT_VERBS,
        negated=not is_temporal and draw.chance(0.2),
        subjects=POSITIVE_DETERMINERS,
        adverbs=not is_temporal,
    )
    return (conjunction, main, inner) if inner.verb is not main.verb else _draw_conjoined_clauses(draw)


def trailing_subordinate_clause(draw: SeededRandom) -> Sentence:
    """Draw a sentence such as "The child sleeps because it rains." - "Das Kind schläft, weil es regnet."."""
    conjunction, main, inner = _draw_conjoined_clauses(draw)
    return make_sentence(
        ".",
        f"{main.english()} {conjunction.english} {inner.english()}",
        f"{main.german()}, {conjunction.german} {inner.german_verb_final()}",
        (main.uses, "statement"),
        (inner.uses, "subordinate"),
    )


def leading_subordinate_clause(draw: SeededRandom) -> Sentence:
    """Draw a sentence such as "If it rains, the child sleeps." - "Wenn es regnet, schläft das Kind."."""
    conjunction, main, inner = _draw_conjoined_clauses(draw)
    return make_sentence(
        ".",
        f"{conjunction.english} {inner.english()}, {main.english()}",
        f"{conjunction.german} {inner.german_verb_final()}, {main.german_inverted()}",
        (main.uses, "fronted"),
        (inner.uses, "subordinate"),
    )


def that_clause(draw: SeededRandom) -> Sentence:
    """Draw a sentence with a clause: "The man says that he is tired." - "Der Mann sagt, dass er müde ist.".

    Other verbs ask whether: "fragt, ob".
    """
    is_past = draw.chance(0.5)
    main = draw_clause(draw, PAST_TENSES if is_past else PRESENT_TENSES, verbs=TELLING_VERBS, adverbs=False)
    inner = draw_clause(
        draw,
        PAST_TIME_TENSES if is_past else (*PRESENT_TIME_TENSES, WILL, WILL, "past"),
        verbs=STATEMENT_VERBS,
        negated=draw.chance(0.2),
        subjects=POSITIVE_DETERMINERS,
    )
    english, german = ("whether", "ob") if main.verb.frame == "whether" else ("that", "dass")
    return make_sentence(
        ".",
        f"{main.english()} {english} {inner.english()}",
        f"{main.german()}, {german} {inner.german_verb_final()}",
        (main.uses, "statement"),
        (inner.uses, "that clause"),
    )


def _draw_infinitive_clause(draw: SeededRandom, subject: Phrase, verbs: Sequence[Verb], negated: bool) -> Clause:
    """A clause to be said as an infinitive: its time is that of the main clause."""
    clause = draw_clause(draw, PRESENT_TENSES, verbs=verbs, subject=subject, negated=negated)
    clause.time = clause.frequency = NO_WORDS
    return clause


def infinitive_sentence(draw: SeededRandom) -> Sentence:
    """Draw an infinitive: "The woman tries to call the man." - "Die Frau versucht, den Mann anzurufen."."""
    main = draw_clause(draw, NON_MODAL_TENSES, verbs=TO_INFINITIVE_VERBS, negated=draw.chance(0.1), adverbs=False)
    inner = _draw_infinitive_clause(
        draw, main.subject, _DELIBERATE_VERBS, negated=not main.negated and draw.chance(0.1)
    )
    english, german = inner.infinitive()
    comma = "" if inner.is_bare_infinitive() else ","
    return make_sentence(
        ".",
        f"{main.english()} {english}",
        f"{main.german()}{comma} {german}",
        (main.uses, "statement"),
        (inner.uses, "infinitive"),
    )


def purpose_sentence(draw: SeededRandom) -> Sentence:
    """Draw a purpose clause.

    Example: "The man goes to the market in order to buy eggs." - "Der Mann geht zum Markt, um Eier zu kaufen."
    """
    pronoun_or_name = subject_phrase(draw, OWNER_NOUNS)
    main = draw_clause(
        draw, NON_MODAL_TENSES + MODAL_TENSES[:4], verbs=_MOTION_VERBS, subject=pronoun_or_name, adverbs=False
    )
    inner = _draw_infinitive_clause(draw, main.subject, _PURPOSE_VERBS, negated=False)
    inner.place, inner.place_uses = NO_WORDS, ()
    english, german = inner.infinitive()
    return make_sentence(
        ".",
        f"{main.english()} in order {english}",
        f"{main.german()}, um {german}",
        (main.uses, "statement"),
        (inner.uses, "purpose"),
    )


def coordination(draw: SeededRandom) -> Sentence:
    """Draw two main clauses: "Anna sings, but Peter does not dance." - "Anna singt, aber Peter tanzt nicht."."""
    tenses = PRESENT_TENSES if draw.chance(0.5) else PAST_TENSES
    first = draw_clause(draw, tenses, verbs=VERBS, adverbs=False)
    is_contrast = draw.chance(0.5)
    second = draw_clause(draw, tenses, verbs=VERBS, adverbs=False, negated=is_contrast and draw.chance(0.5))
    if any(lexeme in first.uses for lexeme in second.uses):
        return coordination(draw)
    english, german = (", but", ", aber") if is_contrast else (" and", " und")
    return make_sentence(
        ".",
        f"{first.english()}{english} {second.english()}",
        f"{first.german()}{german} {second.german()}",
        (first.uses + second.uses, "coordination"),
    )
