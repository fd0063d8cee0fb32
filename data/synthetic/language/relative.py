"""Relative clauses: the German verb is last, the pronoun agrees with its noun and has its own case."""

from collections.abc import Callable, Sequence

from tfm.data.synthetic.language import determiners, lexicon, phrases
from tfm.data.synthetic.language.clauses import VERBS, Clause, Tense, draw_clause
from tfm.data.synthetic.language.complements import Complement
from tfm.data.synthetic.language.determiners import Determiner
from tfm.data.synthetic.language.expressions import CAN, MUST, WANT, WILL, BilingualWords
from tfm.data.synthetic.language.german import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    RELATIVE_PRONOUN,
    STRONG_ENDINGS,
    make_indeclinable_table,
)
from tfm.data.synthetic.language.lexicon import Noun, Verb
from tfm.data.synthetic.language.phrases import Phrase, SeededRandom, inflect_noun_phrase, noun_phrase
from tfm.data.synthetic.language.sentence import Sentence, make_sentence

_TENSES: tuple[Tense, ...] = (*("present", "past") * 4, "progressive", "perfect", "perfect", CAN, MUST, WANT, WILL)
RelativeClauseLexemes = tuple[tuple[Sequence[str], str], ...]


def _verbs_by_noun(verbs: Sequence[Verb], role: Callable[[Verb], Sequence[Noun]]) -> dict[Noun, tuple[Verb, ...]]:
    return {noun: tuple(verb for verb in verbs if noun in role(verb)) for noun in lexicon.NOUNS}


_VERBS_BY_SUBJECT = _verbs_by_noun(VERBS, lambda verb: verb.subjects)
_VERBS_BY_OBJECT = _verbs_by_noun([v for v in VERBS if v.frame in ("object", "dative")], lambda verb: verb.objects)
_VERBS_BY_PREPOSITIONAL_OBJECT = _verbs_by_noun(
    [v for v in VERBS if v.frame == "preposition"], lambda verb: verb.objects
)
_TRANSITIVE_VERBS = tuple(verb for verb in VERBS if verb.frame in ("object", "dative"))
_OWNED_NOUNS = lexicon.nouns_with_tags("relation pet")


def _is_person(head: Phrase) -> bool:
    return head.noun is not None and "person" in head.noun.tags


def _relative_pronoun(head: Phrase, case: int) -> str:
    return RELATIVE_PRONOUN[head.gender][case]


def _draw_subject_relative_clause(
    draw: SeededRandom, head: Phrase, noun: Noun
) -> tuple[BilingualWords, RelativeClauseLexemes]:
    """Draw a relative clause: "the man who buys the book" - "der Mann, der das Buch kauft"."""
    pronoun = head._replace(english="who" if _is_person(head) else "that", german=_relative_pronoun(head, NOMINATIVE))
    clause = draw_clause(draw, _TENSES, verbs=_VERBS_BY_SUBJECT[noun], subject=pronoun)
    return BilingualWords(clause.english(), clause.german_verb_final()), ((clause.uses, "subject relative"),)


def _draw_different_subject(draw: SeededRandom, verb: Verb, head: Phrase) -> Phrase:
    while True:
        subject = phrases.subject_phrase(draw, verb.subjects, determiners.DEFINITE_DETERMINERS)
        if not any(lexeme in head.uses for lexeme in subject.uses):
            return subject


def _draw_object_relative_clause(
    draw: SeededRandom, head: Phrase, noun: Noun
) -> tuple[BilingualWords, RelativeClauseLexemes]:
    """Draw a relative clause: "the book that the woman buys" - "das Buch, das die Frau kauft".

    With a dative: "whom the woman helps" - "dem ...".
    """
    verb = draw.choice(_VERBS_BY_OBJECT[noun])
    clause = draw_clause(
        draw, _TENSES, verbs=(verb,), subject=_draw_different_subject(draw, verb, head), complement=Complement()
    )
    english = "whom" if _is_person(head) else "that"
    german = _relative_pronoun(head, DATIVE if verb.frame == "dative" else ACCUSATIVE)
    return (
        BilingualWords(f"{english} {clause.english()}", f"{german} {clause.german_verb_final()}"),
        ((clause.uses + head.uses, "object relative"),),
    )


def _draw_prepositional_relative_clause(
    draw: SeededRandom, head: Phrase, noun: Noun
) -> tuple[BilingualWords, RelativeClauseLexemes]:
    """Draw a relative clause: "the man for whom the woman waits" - "der Mann, auf den die Frau wartet"."""
    verb = draw.choice(_VERBS_BY_PREPOSITIONAL_OBJECT[noun])
    assert verb.preposition is not None
    english, german, case = verb.preposition
    clause = draw_clause(
        draw, _TENSES, verbs=(verb,), subject=_draw_different_subject(draw, verb, head), complement=Complement()
    )
    relative_pronoun = "whom" if _is_person(head) else "which"
    return (
        BilingualWords(
            f"{english} {relative_pronoun} {clause.english()}",
            f"{german} {_relative_pronoun(head, case)} {clause.german_verb_final()}",
        ),
        ((clause.uses + head.uses, "prepositional relative"),),
    )


def _draw_genitive_relative_clause(
    draw: SeededRandom, head: Phrase, noun: Noun
) -> tuple[BilingualWords, RelativeClauseLexemes]:
    """Draw a relative clause: "the man whose dog sleeps" - "der Mann, dessen Hund schläft"."""
    owned = draw.choice(_OWNED_NOUNS)
    while owned is noun:
        owned = draw.choice(_OWNED_NOUNS)
    relative_determiner = Determiner(
        ("whose", "whose"), make_indeclinable_table(_relative_pronoun(head, GENITIVE)), STRONG_ENDINGS
    )
    subject = inflect_noun_phrase(
        owned, relative_determiner, NOMINATIVE, plural="one" not in owned.tags and draw.chance(0.3)
    )
    subject = subject._replace(uses=subject.uses + head.uses)
    clause = draw_clause(draw, _TENSES, verbs=_VERBS_BY_SUBJECT[owned], subject=subject)
    return BilingualWords(clause.english(), clause.german_verb_final()), ((clause.uses, "genitive relative"),)


def draw_relative_clause(draw: SeededRandom, head: Phrase) -> tuple[BilingualWords, RelativeClauseLexemes]:
    """Draw a relative clause about `head`, without commas, and its lexemes."""
    assert head.noun is not None
    kinds = [_draw_subject_relative_clause, _draw_subject_relative_clause] if _VERBS_BY_SUBJECT[head.noun] else []
    if _VERBS_BY_OBJECT[head.noun]:
        kinds += [_draw_object_relative_clause, _draw_object_relative_clause]
    if _VERBS_BY_PREPOSITIONAL_OBJECT[head.noun]:
        kinds.append(_draw_prepositional_relative_clause)
    if _is_person(head):
        kinds.append(_draw_genitive_relative_clause)
    return draw.choice(kinds)(draw, head, head.noun)


def _repeats_words(main: Clause, head: Phrase, uses: RelativeClauseLexemes) -> bool:
    """Whether `main` names again what the relative clause about `head` has named."""
    return any(lexeme in main.uses and lexeme not in head.uses for lexemes, _ in uses for lexeme in lexemes)


def relative_clause_on_subject(draw: SeededRandom) -> Sentence:
    """Draw a sentence with a relative clause about its subject.

    Example: "The man who works in the garden sees the dog." - "Der Mann, der im Garten arbeitet, sieht den Hund."
    """
    verb = draw.choice(VERBS)
    head = noun_phrase(
        draw, draw.choice(verb.subjects), NOMINATIVE, determiners.HEAD_DETERMINERS, adjective_probability=0.15
    )
    inner, uses = draw_relative_clause(draw, head)
    subject = head._replace(english=f"{head.english} {inner.english}", german=f"{head.german}, {inner.german},")
    main = draw_clause(draw, _TENSES, verbs=(verb,), subject=subject, adverbs=False)
    if _repeats_words(main, head, uses):
        return relative_clause_on_subject(draw)
    return make_sentence(".", main.english(), main.german(), (main.uses, "statement"), *uses)


def relative_clause_on_object(draw: SeededRandom) -> Sentence:
    """Draw a sentence with a relative clause about its object.

    Example: "The man has seen the dog that sleeps." - "Der Mann hat den Hund gesehen, der schläft."
    """
    verb = draw.choice(_TRANSITIVE_VERBS)
    case = DATIVE if verb.frame == "dative" else ACCUSATIVE
    head = noun_phrase(draw, draw.choice(verb.objects), case, determiners.HEAD_DETERMINERS, adjective_probability=0.15)
    inner, uses = draw_relative_clause(draw, head)
    complement = Complement(head.english, late=head.german, uses=head.uses)
    main = draw_clause(
        draw,
        _TENSES,
        verbs=(verb,),
        subject=_draw_different_subject(draw, verb, head),
        complement=complement,
        adverbs=False,
    )
    if _repeats_words(main, head, uses):
        return relative_clause_on_object(draw)
    return make_sentence(
        ".", f"{main.english()} {inner.english}", f"{main.german()}, {inner.german}", (main.uses, "statement"), *uses
    )
