"""Minimum Bayes risk beside mbrs (Deguchi et al. 2024), on the same candidates, in an environment of its own.

Set MBRS_PYTHON to the Python of an environment with mbrs (and setuptools<81, which its torchmetrics asks for).
"""

import json
import os
import random
import subprocess
from typing import Any

import pytest

from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.minimum_bayes_risk.selection import choose_by_utility
from tfm.pipeline.inference.translation_records import Translation

PYTHON = os.environ.get("MBRS_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="MBRS_PYTHON names no Python that has mbrs"),
]
SIZE = 16
PEER = """
import json, sys
from mbrs.decoders import DecoderMBR
from mbrs.metrics import MetricBLEU, MetricChrF

asked, found = json.load(sys.stdin), {}
for name, metric in (("chrf", MetricChrF(MetricChrF.Config(num_workers=1))),
                     ("bleu", MetricBLEU(MetricBLEU.Config(num_workers=1)))):
    decoder = DecoderMBR(DecoderMBR.Config(), metric)
    best = [decoder.decode(texts, texts, nbest=1) for texts in asked]
    found[name] = [[each.sentence[0], float(each.score[0])] for each in best]
json.dump(found, sys.stdout)
"""


def candidate_lists(count: int) -> list[list[str]]:
    """Lists of texts that differ from one in some words, some of them twice, as samples of a model do."""
    grammar = CorpusConfig(format="generated", path="grammar", split="train", size=count)
    draw, lists = random.Random(1), []
    texts = [target for _, target in read_pairs(grammar)]
    words = sorted({word for text in texts for word in text.split()})
    for text in texts:
        samples = [
            " ".join(draw.choice(words) if draw.random() < 0.2 else word for word in text.split()) for _ in range(SIZE)
        ]
        lists.append([*samples[:-2], *samples[:2]])
    return lists


@pytest.fixture(scope="module")
def both() -> tuple[list[list[str]], dict[str, Any]]:
    """The candidates, and what mbrs chooses by each utility, with its expected utility."""
    lists = candidate_lists(200)
    done = subprocess.run([PYTHON, "-c", PEER], input=json.dumps(lists), capture_output=True, text=True, check=True)
    return lists, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_the_same_translation_is_chosen(utility: Any, both: tuple[list[list[str]], dict[str, Any]]) -> None:
    config = DecodingConfig(strategy="mbr", mbr_size=SIZE, mbr_utility=utility)
    lists, theirs = both
    for texts, (chosen, expected) in zip(lists, theirs[utility], strict=True):
        (ours,) = choose_by_utility([Translation(text, -1.0, -1.0, 3) for text in texts], config)
        assert ours.score == pytest.approx(expected, abs=1e-3)  # theirs is in fp32
        if ours.text != chosen:  # both are best, but for rounding
            assert len({*texts}) > 1
            of_theirs = DecodingConfig(strategy="mbr", mbr_size=SIZE, mbr_utility=utility, n_best=SIZE)
            ranked = choose_by_utility([Translation(text, -1.0, -1.0, 3) for text in texts], of_theirs)
            assert {each.text: each.score for each in ranked}[chosen] == pytest.approx(ours.score, abs=1e-3)
