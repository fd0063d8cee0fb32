"""One clause with one verb, built at once in English and German, and the orders its words can take.

A clause is drawn once; then its words are put in the order of a statement, a question or a subordinate
clause. The German middle field keeps one order: definite objects, time, frequency, nicht, manner, place,
indefinite objects and what belongs to the verb ("gibt dem Kind heute im Park einen Ball").
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfm.data.synthetic.language import determiners, expressions, lexicon, phrases
from tfm.data.synthetic.language.complements import COMPLEMENTS, Complement, draw_location
from tfm.data.synthetic.language.expressions import BilingualWords, Modal
from tfm.data.synthetic.language.german import FIRST, PLURAL_PERSON, THIRD
from tfm.data.synthetic.language.lexicon import BE, Verb
from tfm.data.synthetic.language.phrases import Phrase, SeededRandom, subject_phrase

Tense = str | Modal  # "present", "progressive", "past", "perfect" or a modal verb
NO_WORDS = BilingualWords()

PRESENT_TENSES: tuple[Tense, ...] = ("present",)
PAST_TENSES: tuple[Tense, ...] = ("past",)
NON_MODAL_TENSES: tuple[Tense, ...] = ("present", "present", "progressive", "past", "past", "perfect")
MODAL_TENSES: tuple[Tense, ...] = (
    *(expressions.CAN, expressions.MUST, expressions.WILL, expressions.WANT) * 2,
    *(expressions.COULD, expressions.SHOULD, expressions.MAY, expressions.WANTED, expressions.HAD_TO),
)
# What may accompany a clause of the same time.
PRESENT_TIME_TENSES: tuple[Tense, ...] = (
    *("present",) * 4,
    "progressive",
    "perfect",
    expressions.CAN,
    expressions.MUST,
    expressions.WANT,
)
PAST_TIME_TENSES: tuple[Tense, ...] = (*("past",) * 4, expressions.COULD, expressions.WANTED, expressions.HAD_TO)


def fit_tense(tense: Tense, verb: Verb, subject: Phrase) -> Tense:
    """Return `tense`, or the nearest that makes sense: nobody "is knowing" or "is finding", no train "wants to".

    Args:
        tense: the tense, or a modal.
        verb: of the clause.
        subject: of the clause.
    """
    if isinstance(tense, Modal) and subject.noun is not None and not subject.noun.tags & {"person", "animal"}:
        tense = "past" if tense.past else expressions.WILL
    if "state" in verb.traits:
        if isinstance(tense, Modal):
            return "past" if tense.past else "present"
        return "past" if tense == "past" else "present"
    if isinstance(tense, Modal) and "accident" in verb.traits:
        return "past" if tense.past else expressions.WILL
    if tense == "progressive" and "moment" in verb.traits:
        return "present"
    if "weather" in verb.traits and isinstance(tense, Modal):
        return "past" if tense.past else expressions.WILL
    return tense


_BE_PRESENT = {FIRST: "am", THIRD: "is", PLURAL_PERSON: "are"}
_HABEN_PRESENT = {FIRST: "habe", THIRD: "hat", PLURAL_PERSON: "haben"}


def inflect_english_verb(verb: Verb, tense: Tense, person: int, with_do: bool) -> tuple[str, str]:
    """Return the part of an English verb that a question puts first, and the rest.

    Args:
        verb: the verb.
        tense: the tense, or a modal.
        person: of the subject.
        with_do: whether do, does, did stand if there is no auxiliary.
    """
    base, third, past, participle, ing = verb.english
    singular = person == THIRD
    if isinstance(tense, Modal):
        if tense.auxiliary:
            return tense.english[0], base
        if with_do:
            return ("did" if tense.past else "does" if singular else "do"), f"{tense.english[0]} {base}"
        return "", f"{tense.english[tense.past or singular]} {base}"
    if tense == "progressive":
        return _BE_PRESENT[person], ing
    if tense == "perfect":
        return ("has" if singular else "have"), participle
    if verb is BE:
        return (_BE_PRESENT[person] if tense == "present" else "were" if person == PLURAL_PERSON else "was"), ""
    if with_do:
        return ("did" if tense == "past" else "does" if singular else "do"), base
    return "", past if tense == "past" else third if singular else base


def inflect_german_verb(verb: Verb, tense: Tense, person: int, negated: bool) -> tuple[str, str, str]:
    """Return the parts of a German verb.

    Args:
        verb: the verb.
        tense: the tense, or a modal.
        person: of the subject.
        negated: whether the clause is negated.

    Returns:
        The finite verb of a main clause, the end of that clause, and all of it at the end of a subordinate clause.
    """
    if isinstance(tense, Modal):
        forms = tense.german_negated if negated and tense.german_negated else tense.german
        infinitive = verb.prefix + verb.infinitive
        return forms[person], infinitive, f"{infinitive} {forms[person]}"
    if tense == "perfect":
        auxiliary = _HABEN_PRESENT[person] if verb.auxiliary == "haben" else BE.present[person]
        return auxiliary, verb.participle, f"{verb.participle} {auxiliary}"
    finite = (verb.past if tense == "past" else verb.present)[person]
    return finite, verb.prefix, verb.prefix + finite


def join_words(*parts: str) -> str:
    return " ".join(filter(None, parts))


@dataclass(slots=True)
class Clause:
    subject: Phrase
    verb: Verb
    tense: Tense
    negated: bool
    complement: Complement
    frequency: BilingualWords = NO_WORDS
    time: BilingualWords = NO_WORDS
    manner: BilingualWords = NO_WORDS
    place: BilingualWords = NO_WORDS
    place_uses: tuple[str, ...] = ()

    @property
    def uses(self) -> tuple[str, ...]:
        """The lexemes of the clause."""
        return (self.verb.lexeme, *self.subject.uses, *self.complement.uses, *self.place_uses)

    def _english_complement_and_adverbs(self) -> tuple[str, str, str, str]:
        return self.complement.english, self.manner.english, self.place.english, self.time.english

    def _german_middle_field(self) -> str:
        nicht = "nicht" if self.negated and not self.complement.negative else ""
        return join_words(
            self.complement.early,
            self.time.german,
            self.frequency.german,
            nicht,
            self.manner.german,
            self.place.german,
            self.complement.late,
        )

    def english(self) -> str:
        """Subject first, as in statements and in subordinate clauses."""
        auxiliary, rest = inflect_english_verb(self.verb, self.tense, self.subject.person, self.negated)
        if self.negated:
            auxiliary = "cannot" if auxiliary == "can" else auxiliary + " not"
        return join_words(
            self.subject.english, auxiliary, self.frequency.english, rest, *self._english_complement_and_adverbs()
        )

    def english_question(self) -> str:
        """Auxiliary first, as in questions."""
        auxiliary, rest = inflect_english_verb(self.verb, self.tense, self.subject.person, True)
        negation = "not" if self.negated else ""
        return join_words(
            auxiliary,
            self.subject.english,
            negation,
            self.frequency.english,
            rest,
            *self._english_complement_and_adverbs(),
        )

    def german(self) -> str:
        """Verb second, the subject first: "der Mann ruft das Kind an"."""
        finite, tail, _ = inflect_german_verb(self.verb, self.tense, self.subject.person, self.negated)
        return join_words(self.subject.german, finite, self._german_middle_field(), tail)

    def german_inverted(self) -> str:
        """Verb first, as in questions and behind a first element: "ruft der Mann das Kind an"."""
        finite, tail, _ = inflect_german_verb(self.verb, self.tense, self.subject.person, self.negated)
        return join_words(finite, self.subject.german, self._german_middle_field(), tail)

    def german_verb_final(self) -> str:
        """Verb last, as in subordinate clauses: "der Mann das Kind anruft"."""
        _, _, final = inflect_german_verb(self.verb, self.tense, self.subject.person, self.negated)
        return join_words(self.subject.german, self._german_middle_field(), final)

    def is_bare_infinitive(self) -> bool:
        """Whether the German infinitive is zu and the verb alone, which takes no comma."""
        return not self._german_middle_field()

    def infinitive(self) -> tuple[str, str]:
        """English and German with "to" and "zu", without the subject: "das Kind anzurufen"."""
        negation = "not" if self.negated else ""
        english = join_words(negation, "to", self.verb.english[0], *self._english_complement_and_adverbs())
        zu = f"{self.verb.prefix}zu{self.verb.infinitive}" if self.verb.prefix else f"zu {self.verb.infinitive}"
        return english, join_words(self._german_middle_field(), zu)


def draw_clause(
    draw: SeededRandom,
    tenses: Sequence[Tense],
    *,
    verbs: Sequence[Verb],
    subject: Phrase | None = None,
    subjects: determiners.DeterminerChoices = determiners.SUBJECT_DETERMINERS,
    negated: bool = False,
    adverbs: bool = True,
    complement: Complement | None = None,
) -> Clause:
    """Draw a clause with one of `verbs`; parts that are given are taken, the rest is drawn.

    Args:
        draw: the random draws.
        tenses: of which one is drawn.
        verbs: of which one is drawn.
        subject: the subject; None: drawn.
        subjects: determiners of a subject that is drawn.
        negated: whether the clause is negated.
        adverbs: whether adverbs may be drawn.
        complement: for clauses whose object stands elsewhere, as in questions and relative clauses; None: drawn.
    """
    verb = draw.choice(verbs)
    if subject is None:
        subject = (
            phrases.IT
            if "weather" in verb.traits
            else subject_phrase(draw, verb.subjects, determiners.DEFINITE_DETERMINERS if negated else subjects)
        )
    if complement is None:
        complement = COMPLEMENTS[verb.frame](draw, verb, subject, negated)
    result = Clause(subject, verb, fit_tense(draw.choice(tenses), verb, subject), negated, complement)
    if adverbs and "state" not in verb.traits:
        _add_adverbs(draw, result)
    return result


def _draw_time(draw: SeededRandom, tense: Tense, negated: bool) -> BilingualWords:
    if isinstance(tense, Modal):
        tense = "past" if tense.past else "coming"
    time = draw.choice(expressions.TIME_ADVERBS_BY_TENSE[tense])
    while negated and time in expressions.POSITIVE_ONLY_TIME_ADVERBS:
        time = draw.choice(expressions.TIME_ADVERBS_BY_TENSE[tense])
    return time


def _add_adverbs(draw: SeededRandom, clause: Clause) -> None:
    traits, tense = clause.verb.traits, clause.tense
    quantified = clause.subject.quantified or clause.complement.quantified
    if tense != "progressive" and not (clause.negated or quantified) and draw.chance(0.22):
        clause.frequency = draw.choice(
            expressions.PERFECT_ADVERBS if tense == "perfect" else expressions.FREQUENCY_ADVERBS
        )
    elif draw.chance(0.28):
        clause.time = _draw_time(draw, tense, clause.negated)
    # "sieht den Hund nicht im Garten" would deny only the place.
    if "place" in traits and not (clause.negated and clause.verb.frame != "none") and draw.chance(0.3):
        clause.place, clause.place_uses = draw_location(draw)
    elif not (clause.negated or clause.frequency.english) and draw.chance(0.3):
        for trait in traits:
            if trait in expressions.MANNER_ADVERBS:
                clause.manner = draw.choice(expressions.MANNER_ADVERBS[trait])


VERBS = lexicon.VERBS + (BE,) * 6
STATEMENT_VERBS = VERBS + lexicon.WEATHER_VERBS
EVENT_VERBS = tuple(verb for verb in lexicon.VERBS if "state" not in verb.traits)
