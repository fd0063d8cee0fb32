"""The built-in corpus `languages`: a pure function; each sentence has one translation; agreement, read by a reader."""

from itertools import islice
from pathlib import Path
from unicodedata import normalize

import pytest
from pydantic import ValidationError

from tfm.data.corpora.sources import content_fingerprints, describe_corpus, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.built_in_corpora import BUILT_IN_LANGUAGES
from tfm.data.errors import DataError
from tfm.data.synthetic import languages
from tfm.data.synthetic.language import lexicon
from tfm.data.synthetic.language.lexicon import Adjective, Noun, Verb
from tfm.data.synthetic.meaning import hindi, hindi_lexicon
from tfm.data.synthetic.meaning.meaning import Clause, Meaning, NounPhraseMeaning
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe

NOUNS: dict[str, Noun] = {noun.lexeme: noun for noun in lexicon.NOUNS}
ADJECTIVES: dict[str, Adjective] = {word.lexeme: word for word in lexicon.ADJECTIVES}
VERBS: dict[str, Verb] = {verb.lexeme: verb for verb in (*lexicon.TELLING_VERBS, *reversed(lexicon.VERBS))}


@pytest.fixture(scope="module")
def train() -> list[Meaning]:
    return list(languages.generate_meanings("train", 3000, seed=1))


def the(noun: str, plural: bool = False, adjective: str | None = None) -> NounPhraseMeaning:
    return NounPhraseMeaning(NOUNS[noun], "the", plural, ADJECTIVES[adjective] if adjective else None)


def corpus(**given: object) -> CorpusConfig:
    usual = {"format": "generated", "path": "languages", "split": "test", "size": 20, "source": "eng", "target": "hin"}
    return CorpusConfig.model_validate(usual | given)


def test_is_a_pure_function_of_its_arguments_and_a_longer_run_begins_alike() -> None:
    once = list(languages.generate("valid", 50, 1, source="deu", target="hin"))
    assert list(islice(languages.generate("valid", 999, 1, source="deu", target="hin"), 50)) == once
    assert list(languages.generate("valid", 50, 2, source="deu", target="hin")) != once


def test_every_sentence_has_one_translation_in_each_other_language(train: list[Meaning]) -> None:
    said = [tuple(say(meaning) for say in languages.SENTENCE_REALIZERS.values()) for meaning in train]
    for column in range(len(languages.SENTENCE_REALIZERS)):
        assert len({row[column] for row in said}) == len(said)


def test_the_columns_are_the_languages_and_pairs_are_of_the_same_meaning() -> None:
    assert tuple(languages.SENTENCE_REALIZERS) == BUILT_IN_LANGUAGES
    to_hindi, to_german = (list(read_pairs(corpus(target=target))) for target in ("hin", "deu"))
    between = list(read_pairs(corpus(source="deu", target="hin")))
    assert [english for english, _ in to_hindi] == [english for english, _ in to_german]
    assert between == [(deu, hin) for (_, deu), (_, hin) in zip(to_german, to_hindi, strict=True)]
    assert [*read_pairs(corpus(source=None))] == [("", hin) for _, hin in between]


def test_a_direction_is_part_of_what_a_corpus_is() -> None:
    one, other = corpus(), corpus(target="deu")
    assert describe_corpus(one) == "languages test 20 pairs eng to hin"
    assert content_fingerprints(one) != content_fingerprints(other)


def test_a_recipe_may_name_its_columns_and_no_other_built_in_corpus(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    row = '{ format = "generated", path = "PATH", split = "train", size = 9, source = "deu", target = "hin" }'
    file.write_text(f"[data]\ntrain = {row.replace('PATH', 'languages')}\n")
    assert load_recipe(file).data.train[0].target == "hin"
    file.write_text(f"[data]\ntrain = {row.replace('PATH', 'grammar')}\n")
    with pytest.raises(RecipeError, match="a built-in corpus has no columns"):
        load_recipe(file)


def test_refuses_a_language_or_a_split_that_it_does_not_have() -> None:
    with pytest.raises(ValidationError, match='`target` of the built-in corpus "languages" is one of eng, deu, hin'):
        corpus(target="target")
    with pytest.raises(DataError, match="has no split 'dev'; choose one of train, valid, test, combinations"):
        next(languages.generate_meanings("dev", 1, 1))


def test_splits_share_no_sentence_and_hold_out_verbs_with_objects(train: list[Meaning]) -> None:
    seen = {languages.SENTENCE_REALIZERS["eng"](meaning) for meaning in train}
    for split in ("valid", "test", "combinations"):
        found = list(languages.generate_meanings(split, 80, 1))
        assert seen.isdisjoint(languages.SENTENCE_REALIZERS["eng"](meaning) for meaning in found)
        held_out = [any(languages.is_held_out(*pair) for pair in meaning.verb_object_pairs) for meaning in found]
        assert all(held_out) if split == "combinations" else not any(held_out)
    used = {pair for meaning in train for pair in meaning.verb_object_pairs}
    apart = [
        pair for meaning in languages.generate_meanings("combinations", 80, 1) for pair in meaning.verb_object_pairs
    ]
    held = [pair for pair in apart if languages.is_held_out(*pair)]
    assert held
    assert used.isdisjoint(held)
    assert {verb for verb, _ in held} <= {verb for verb, _ in used}


def test_hindi_is_in_normal_form_and_in_one_script(train: list[Meaning]) -> None:
    for meaning in train[:500]:
        text = hindi.realize_sentence(meaning)
        assert normalize("NFC", text) == text
        assert all(character in " ?।" or "\u0900" <= character <= "\u097f" for character in text), text
        assert "  " not in text


READ = [
    # the verb agrees with its subject; a living object has को and the oblique form
    (
        Meaning("statement", Clause(the("queen"), "present", VERBS["see"], None, the("dog", False, "small"))),
        ("The queen sees the small dog.", "Die Königin sieht den kleinen Hund.", "रानी छोटे कुत्ते को देखती है।"),
    ),
    # in the past the subject has ने and the verb agrees with the object, which is feminine and plural
    (
        Meaning(
            "statement", Clause(the("boy"), "past", VERBS["buy"], None, NounPhraseMeaning(NOUNS["book"], "two", True))
        ),
        ("The boy bought two books.", "Der Junge kaufte zwei Bücher.", "लड़के ने दो किताबें ख़रीदीं।"),
    ),
    # ... or, where the object has को, with nothing
    (
        Meaning("statement", Clause("Anna", "past", VERBS["call"], None, the("girl"))),
        ("Anna called the girl.", "Anna rief das Mädchen an.", "अन्ना ने लड़की को बुलाया।"),
    ),
    # a verb without an object has no ने, and agrees with its subject
    (
        Meaning("fronted", Clause(the("cat", True), "past", VERBS["sleep"], None, None, False, "today", the("garden"))),
        ("Today the cats slept in the garden.", "Heute schliefen die Katzen im Garten.", "आज बिल्लियाँ बाग़ में सोईं।"),
    ),
    (
        Meaning("question", Clause(the("teacher"), "want", VERBS["open"], None, the("door"), True)),
        (
            "Does the teacher not want to open the door?",
            "Will der Lehrer die Tür nicht aufmachen?",
            "क्या अध्यापक दरवाज़ा खोलना नहीं चाहता है?",
        ),
    ),
    (
        Meaning(
            "because",
            Clause("I", "will", VERBS["wake up"], None, None, False, "now"),
            Clause(the("horse", True), "present", None, ADJECTIVES["tired"]),
        ),
        (
            "I will wake up now because the horses are tired.",
            "Ich werde jetzt aufwachen, weil die Pferde müde sind.",
            "मैं अब जागूँगा क्योंकि घोड़े थके हुए हैं।",
        ),
    ),
    (
        Meaning(
            "that",
            Clause("we", "past", VERBS["say"]),
            Clause(
                the("sister"),
                "can",
                VERBS["carry"],
                None,
                NounPhraseMeaning(NOUNS["table"], "my", False, ADJECTIVES["new"]),
            ),
        ),
        (
            "We said that the sister can carry my new table.",
            "Wir sagten, dass die Schwester meinen neuen Tisch tragen kann.",
            "हमने कहा कि बहन मेरी नई मेज़ उठा सकती है।",
        ),
    ),
]


@pytest.mark.parametrize(("meaning", "said"), READ)
def test_says_what_a_speaker_of_each_language_says(meaning: Meaning, said: tuple[str, str, str]) -> None:
    english, german, in_hindi = said
    found = [say(meaning) for say in languages.SENTENCE_REALIZERS.values()]
    assert found == [english, german, normalize("NFC", in_hindi)]


@pytest.mark.parametrize(
    ("word", "gender", "forms"),
    [
        ("कुत्ता", "m", "कुत्ता कुत्ते कुत्ते कुत्तों"),
        ("घर", "m", "घर घर घर घरों"),
        ("आदमी", "m", "आदमी आदमी आदमी आदमियों"),
        ("भालू", "m", "भालू भालू भालू भालुओं"),
        ("=राजा", "m", "राजा राजा राजा राजाओं"),
        ("भाई", "m", "भाई भाई भाई भाइयों"),
        ("रानी", "f", "रानी रानी रानियाँ रानियों"),
        ("चिड़िया", "f", "चिड़िया चिड़िया चिड़ियाँ चिड़ियों"),
        ("किताब", "f", "किताब किताब किताबें किताबों"),
        ("रसोई", "f", "रसोई रसोई रसोइयाँ रसोइयों"),
    ],
)
def test_hindi_nouns(word: str, gender: str, forms: str) -> None:
    assert " ".join(form for row in hindi_lexicon.noun_forms(word, gender) for form in row) == forms
