"""Word vectors of the built-in corpus: words of one class lie nearer to each other than to those of other classes."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.user import ROOT, tfm
from tfm.data.synthetic.language import lexicon
from tfm.data.synthetic.language.german import MIXED_ENDINGS, STRONG_ENDINGS, WEAK_ENDINGS

pytestmark = pytest.mark.slow

MARGIN = 0.1
VERBS = (*lexicon.VERBS, *lexicon.TELLING_VERBS, *lexicon.TO_INFINITIVE_VERBS)


def classes() -> dict[str, set[str]]:
    """The German word forms of each class, without those of two classes."""
    endings = {ending for table in (WEAK_ENDINGS, MIXED_ENDINGS, STRONG_ENDINGS) for row in table for ending in row}
    found = {
        "noun": {form for noun in lexicon.NOUNS for row in noun.german for form in row},
        "verb": {form for verb in VERBS for form in (*verb.present, *verb.past, verb.participle, verb.infinitive)},
        "adjective": {each.stem + ending for each in lexicon.ADJECTIVES for ending in endings},
    }
    return {
        name: words.difference(*(others for other, others in found.items() if other != name))
        for name, words in found.items()
    }


def read(file: Path) -> dict[str, np.ndarray]:
    """Unit vectors by word, read as anybody reads such a file."""
    lines = (line.split(" ") for line in file.read_text(encoding="utf-8").splitlines()[1:])
    vectors = {word: np.array(numbers, float) for word, *numbers in lines}
    return {word: vector / np.linalg.norm(vector) for word, vector in vectors.items()}


def mean_cosine(ones: np.ndarray, others: np.ndarray | None = None) -> float:
    """Of all pairs of two groups (n, E), (m, E), or of all pairs of different words of one."""
    if others is None:
        return float(((ones @ ones.T).sum() - len(ones)) / (len(ones) * (len(ones) - 1)))
    return float((ones @ others.T).mean())


@pytest.mark.parametrize("negatives", ["none", "5"], ids=["softmax", "negative sampling"])
@pytest.mark.parametrize("recipe", ["skip-gram", "cbow"])
def test_words_of_a_class_lie_near_each_other(
    recipe: str, negatives: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("run", ROOT / "recipes" / f"{recipe}.toml", "--set", f"model.word_vectors.negatives={negatives}")
    for command in (words, ("embed", f"runs/{recipe}", "--out", "v.txt")):
        done = tfm(*command)
        assert done.code == 0, done.err
    vectors = read(tmp_path / "v.txt")
    groups = {name: [word for word in sorted(words) if word in vectors] for name, words in classes().items()}
    assert all(len(words) > 50 for words in groups.values())
    rows = {name: np.stack([vectors[word] for word in words]) for name, words in groups.items()}
    within = {name: mean_cosine(each) for name, each in rows.items()}
    between = {f"{one}, {other}": mean_cosine(rows[one], rows[other]) for one in rows for other in rows if one < other}
    print({name: round(cosine, 3) for name, cosine in {**within, **between}.items()})
    assert np.mean([*within.values()]) > np.mean([*between.values()]) + MARGIN
    for name, cosine in within.items():
        assert cosine > max(each for pair, each in between.items() if name in pair.split(", "))
