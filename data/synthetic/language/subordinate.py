"""Constructions of two clauses: the German verb of the second is last, or an infinitive with zu; or both are main
clauses."""

from collections.abc import Sequence
from typing import NamedTuple

from tfm.data.synthetic.language.clauses import (
    EVENTS,
    MODAL,
    NOTHING,
    NOW,
    PAST,
    PLAIN,
    PRESENT,
    STATEMENT_VERBS,
    THEN,
    VERBS,
    Clause,
    Tense,
    clause,
)
from tfm.data.synthetic.language.expressions import WILL
from tfm.data.synthetic.language.lexicon import STRIVING, TELLING, WEATHER, Verb
from tfm.data.synthetic.language.phrases import OWNING, POSITIVE, Draw, Phrase, subject_phrase
from tfm.data.synthetic.language.sentence import Sentence, sentence


class Conjunction(NamedTuple):
    english: str
    german: str
    main: Sequence[Tense]
    subordinate: Sequence[Tense]


CONJUNCTIONS = (
    Conjunction("because", "weil", NOW, NOW),
    Conjunction("because", "weil", THEN, THEN),
    Conjunction("although", "obwohl", NOW, NOW),
    Conjunction("although", "obwohl", THEN, THEN),
    Conjunction("if", "wenn", (*NOW, *(WILL,) * 4), PRESENT),
    # when is wenn of what happens again and again, als of what happened once.
    Conjunction("when", "wenn", PRESENT, PRESENT),
    Conjunction("when", "als", PAST, PAST),
    Conjunction("while", "während", PAST, PAST),
    Conjunction("before", "bevor", PAST, PAST),
)
_ONCE = ("when", "while", "before")  # events, told plainly
_LASTING = tuple(verb for verb in EVENTS if "moment" not in verb.traits) + WEATHER
_DELIBERATE = tuple(
    verb
    for verb in EVENTS
    if any("person" in noun.tags for noun in verb.subjects)
    and "moment" not in verb.traits
    and "accident" not in verb.traits
)
_PURPOSE_VERBS = tuple(verb for verb in _DELIBERATE if verb.frame not in ("go", "come", "none"))
_TO_A_PLACE = tuple(verb for verb in EVENTS if verb.frame == "go")


def _two(draw: Draw) -> tuple[Conjunction, Clause, Clause]:
    """A conjunction, a main clause without adverbs, and a subordinate clause."""
    conjunction = draw.one(CONJUNCTIONS)
    once = conjunction.english in _ONCE
    main = clause(
        draw,
        conjunction.main,
        verbs=EVENTS if once else VERBS,
        negated=not once and draw.chance(0.15),
        subjects=POSITIVE,
        adverbs=False,
    )
    inner = clause(
        draw,
        conjunction.subordinate,
        verbs=_LASTING if once else STATEMENT_VERBS,
        negated=not once and draw.chance(0.2),
        subjects=POSITIVE,
        adverbs=not once,
    )
    return (conjunction, main, inner) if inner.verb is not main.verb else _two(draw)


def conjunction_last(draw: Draw) -> Sentence:
    """Draw a sentence such as "The child sleeps because it rains." - "Das Kind schläft, weil es regnet."."""
    conjunction, main, inner = _two(draw)
    return sentence(
        ".",
        f"{main.english()} {conjunction.english} {inner.english()}",
        f"{main.german()}, {conjunction.german} {inner.german_verb_final()}",
        (main.uses, "statement"),
        (inner.uses, "subordinate"),
    )


def conjunction_first(draw: Draw) -> Sentence:
    """Draw a sentence such as "If it rains, the child sleeps." - "Wenn es regnet, schläft das Kind."."""
    conjunction, main, inner = _two(draw)
    return sentence(
        ".",
        f"{conjunction.english} {inner.english()}, {main.english()}",
        f"{conjunction.german} {inner.german_verb_final()}, {main.german_inverted()}",
        (main.uses, "fronted"),
        (inner.uses, "subordinate"),
    )


def that_clause(draw: Draw) -> Sentence:
    """Draw a sentence with a clause: "The man says that he is tired." - "Der Mann sagt, dass er müde ist.".

    Other verbs ask whether: "fragt, ob".
    """
    past = draw.chance(0.5)
    main = clause(draw, PAST if past else PRESENT, verbs=TELLING, adverbs=False)
    inner = clause(
        draw,
        THEN if past else (*NOW, WILL, WILL, "past"),
        verbs=STATEMENT_VERBS,
        negated=draw.chance(0.2),
        subjects=POSITIVE,
    )
    english, german = ("whether", "ob") if main.verb.frame == "whether" else ("that", "dass")
    return sentence(
        ".",
        f"{main.english()} {english} {inner.english()}",
        f"{main.german()}, {german} {inner.german_verb_final()}",
        (main.uses, "statement"),
        (inner.uses, "that clause"),
    )


def _infinitive(draw: Draw, subject: Phrase, verbs: Sequence[Verb], negated: bool) -> Clause:
    """A clause to be said as an infinitive: its time is that of the main clause."""
    it = clause(draw, PRESENT, verbs=verbs, subject=subject, negated=negated)
    it.time = it.frequency = NOTHING
    return it


def to_infinitive(draw: Draw) -> Sentence:
    """Draw an infinitive: "The woman tries to call the man." - "Die Frau versucht, den Mann anzurufen."."""
    main = clause(draw, PLAIN, verbs=STRIVING, negated=draw.chance(0.1), adverbs=False)
    inner = _infinitive(draw, main.subject, _DELIBERATE, negated=not main.negated and draw.chance(0.1))
    english, german = inner.infinitive()
    comma = "" if inner.is_bare_infinitive() else ","
    return sentence(
        ".",
        f"{main.english()} {english}",
        f"{main.german()}{comma} {german}",
        (main.uses, "statement"),
        (inner.uses, "infinitive"),
    )


def purpose(draw: Draw) -> Sentence:
    """Draw a purpose clause.

    Example: "The man goes to the market in order to buy eggs." - "Der Mann geht zum Markt, um Eier zu kaufen."
    """
    someone = subject_phrase(draw, OWNING)
    main = clause(draw, PLAIN + MODAL[:4], verbs=_TO_A_PLACE, subject=someone, adverbs=False)
    inner = _infinitive(draw, main.subject, _PURPOSE_VERBS, negated=False)
    inner.place, inner.place_uses = NOTHING, ()
    english, german = inner.infinitive()
    return sentence(
        ".",
        f"{main.english()} in order {english}",
        f"{main.german()}, um {german}",
        (main.uses, "statement"),
        (inner.uses, "purpose"),
    )


def coordination(draw: Draw) -> Sentence:
    """Draw two main clauses: "Anna sings, but Peter does not dance." - "Anna singt, aber Peter tanzt nicht."."""
    tenses = PRESENT if draw.chance(0.5) else PAST
    first = clause(draw, tenses, verbs=VERBS, adverbs=False)
    but = draw.chance(0.5)
    second = clause(draw, tenses, verbs=VERBS, adverbs=False, negated=but and draw.chance(0.5))
    if any(lexeme in first.uses for lexeme in second.uses):
        return coordination(draw)
    english, german = (", but", ", aber") if but else (" and", " und")
    return sentence(
        ".",
        f"{first.english()}{english} {second.english()}",
        f"{first.german()}{german} {second.german()}",
        (first.uses + second.uses, "coordination"),
    )
