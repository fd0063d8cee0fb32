"""Synthetic pairs on disk are the pairs that later stages read."""

from pathlib import Path

import pytest

from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.synthesis.output import write_pairs
from tfm.pipeline.synthesis.pairs import SyntheticPair


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "texts",
    [
        ("a dog\r", "a cat\r"),
        ("\ufeffa dog", "a\u2028cat"),
        ("<html><p>a dog</p></html>", "<html><p>a cat</p></html>"),
        ("dog B-LOC", "cat O"),
        ('{"id": 1}', '{"id": 2}'),
        ("a\tb", "c\td", "e\tf", "g\th"),
    ],
)
def test_pairs_are_read_as_texts_whatever_they_look_like(texts: tuple[str, ...], side: str, tmp_path: Path) -> None:
    pairs = [SyntheticPair(line, 1, text, text.upper(), -1.0, 2) for line, text in enumerate(texts, 1)]
    assert write_pairs(pairs, tmp_path).pairs == len(texts)
    corpus = CorpusConfig.model_validate({"synthetic": str(tmp_path), "side": side})
    sides = [(pair.output, pair.input) if side == "source" else (pair.input, pair.output) for pair in pairs]
    with collect_remarks() as remarks:
        assert list(read_pairs(corpus)) == sides
    assert not remarks
