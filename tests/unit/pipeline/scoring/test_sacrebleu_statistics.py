"""Statistics of segments are those of sacrebleu, and counted once for chrF and chrF++."""

import random
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from tfm.pipeline.scoring.metrics import sacrebleu_statistics
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
    counted: list[tuple[str, str]] = []
    count_characters = sacrebleu_statistics._count_characters

    def count(metric: CHRF, reference: str, texts: Sequence[str]) -> object:
        counted.extend((text, reference) for text in texts)
        return count_characters(metric, reference, texts)

    monkeypatch.setattr(sacrebleu_statistics, "_count_characters", count)
    for word_order in (2, 0, 2):
        corpus_score(CHRF(word_order=word_order), hypotheses, [references])
    assert sorted(counted) == sorted(set(zip(hypotheses, references, strict=True)))


@pytest.mark.parametrize("num_references", [1, 2])
@pytest.mark.parametrize(
    "make_metric",
    [
        *(CHRF, partial(CHRF, lowercase=True), partial(CHRF, whitespace=True), partial(CHRF, char_order=2)),
        *(partial(BLEU, force=True, tokenize=name) for name in ("13a", "intl", "char", "zh", "none")),
        partial(BLEU, force=True, lowercase=True),
    ],
)
def test_ngrams_are_counted_as_sacrebleu_does(make_metric: Callable[[], BLEU | CHRF], num_references: int) -> None:
    """Repeated characters and words, marks that tokenizers divide, spaces of other scripts, and nothing at all."""
    draw = random.Random(1)
    letters = "aab A.,-1<>&;\u3000\xa0\u2028\u0410\u00e9\u4e00\u0301"
    columns = [["".join(draw.choices(letters, k=draw.randint(0, 14))) for _ in range(400)] for _ in range(3)]
    hypotheses, *references = [columns[0], *([text if text.strip() else "a" for text in each] for each in columns[1:])]
    expected = make_metric()._extract_corpus_statistics(hypotheses, references[:num_references])
    found = segment_statistics(make_metric(), hypotheses, references[:num_references])
    assert found == list(map(tuple, expected))
