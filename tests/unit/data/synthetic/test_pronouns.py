"""The corpus `it`: the pronoun agrees with the noun that the reason is about, read off the text by a plain reader; the
splits share neither sentences nor, where they promise it, pairs of nouns."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.built_in_corpora import GENERATOR_PARAMETERS
from tfm.data.errors import DataError
from tfm.data.synthetic import pronouns, registry
from tfm.data.synthetic.language.phrases import SeededRandom
from tfm.data.synthetic.pronouns import (
    SCENARIOS,
    SPLITS,
    ContrastExample,
    generate,
    generate_examples,
    is_held_out,
    parse_example,
)

ENGLISH = re.compile(r"\w+ (\w+) \w+ \w+ (\w+)( [\w ]+)? because it (is|was) (?:(?:very|so|quite) )?(\w+)\.")
GERMAN = re.compile(
    r"(\w+) (\w+) \w+ (\w+) (\w+)(?: [\w ]+)?, weil (er|sie|es) (?:(?:sehr|so|ziemlich) )?\w+ (ist|war)\."
)
# the genders that what stands before a noun leaves open, as pronouns
SUBJECT = {"er": ("er",), "e": ("sie",), "es": ("es",), "": ("er", "es")}  # dieser, diese, dieses, mein
OBJECT = {"en": ("er",), "e": ("sie",), "es": ("es",), "": ("es",)}  # diesen, diese, dieses, mein
ARTICLES = {"Der": ("er",), "Die": ("sie",), "Das": ("es",), "den": ("er",), "die": ("sie",), "das": ("es",)}
STEM = re.compile("(?:[DdMm]|)(?:ies|ein|unser)", re.IGNORECASE)


READ = [
    (
        "The donkey chased the cat because it was very weak.",
        *("Der Esel jagte die Katze, weil ", "sie", " sehr schwach war."),
    ),
    (
        "A carriage replaces the train behind the church because it is very broken.",
        *("Eine Kutsche ersetzt den Zug hinter der Kirche, weil ", "er", " sehr kaputt ist."),
    ),
    (
        "The mouse swallowed an egg under the bridge because it was delicious.",
        *("Die Maus verschluckte ein Ei unter der Brücke, weil ", "es", " köstlich war."),
    ),
    (
        "My sword scratched the window in the kitchen because it was brittle.",
        *("Mein Schwert zerkratzte das Fenster in der Küche, weil ", "es", " spröde war."),
    ),
    (
        "The stone breaks our plate because it is so heavy.",
        *("Der Stein zerbricht unseren Teller, weil ", "er", " so schwer ist."),
    ),
]


@pytest.fixture(scope="module")
def train() -> list[ContrastExample]:
    return list(generate_examples("train", 20_000, seed=1))


@pytest.mark.parametrize(("english", "before", "pronoun", "after"), READ, ids=[pronoun for _, _, pronoun, _ in READ])
def test_sentences_as_a_german_reads_them(english: str, before: str, pronoun: str, after: str) -> None:
    found = {example.english: example for example in generate_examples("test", 20, seed=1)}[english]
    assert found.german == f"{before}{pronoun}{after}"
    assert {*found.wrong} == {f"{before}{other}{after}" for other in {"er", "sie", "es"} - {pronoun}}


def _genders(before: str, endings: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return ARTICLES[before] if before in ARTICLES else endings[STEM.sub("", before, count=1)]


def test_the_pronoun_has_the_gender_that_german_articles_give_the_noun_that_the_reason_is_about(
    train: list[ContrastExample],
) -> None:
    """The genders are read off the German texts alone, whatever the tables say."""
    left: dict[str, set[str]] = {}
    asked: list[tuple[str, str]] = []
    about = {reason: role for scene in SCENARIOS for role, reasons in scene.reasons.items() for reason, _ in reasons}
    for example in train:
        said, told = ENGLISH.fullmatch(example.english), GERMAN.fullmatch(example.german)
        assert said is not None, example.english
        assert told is not None, example.german
        before, subject, before_object, object_, pronoun, be = told.groups()
        for noun, open_ in ((subject, _genders(before, SUBJECT)), (object_, _genders(before_object, OBJECT))):
            left[noun] = left.get(noun, {"er", "sie", "es"}) & {*open_}
        asked.append((subject if about[said[5]] == "subject" else object_, pronoun))
        assert be == {"is": "ist", "was": "war"}[said[4]]
        assert (example.subject, example.object, example.antecedent) == (said[1], said[2], about[said[5]])
    assert all(left[noun] == {pronoun} for noun, pronoun in asked)
    assert {len(genders) for genders in left.values()} == {1}


def test_wrong_translations_differ_from_the_right_one_in_the_pronoun_alone(train: list[ContrastExample]) -> None:
    for example in train[:2000]:
        texts = (example.german, *example.wrong)
        assert len({re.sub(", weil (er|sie|es) ", ", weil _ ", text) for text in texts}) == 1
        assert {re.search(", weil (er|sie|es) ", text)[1] for text in texts} == {"er", "sie", "es"}  # type: ignore[index]


def test_a_reason_is_of_the_subject_or_of_the_object_everywhere() -> None:
    of = {role: {word for scene in SCENARIOS for word, _ in scene.reasons[role]} for role in ("subject", "object")}
    assert of["subject"].isdisjoint(of["object"])


def test_neither_role_nor_gender_is_the_better_guess(train: list[ContrastExample]) -> None:
    roles = Counter(example.antecedent for example in train)
    said = Counter(GERMAN.fullmatch(example.german)[5] for example in train)  # type: ignore[index]
    assert min(roles.values()) > 0.48 * len(train)
    assert min(said.values()) > 0.31 * len(train)
    assert min(Counter(example.category for example in train).values()) > 0.3 * len(train)


def test_is_a_pure_function_of_its_arguments_and_a_longer_run_begins_alike() -> None:
    once = list(generate("valid", 100, seed=1))
    assert list(islice(generate("valid", 10_000, seed=1), 100)) == once
    assert list(generate("valid", 100, seed=2)) != once


def test_splits_share_no_sentence_and_repeat_none(train: list[ContrastExample]) -> None:
    seen = {example.english for example in train}
    assert len(seen) == len(train)
    for number, split in enumerate(SPLITS[1:], 2):
        english = [source for source, _ in generate(split, 1000, number)]
        assert len(set(english)) == 1000
        assert seen.isdisjoint(english), split
        seen.update(english)


def test_nouns_that_are_held_out_together_are_together_in_their_split_alone(train: list[ContrastExample]) -> None:
    together = {frozenset((example.subject, example.object)) for example in train}
    apart = {noun for pair in together for noun in pair}
    for example in generate_examples("combinations", 1000, 1):
        pair = frozenset((example.subject, example.object))
        assert pair not in together
        assert pair <= apart
    for split in ("train", "valid", "test"):
        assert not any(is_held_out(each.object, each.subject) for each in generate_examples(split, 1000, 1))


class Few(SeededRandom):
    """Draws from few words of each kind, so that the same English comes up again and again."""

    def choice(self, options: Sequence[Any]) -> Any:
        return super().choice(options[-2:])


def test_an_english_sentence_has_one_german_sentence() -> None:
    draw, known = Few("function"), dict[str, ContrastExample]()
    for _ in range(10_000):
        example = pronouns._draw_example(draw)
        assert known.setdefault(example.english, example) == example
    assert len(known) < 8000  # else the assertion above would mean little


def test_words_depend_on_the_noun_that_it_stands_for(train: list[ContrastExample]) -> None:
    parse_tag: dict[str, set[str]] = {}
    for example in train[:3000]:
        words = parse_example(example)
        assert " ".join(word.text for word in words) == example.english
        nouns = {"subject": example.subject, "object": example.object}
        asking = [word for word in words if word.governor is not None]
        assert [word.relation for word in asking] == ["because", "it", "be", "reason"]
        assert [word.text for word in asking][:2] == ["because", "it"]
        assert {words[word.governor].text for word in asking if word.governor is not None} == {
            nouns[example.antecedent]
        }
        for word in words:
            parse_tag.setdefault(word.text.lower().strip("."), set()).add(word.tag)
    of_two = {word: tags for word, tags in parse_tag.items() if len(tags) > 1}
    assert of_two == {"damaged": {"VERB", "ADJ"}, "frightened": {"VERB", "ADJ"}}
    assert parse_tag["cat"] | parse_tag["garden"] == {"NOUN"}
    assert parse_tag["hungry"] | parse_tag["slow"] == {"ADJ"}
    assert (parse_tag["at"], parse_tag["very"], parse_tag["our"], parse_tag["ate"]) == (
        {"ADP"},
        {"ADV"},
        {"DET"},
        {"VERB"},
    )


def test_refuses_a_split_it_does_not_have() -> None:
    with pytest.raises(DataError, match="`it` has no split 'dev'; choose one of train, valid, test, combinations"):
        next(generate("dev", 1, seed=1))


AS_EVER = {
    "grammar": "24b1002db669ea540cc720421b6a28eeac7b41c41c05af20e0628e51501df50d",
    "copy": "67820f2aca891479953bbd644ff7afab1e7291ca91a212fd1759e4659373e09a",
    "reverse": "5c3d6e91c7fb773781742d85a61481f9360cc400a6e43eea657b3019f17e88bd",
    "sort": "c1904b4fc22abb0f8a6df26d8c2e215c5bff0061770ebc4272f764c96a958af6",
    "addition": "b7b363318fdcfa11b68bdc4a1f1d07663dab365f5c36f7e9455bc48400b311a7",
    "programs": "aa366ddb06165bf4cf9f2d23c224baa6e4c17cf8aa110b8fa983b8e1ab95af72",
}
OLD_CODE = {
    "grammar": "c6f27f61348662a7b182b9347e5ba8bc0a4e867954081fdd3e17dc29b21f1f5e",
    "programs": "b2e66cfcc0e1190a4b3fe0381d606bf4c119231cec5200bed21fe4607832da1c",
}


@pytest.mark.parametrize("name", AS_EVER)
def test_the_other_built_in_corpora_are_what_they_were_before_this_one(name: str) -> None:
    """Byte for byte; and datasets made of them are not made again for code that has no part in them."""
    needs = {each: 2 for each in GENERATOR_PARAMETERS.get(name, ()) if each != "mix"}
    digest = hashlib.sha256()
    for split in ("train", "test"):
        corpus = CorpusConfig.model_validate(
            {"format": "generated", "path": name, "split": split, "size": 200, **needs}
        )
        digest.update("".join(f"{source}\t{target}\n" for source, target in read_pairs(corpus)).encode())
    assert digest.hexdigest() == AS_EVER[name]


@pytest.mark.parametrize("name", OLD_CODE)
def test_the_version_of_other_built_in_corpora_is_what_it_was_before_this_one(name: str) -> None:
    """Whoever changes their code means to: every dataset of theirs is then made again. The new version goes here."""
    assert registry.corpus_version(name) == f"seed 1 code {OLD_CODE[name]}"
    assert registry.corpus_version("it") != registry.corpus_version(name)
