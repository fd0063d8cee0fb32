"""The built-in corpus: a pure function, disjoint splits, one German for an English sentence, right German."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from tfm.data.errors import DataError
from tfm.data.synthetic import grammar
from tfm.data.synthetic.language import determiners, lexicon, phrases, relative, simple, subordinate
from tfm.data.synthetic.language.german import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE, contract
from tfm.data.synthetic.language.lexicon import Noun
from tfm.data.synthetic.language.phrases import SeededRandom
from tfm.data.synthetic.language.sentence import Sentence

NOUNS = {noun.lexeme: noun for noun in lexicon.NOUNS}
ADJECTIVES = {adjective.lexeme: adjective for adjective in lexicon.ADJECTIVES}
VERBS = {verb.lexeme: verb for verb in (lexicon.BE, *lexicon.VERBS)}
MY = determiners.POSSESSIVE_PRONOUN_DETERMINERS[0]


@pytest.fixture(scope="module")
def train() -> list[Sentence]:
    return list(grammar.generate_sentences("train", 20_000, seed=1))


# ---- Splits -----------------------------------------------------------------------------------------


def test_is_a_pure_function_of_its_arguments_and_a_longer_run_begins_alike() -> None:
    once = list(grammar.generate("valid", 100, seed=1))
    assert list(islice(grammar.generate("valid", 10_000, seed=1), 100)) == once
    assert list(grammar.generate("valid", 100, seed=2)) != once


@pytest.mark.slow
def test_splits_share_no_sentence_and_repeat_none(train: list[Sentence]) -> None:
    seen = {sentence.english for sentence in train}
    assert len(seen) == len(train)
    for split, seed in (("valid", 1), ("test", 2), ("combinations", 3)):
        english = [source for source, _ in grammar.generate(split, 500, seed)]
        assert len(set(english)) == 500
        assert seen.isdisjoint(english), split
        seen.update(english)


def test_refuses_a_split_it_does_not_have() -> None:
    with pytest.raises(DataError, match="no split 'dev'; choose one of train, valid, test, combinations"):
        next(grammar.generate("dev", 1, seed=1))


def test_a_combination_held_out_is_in_every_sentence_of_its_split_and_in_no_other(
    train: list[Sentence],
) -> None:
    assert all(sentence.uses.isdisjoint(grammar.HELD_OUT_LEXEME_CLAUSES) for sentence in train)
    for split in ("valid", "test"):
        assert all(
            s.uses.isdisjoint(grammar.HELD_OUT_LEXEME_CLAUSES) for s in grammar.generate_sentences(split, 300, seed=1)
        )
    assert all(
        s.uses & grammar.HELD_OUT_LEXEME_CLAUSES for s in grammar.generate_sentences("combinations", 300, seed=1)
    )


def test_what_is_held_out_together_is_in_train_apart(train: list[Sentence]) -> None:
    used = [pair for sentence in train for pair in sentence.uses]
    assert {lexeme for lexeme, _ in used} >= {lexeme for lexeme, _ in grammar.HELD_OUT_LEXEME_CLAUSES}
    assert {clause for _, clause in used} == set(grammar.CLAUSE_KINDS)


def test_holds_more_than_a_million_pairs() -> None:
    # n draws collide about n * n / 2 * sum(p * p) times, and no distribution over fewer than a million has a
    # sum of squares below 1e-6. One construction is enough.
    draw, num_draws = SeededRandom("many"), 10_000
    num_different = len({relative.relative_clause_on_subject(draw).english for _ in range(num_draws)})
    assert num_draws - num_different < num_draws**2 / 2 / 1e6


# ---- One German for an English sentence -------------------------------------------------------------


class FewNouns(SeededRandom):
    """Draws from three nouns and names of each kind, so that the same English comes up again and again."""

    def choice(self, options: Sequence[Any]) -> Any:
        return super().choice(options[:3] if isinstance(options[0], Noun | str) else options)


@pytest.mark.slow
def test_an_english_sentence_has_one_german_sentence() -> None:
    draw, known, num_again = FewNouns("function"), dict[str, Sentence](), 0
    for construction, _ in grammar.CONSTRUCTIONS:
        for _ in range(1500):
            sentence = construction(draw)
            num_again += sentence.english in known
            # Equal uses too: they decide the split, and a sentence is in one split only.
            assert known.setdefault(sentence.english, sentence) == sentence
    assert num_again > 2000  # else the assertion above would mean little


def test_sentences_are_written_as_text_is(train: list[Sentence]) -> None:
    for english, german, _ in train:
        for text in (english, german):
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert "  " not in text
            assert " ," not in text
        assert english[-1] == german[-1]


def test_no_lexeme_stands_for_two_words() -> None:
    assert len({*NOUNS, *ADJECTIVES, *VERBS}) == len(lexicon.NOUNS) + len(lexicon.ADJECTIVES) + len(lexicon.VERBS) + 1


def test_past_and_present_of_every_verb_differ_in_english() -> None:
    assert not [verb.lexeme for verb in VERBS.values() if verb.english[2] in verb.english[:2]]


def test_every_subject_that_is_something_has_two_qualities_to_tell_of() -> None:
    for noun in lexicon.BE.subjects:  # else "the old letter is ..." could not be ended
        assert len({adjective.quality for adjective in phrases.ADJECTIVES_BY_NOUN[noun]}) > 1, noun.lexeme


# ---- Agreement --------------------------------------------------------------------------------------

N, A, D, G = NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE


@pytest.mark.parametrize(
    ("determiner", "adjective", "noun", "plural", "case", "german"),
    [
        (determiners.THE, "old", "dog", False, N, "der alte Hund"),
        (determiners.THE, "old", "dog", False, A, "den alten Hund"),
        (determiners.THE, "old", "dog", False, D, "dem alten Hund"),
        (determiners.THE, "old", "man", False, G, "des alten Mannes"),
        (determiners.THE, "old", "cat", False, A, "die alte Katze"),
        (determiners.THE, "old", "cat", False, D, "der alten Katze"),
        (determiners.THE, "old", "house", False, A, "das alte Haus"),
        (determiners.THE, "old", "house", False, D, "dem alten Haus"),
        (determiners.THE, "old", "house", True, N, "die alten Häuser"),
        (determiners.THE, "old", "house", True, D, "den alten Häusern"),
        (determiners.A, "old", "dog", False, N, "ein alter Hund"),
        (determiners.A, "old", "dog", False, A, "einen alten Hund"),
        (determiners.A, "old", "dog", False, D, "einem alten Hund"),
        (determiners.A, "old", "cat", False, A, "eine alte Katze"),
        (determiners.A, "old", "cat", False, D, "einer alten Katze"),
        (determiners.A, "old", "house", False, A, "ein altes Haus"),
        (determiners.NOT_A, "old", "house", False, A, "kein altes Haus"),
        (determiners.NOT_A, "old", "house", True, A, "keine alten Häuser"),
        (determiners.EMPTY_DETERMINER, "old", "dog", True, A, "alte Hunde"),
        (determiners.EMPTY_DETERMINER, "old", "dog", True, D, "alten Hunden"),
        (determiners.NUMBERS[1], "old", "car", True, D, "drei alten Autos"),
        (determiners.THE_NUMBERS[1], "old", "car", True, N, "die drei alten Autos"),
        (determiners.MANY, "old", "dog", True, N, "viele alte Hunde"),
        (determiners.ALL, "old", "dog", True, N, "alle alten Hunde"),
        (determiners.EVERY, "old", "house", False, N, "jedes alte Haus"),
        (determiners.THIS, "expensive", "book", False, N, "dieses teure Buch"),
        (MY, "expensive", "book", False, N, "mein teures Buch"),
        (MY, "tired", "brother", False, D, "meinem müden Bruder"),
        (determiners.WHICH, None, "boy", False, A, "welchen Jungen"),
        (determiners.THE, None, "student", False, A, "den Studenten"),
        (determiners.THE, None, "student", False, N, "der Student"),
        (determiners.THE, None, "neighbor", False, G, "des Nachbarn"),
        (determiners.THE, None, "queen", True, D, "den Königinnen"),
    ],
)
def test_articles_and_adjectives_agree(
    determiner: determiners.Determiner, adjective: str | None, noun: str, plural: bool, case: int, german: str
) -> None:
    quality = ADJECTIVES[adjective] if adjective else None
    assert phrases.inflect_noun_phrase(NOUNS[noun], determiner, case, plural, quality).german == german


def test_english_a_becomes_an_before_a_vowel() -> None:
    assert phrases.inflect_noun_phrase(NOUNS["apple"], determiners.A, N).english == "an apple"
    assert (
        phrases.inflect_noun_phrase(NOUNS["apple"], determiners.A, N, adjective=ADJECTIVES["small"]).english
        == "a small apple"
    )
    assert (
        phrases.inflect_noun_phrase(NOUNS["dog"], determiners.A, N, adjective=ADJECTIVES["old"]).english == "an old dog"
    )


@pytest.mark.parametrize(
    ("lexeme", "present", "past", "participle", "auxiliary"),
    [
        ("buy", "kaufe kauft kaufen", "kaufte kaufte kauften", "gekauft", "haben"),
        ("work", "arbeite arbeitet arbeiten", "arbeitete arbeitete arbeiteten", "gearbeitet", "haben"),
        ("see", "sehe sieht sehen", "sah sah sahen", "gesehen", "haben"),
        ("call", "rufe ruft rufen", "rief rief riefen", "angerufen", "haben"),
        ("open", "mache macht machen", "machte machte machten", "aufgemacht", "haben"),
        ("visit", "besuche besucht besuchen", "besuchte besuchte besuchten", "besucht", "haben"),
        ("know", "kenne kennt kennen", "kannte kannte kannten", "gekannt", "haben"),
        ("go", "gehe geht gehen", "ging ging gingen", "gegangen", "sein"),
        ("be", "bin ist sind", "war war waren", "gewesen", "sein"),
    ],
)
def test_weak_strong_and_separable_verbs(lexeme: str, present: str, past: str, participle: str, auxiliary: str) -> None:
    verb = VERBS[lexeme]
    forms = " ".join(verb.present), " ".join(verb.past), verb.participle, verb.auxiliary
    assert forms == (present, past, participle, auxiliary)


@pytest.mark.parametrize(
    ("lexeme", "english"),
    [
        ("carry", "carry carries carried carried carrying"),
        ("write", "write writes wrote written writing"),
        ("lie", "lie lies lay lain lying"),
        ("see", "see sees saw seen seeing"),
        ("run", "run runs ran run running"),
        ("have", "have has had had having"),
    ],
)
def test_english_verbs(lexeme: str, english: str) -> None:
    assert " ".join(VERBS[lexeme].english) == english


def test_a_preposition_melts_into_the_article_only() -> None:
    assert contract("in", "dem alten Garten") == "im alten Garten"
    assert contract("in", "das Haus") == "ins Haus"
    assert contract("zu", "der Schule") == "zur Schule"
    assert contract("zu", "dem Markt") == "zum Markt"
    assert contract("in", "diesem Garten") == "in diesem Garten"
    assert contract("auf", "dem Markt") == "auf dem Markt"
    assert contract("auf", "ihn") == "auf ihn"


# ---- One sentence of each construction, read by a German --------------------------------------------

READ = [
    (
        *(simple.statement, 3),
        "This queen has invited the sick farmer today.",
        "Diese Königin hat den kranken Bauern heute eingeladen.",
    ),
    (
        *(simple.negated_statement, 2),
        "The sad father did not listen to Peter at five o'clock.",
        "Der traurige Vater hörte Peter um fünf Uhr nicht zu.",
    ),
    (
        *(simple.modal_statement, 3),
        "This queen had to invite the sick farmer at nine o'clock.",
        "Diese Königin musste den kranken Bauern um neun Uhr einladen.",
    ),
    (
        *(simple.fronted_statement, 2),
        "Now the horse is looking at them.",
        "Jetzt sieht das Pferd sie an.",
    ),
    (
        *(simple.yes_no_question, 3),
        "Did this queen have to close the blue box at nine o'clock?",
        "Musste diese Königin die blaue Kiste um neun Uhr zumachen?",
    ),
    (
        *(simple.subject_question, 1),
        "Who drives into this quiet city?",
        "Wer fährt in diese ruhige Stadt?",
    ),
    (
        *(simple.object_question, 2),
        "Whom are the doctors inviting now?",
        "Wen laden die Ärzte jetzt ein?",
    ),
    (
        *(simple.place_question, 4),
        "Where do the old farmers drive?",
        "Wohin fahren die alten Bauern?",
    ),
    (
        *(simple.time_question, 3),
        "When did this queen forget the red hat?",
        "Wann vergaß diese Königin den roten Hut?",
    ),
    (
        *(simple.reason_question, 3),
        "Why must the farmer bring Paul eleven sweet pears at four o'clock?",
        "Warum muss der Bauer Paul um vier Uhr elf süße Birnen bringen?",
    ),
    (
        *(simple.quality_statement, 3),
        "These bottles were red.",
        "Diese Flaschen waren rot.",
    ),
    (
        *(simple.comparison, 4),
        "This letter is not as new as the book.",
        "Dieser Brief ist nicht so neu wie das Buch.",
    ),
    (
        *(simple.existence_statement, 4),
        "There were five old cats in the house.",
        "Im Haus waren fünf alte Katzen.",
    ),
    (
        *(simple.age_statement, 2),
        "The sad sister is fifty-one years old.",
        "Die traurige Schwester ist einundfünfzig Jahre alt.",
    ),
    (
        *(simple.price_statement, 1),
        "These beautiful boxes cost sixty-seven euros.",
        "Diese schönen Kisten kosten siebenundsechzig Euro.",
    ),
    (
        *(relative.relative_clause_on_subject, 3),
        "The queen with whom the artist has played is opening every window.",
        "Die Königin, mit der der Künstler gespielt hat, macht jedes Fenster auf.",
    ),
    (
        *(relative.relative_clause_on_object, 1),
        "I have listened to a hungry artist who is famous.",
        "Ich habe einem hungrigen Künstler zugehört, der berühmt ist.",
    ),
    (
        *(subordinate.trailing_subordinate_clause, 1),
        "The lion looked at a man before the father arrived.",
        "Der Löwe sah einen Mann an, bevor der Vater ankam.",
    ),
    (
        *(subordinate.leading_subordinate_clause, 3),
        "If these balls lie next to the heavy bed, the queen will open this bag.",
        "Wenn diese Bälle neben dem schweren Bett liegen, wird die Königin diese Tasche aufmachen.",
    ),
    (
        *(subordinate.that_clause, 3),
        "The farmer hopes that the baker cannot shop at four o'clock.",
        "Der Bauer hofft, dass der Bäcker um vier Uhr nicht einkaufen kann.",
    ),
    (
        *(subordinate.infinitive_sentence, 4),
        "The old farmers do not plan to call the artists.",
        "Die alten Bauern planen nicht, die Künstler anzurufen.",
    ),
    (
        *(subordinate.purpose_sentence, 4),
        "A man can run into the church in order to borrow the green car.",
        "Ein Mann kann in die Kirche laufen, um das grüne Auto auszuleihen.",
    ),
    (
        *(subordinate.coordination, 4),
        "A letter is new, but the artist does not invite the child.",
        "Ein Brief ist neu, aber der Künstler lädt das Kind nicht ein.",
    ),
]


@pytest.mark.parametrize(("construction", "number", "english", "german"), READ, ids=[row[0].__name__ for row in READ])
def test_a_sentence_of_each_construction(
    construction: grammar.Construction, number: int, english: str, german: str
) -> None:
    sentence = construction(SeededRandom(f"golden {number}"))
    assert (sentence.english, sentence.german) == (english, german)


def test_every_construction_has_been_read() -> None:
    assert {row[0] for row in READ} == {construction for construction, _ in grammar.CONSTRUCTIONS}
