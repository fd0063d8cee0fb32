"""The claim of WordNet's likeness: paths counted a second way in a WordNet of our own."""

from pathlib import Path

import pytest

from bench.claims.words import meaning, synsets
from tests.tiny_wordnet import write_wordnet
from tfm.pipeline.scoring.metrics.wordnet import Synset, open_wordnet

ABOVE: dict[str, list[str]] = {"dog": ["animal", "pet"], "cat": ["pet"], "pet": ["thing"], "animal": ["thing"]}
ABOVE |= {"car": ["vehicle"], "vehicle": ["thing"], "thing": []}


class Tree:
    """Words whose hypernyms are known by name."""

    def synsets(self, word: str) -> list[Synset]:
        return [Synset((), "verb", "to dog"), Synset((), "noun", word)] if word in ABOVE else []

    def hypernyms(self, synset: Synset) -> list[Synset]:
        return [Synset((), "noun", each) for each in ABOVE[synset.gloss]]


@pytest.mark.parametrize(
    ("one", "other", "steps"),
    [("dog", "dog", 0), ("dog", "cat", 2), ("dog", "animal", 1), ("cat", "car", 4), ("dog", "vehicle", 3)],
)
def test_path_similarity_counts_the_steps_up_and_down(one: str, other: str, steps: int) -> None:
    assert synsets.path_similarity(Tree(), one, other) == pytest.approx(1 / (1 + steps))  # type: ignore[arg-type]
    assert synsets.path_similarity(Tree(), other, one) == pytest.approx(1 / (1 + steps))  # type: ignore[arg-type]


def test_words_with_nothing_above_in_common_have_none(tmp_path: Path) -> None:
    wordnet = open_wordnet(write_wordnet(tmp_path / "wordnet"))
    assert synsets.path_similarity(wordnet, "dog", "car") == 0.0
    assert synsets.path_similarity(wordnet, "car", "auto") == 1.0
    assert synsets.path_similarity(wordnet, "dog", "nowhere") == 0.0


def test_the_english_words_are_those_of_the_groups() -> None:
    assert len(synsets.ENGLISH) == sum(map(len, meaning.GROUPS.values()))
