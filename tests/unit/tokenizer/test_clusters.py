"""A vocabulary of clusters of languages: its size, its pieces, and languages that have little text or none."""

import random
from collections.abc import Iterable

import pytest

from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.train import LanguageClustersTrainer, merge_vocabularies

NORTH = "huset hunden gaten barnet skolen boka løper leser ser ikke og men det en på".split()
SOUTH = "घर कुत्ता सड़क बच्चा स्कूल किताब दौड़ता पढ़ता देखता नहीं और लेकिन वह एक पर".split()


def sentences(words: list[str], count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(words, k=6)) + "." for _ in range(count)]


TEXTS = {
    "nob": sentences(NORTH, 300, 1),
    "dan": sentences([*NORTH[:12], "ikkje", "hestens", "kvinnen"], 300, 2),
    "hin": sentences(SOUTH, 30, 3),
}


def learned(texts: dict[str, list[str]], **config: object) -> LanguageClustersTrainer:
    settings = {"kind": "unigram", "vocab_size": 120, "clusters": 2, **config}
    trainer = LanguageClustersTrainer(TokenizerConfig.model_validate(settings), texts)
    for language, lines in texts.items():
        for line in lines:
            trainer.add(line, language)
    return trainer


def test_languages_of_the_same_words_learn_together_and_every_language_gets_pieces() -> None:
    trainer = learned(TEXTS)
    tokenizer = trainer.learn()
    assert [*trainer.clusters] == [("dan", "nob"), ("hin",)]
    assert tokenizer.vocab_size <= 120
    assert [tokenizer.piece(number) for number in range(4)] == [*SPECIAL_TOKENS]
    for language, lines in TEXTS.items():
        for line in lines[:20]:
            ids = tokenizer.encode(line)
            assert UNK_ID not in ids, language
            assert tokenizer.decode(ids) == line
    hindi = [piece for number in range(4, tokenizer.vocab_size) if (piece := tokenizer.piece(number)).strip() > "ऀ"]
    assert any(len(piece) > 3 for piece in hindi), "a tenth of the texts, and words of its own all the same"


def test_learned_again_it_is_the_same() -> None:
    first, second = (learned(TEXTS).learn() for _ in range(2))
    assert [first.piece(n) for n in range(first.vocab_size)] == [second.piece(n) for n in range(second.vocab_size)]


@pytest.mark.parametrize("size", [30, 60, 90])
def test_it_is_never_larger_than_it_may_be_and_keeps_letters(size: int) -> None:
    tokenizer = learned(TEXTS, vocab_size=size).learn()
    assert tokenizer.vocab_size <= size
    single = sum(len(tokenizer.piece(number)) == 1 for number in range(4, tokenizer.vocab_size))
    letters = {letter for lines in TEXTS.values() for line in lines for letter in " " + line}
    assert single == min(len(letters), size - 4)


def test_a_language_without_text_is_left_out() -> None:
    empty: Iterable[str] = ["", " ", "\u3000"]
    trainer = learned({**TEXTS, "swa": list(empty)})
    trainer.learn()
    assert sorted(name for cluster in trainer.clusters for name in cluster) == ["dan", "hin", "nob"]
    assert learned({"nob": [""], "hin": [" "]}).learn().vocab_size == len(SPECIAL_TOKENS)


def test_joined_pieces_have_the_largest_of_their_log_probabilities() -> None:
    first, second = {" a": -1.0, "a": -5.0, "bc": -3.0}, {"a": -4.0, "bc": -3.5, "b": -9.0}
    assert merge_vocabularies([first, second], 9) == {" a": -1.0, "bc": -3.0, "a": -4.0, "b": -9.0}
    assert [*merge_vocabularies([first, second], 3)] == [" a", "a", "b"], "letters last"
    assert [*merge_vocabularies([first, second], 1)] == ["a"]


@pytest.mark.parametrize(
    ("clusters", "languages", "problem"),
    [
        (2, [], "needs the language of each text"),
        (4, ["deu", "eng", "hin"], "tokenizer.clusters = 4 is more than the 3 languages there are: deu, eng, hin"),
        (3, ["deu", "eng", "hin"], None),
        (None, [], None),
    ],
)
def test_there_are_not_more_clusters_than_languages(
    clusters: int | None, languages: list[str], problem: str | None
) -> None:
    found = TokenizerConfig(kind="unigram", clusters=clusters).languages_problem(languages)
    assert (found is None) == (problem is None)
    assert problem is None or problem in str(found)
