"""Rules beside OpusFilter's filters of the same definitions, on the same lines, in an environment of its own.

Set OPUSFILTER_PYTHON to the Python of an environment with opusfilter.
"""

import json
import os
import random
import subprocess
from typing import Any

import numpy as np
import pytest

from bench.cleaning.speed import PEER
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.measurement import ChunkMeasurer, PairChunk
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys
from tfm.pipeline.cleaning.rules.pairs.config import CopiesConfig, NumbersConfig, PunctuationConfig, RatioConfig
from tfm.pipeline.cleaning.rules.registry import make_rules
from tfm.pipeline.cleaning.rules.texts.config import LanguageConfig, LengthConfig, LettersConfig, ScriptConfig

PYTHON = os.environ.get("OPUSFILTER_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="OPUSFILTER_PYTHON names no Python that has opusfilter"),
]
# The scripts of letters that no script is without: Han, Cyrillic, marks, digits of other scripts, ligatures.
CHARACTERS = "abcXYZäß .?!…,;0123456789\t\u00a0\u2028й漢字あ한ªΩ①²ﬁ\u0301\u200d'\"-"


def texts(count: int) -> list[tuple[str, str]]:
    """Pairs of a grammar, each fifth of them damaged in one way, and lines of characters drawn at random."""
    grammar = CorpusConfig(format="generated", path="grammar", split="train", size=count)
    draw, pairs = random.Random(1), []
    for source, target in read_pairs(grammar):
        kind = draw.randrange(10)
        if kind == 0:
            target = source.upper() if draw.random() < 0.5 else source
        elif kind == 1:
            source, target = source + " " + source, target[: draw.randrange(1 + len(target))]
        elif kind == 2:
            source, target = f"{source} {draw.randrange(2000)}.", f"{target} {draw.randrange(2000)} ?!"
        elif kind == 3:
            source, target = ("".join(draw.choices(CHARACTERS, k=draw.randrange(30))) for _ in range(2))
        pairs.append((source, target))
    return pairs


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """The pairs, and OpusFilter's scores and decisions for each filter."""
    folder, pairs = tmp_path_factory.mktemp("opusfilter"), texts(3000)
    for number, side in enumerate(("source", "target")):
        text = "".join(f"{pair[number]}\n" for pair in pairs)
        (folder / side).write_text(text, "utf-8", newline="")
    filters = {
        "LengthFilter": {"min_length": 2, "max_length": 9},
        "LengthRatioFilter": {"threshold": 2.3},
        "SimilarityFilter": {"threshold": 0.61, "lowercase": True},
        "AlphabetRatioFilter": {"threshold": 0.7},
        "CharacterScoreFilter": {"scripts": ["Latin", "Latin"], "thresholds": [0.9, 0.9]},
        "NonZeroNumeralsFilter": {"threshold": 0.5},
        "TerminalPunctuationFilter": {"threshold": -1},
        "LangidFilter": {"languages": ["en", "de"], "thresholds": [0.5, 0.5]},
    }
    asked = {"source": str(folder / "source"), "target": str(folder / "target"), "filters": filters}
    done = subprocess.run([PYTHON, PEER], input=json.dumps(asked), capture_output=True, text=True, check=True)
    return pairs, json.loads(done.stdout)


OURS = {
    "LengthFilter": ("length", LengthConfig(min=2, max=9)),
    "LengthRatioFilter": ("ratio", RatioConfig(max=2.3)),
    "SimilarityFilter": ("copies", CopiesConfig(max=0.61)),
    "AlphabetRatioFilter": ("letters", LettersConfig(min=0.7)),
    "CharacterScoreFilter": ("script", ScriptConfig(source="Latin", target="Latin", min=0.9)),
    "NonZeroNumeralsFilter": ("numbers", NumbersConfig(min=0.5)),
    "TerminalPunctuationFilter": ("punctuation", PunctuationConfig(min=-1)),
    "LangidFilter": ("language", LanguageConfig(source="en", target="de", min=0.505)),
}


@pytest.mark.parametrize("name", OURS)
def test_scores_and_decisions_are_the_same(both: tuple[list[tuple[str, str]], dict[str, Any]], name: str) -> None:
    rule, config = OURS[name]
    if rule == "language":
        pytest.importorskip("py3langid", reason="needs the extra `clean`")
    pairs, theirs = both
    off = dict.fromkeys(each for each in CleanConfig.model_fields if each != "external")
    (made,) = make_rules(CleanConfig.model_validate(off | {rule: config}), HeldOutKeys.from_pairs(()))
    sources, targets = zip(*pairs, strict=True)
    found = ChunkMeasurer([made], everything=True)(PairChunk(0, True, sources, targets)).columns
    scores = np.stack([found[column] for column in made.score_names], 1)
    expected = np.array([np.ravel(each) for each in theirs[name]["scores"]], np.float64)
    if rule == "length":
        expected = np.sort(expected, 1)
    elif expected.shape[1] > 1:  # of the side that has less
        expected = expected.min(1, keepdims=True)
    # the language's probability is rounded to two digits there
    np.testing.assert_allclose(scores, expected, atol=0.00501 if rule == "language" else 1e-12)
    dropped = made.find_failed_pairs(scores, made.limits)
    kept = np.array(theirs[name]["kept"])
    at_limit = np.isclose(expected[:, -1], 0.505, atol=0.006) if rule == "language" else np.zeros(len(kept), bool)
    assert (kept == ~dropped)[~at_limit].all()
    assert 20 < kept.sum() < len(kept) - 20
