"""Statistics of segments that chrF and chrF++ share are sacrebleu's own, and counted once."""

import random

import pytest
from sacrebleu.metrics import chrf as sacrebleu_chrf
from sacrebleu.metrics.chrf import CHRF

from tfm.pipeline.scoring.metrics.sacrebleu_statistics import corpus_score, segment_statistics

WORDS = "the a Dog cat (bird) ran, sat here. über 犬 . and I".split()


def random_texts(seed: int, size: int = 60) -> list[str]:
    """Texts of a few words, some of them empty."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) for _ in range(size)]


@pytest.mark.parametrize("num_references", [1, 2])
@pytest.mark.parametrize("settings", [{}, {"lowercase": True}, {"whitespace": True}, {"char_order": 3}, {"beta": 3}])
def test_chrf_with_words_counts_as_sacrebleu_does(settings: dict[str, int], num_references: int) -> None:
    hypotheses = random_texts(1)
    references = [[text or "a" for text in random_texts(seed)] for seed in range(2, 2 + num_references)]
    metric, plain = (CHRF(word_order=2, **settings) for _ in range(2))
    expected = plain._extract_corpus_statistics(hypotheses, references)
    assert segment_statistics(metric, hypotheses, references) == list(map(tuple, expected))
    score, signature = corpus_score(metric, hypotheses, references)
    assert score == plain.corpus_score(hypotheses, references).score
    assert signature == plain.get_signature().format()


def test_ngrams_of_characters_are_counted_once_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    hypotheses, references = [[f"{text} {seed} once" for text in random_texts(seed)] for seed in (4, 5)]
    counted: list[str] = []
    extract = sacrebleu_chrf.extract_all_char_ngrams

    def count(line: str, order: int, include_whitespace: bool = False) -> object:
        counted.extend([line] * bool(order))
        return extract(line, order, include_whitespace)

    monkeypatch.setattr(sacrebleu_chrf, "extract_all_char_ngrams", count)
    for word_order in (2, 0, 2):
        corpus_score(CHRF(word_order=word_order), hypotheses, [references])
    assert set(counted) == {*hypotheses, *references}
    assert len(counted) == len(set(zip(hypotheses, references, strict=True))) + len(set(references))
