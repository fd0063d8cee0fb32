"""A blank line in a file of references is no reference, whichever file it is in."""

import random

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from tfm.pipeline.comparison.differences.breakdowns import breakdown_by_ngram_order
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.judging.statistics.correlation import metric_scores
from tfm.pipeline.scoring.breakdown import worst_samples
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.references import drop_blank_references, references_for_sacrebleu
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, score_texts
from tfm.pipeline.significance.segment_statistics import segment_statistics

OF_LABELS = ("accuracy", "macro_f1")  # scores of the first reference alone, as their docstrings say
TEXT_METRICS = tuple(name for name in METRIC_FUNCTIONS if name not in (*OF_LABELS, "entity_f1"))
CONFIG = EvaluationConfig(metrics=TEXT_METRICS, bleu_tokenize="13a")
ORDERLESS = EvaluationConfig(metrics=("bleu", "ter", "exact_match"), bleu_tokenize="13a")
WORDS = "the a dog cat bird ran sat here over there . and two small".split()
BLANKS = ["", " ", "\t", "\u3000"]


def corpus(blank: str, size: int = 30) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """Hypotheses, a set of references for each segment, and these in three files with the blank ones anywhere."""
    draw = random.Random(3)
    sets = [
        [" ".join(draw.choices(WORDS, k=draw.randint(4, 9))) for _ in range(draw.randint(1, 3))] for _ in range(size)
    ]
    hypotheses = [" ".join(word for word in draw.choice(each).split() if draw.random() < 0.9) for each in sets]
    hypotheses[4] = ""  # which equals none of its references, blank as it is
    files = [[blank] * size for _ in range(3)]
    for row, each in enumerate(sets):
        # in their order: of an empty hypothesis, sacrebleu's chrF counts the n-grams of the first reference
        for number, text in zip(sorted(draw.sample(range(3), len(each))), each, strict=True):
            files[number][row] = text
    return hypotheses, sets, files


@pytest.mark.parametrize("blank", BLANKS)
def test_where_the_blank_lines_are_changes_no_score(blank: str) -> None:
    hypotheses, sets, files = corpus(blank)
    assert any(not each.strip() for each in files[0])
    assert any(not each.strip() for each in files[1])
    padded = [[each[number] if number < len(each) else "" for each in sets] for number in range(3)]
    expected = score_texts(hypotheses, padded, CONFIG)
    assert list(expected) == list(TEXT_METRICS)
    found = score_texts(hypotheses, files, CONFIG)
    assert found == expected
    assert score_texts(hypotheses, files[::-1], ORDERLESS) == score_texts(hypotheses, files, ORDERLESS)


@pytest.mark.parametrize("blank", BLANKS)
def test_sacrebleu_scores_equal_its_own_of_the_sets(blank: str) -> None:
    hypotheses, sets, files = corpus(blank)
    columns = [[each[number] if number < len(each) else None for each in sets] for number in range(3)]
    found = score_texts(hypotheses, files, CONFIG)
    for name, metric in (("bleu", BLEU(tokenize="13a")), ("chrf", CHRF()), ("ter", TER())):
        expected = metric.corpus_score(hypotheses, columns)  # type: ignore[arg-type]
        assert found[name].score == pytest.approx(expected.score, abs=1e-9)
        assert "nrefs:var" in found[name].signature
        (counted,) = segment_statistics(name, [hypotheses], files, CONFIG)
        assert float(counted.score(counted.rows.sum(0))) == pytest.approx(expected.score, abs=1e-9)
    equal = sum(given in each for given, each in zip(hypotheses, sets, strict=True))
    assert found["exact_match"].score == pytest.approx(100 * equal / len(sets))
    exact = BLEU(tokenize="13a").corpus_score(hypotheses, columns)  # type: ignore[arg-type]
    rows = breakdown_by_ngram_order([Segments("t", None, hypotheses, files)], CONFIG).rows
    assert [row.values[0] for row in rows[:4]] == pytest.approx(exact.precisions, abs=1e-9)


def test_by_hand() -> None:
    """The hypothesis of the second segment is wrong; its blank line would make it the right, empty answer."""
    references = [["a dog", ""], [" ", "a cat sat"]]
    assert [drop_blank_references(each) for each in zip(*references, strict=True)] == [["a dog"], ["a cat sat"]]
    assert references_for_sacrebleu(references) == [["a dog", "a cat sat"]]
    assert references_for_sacrebleu([["a", ""], ["b", ""]]) == [["a", ""], ["b", None]]
    found = score_texts(["a dog", ""], references, EvaluationConfig(metrics=("exact_match", "ter")))
    assert found["exact_match"].score == 50
    assert found["ter"].score == pytest.approx(100 * 3 / 5)
    nothing = score_texts(["a dog", ""], [["a dog", ""]], EvaluationConfig(metrics=("exact_match",)))
    assert nothing["exact_match"].score == 100  # of a segment without any the empty text is the right one


def test_samples_show_and_score_those_that_are_there() -> None:
    (worst,) = worst_samples(None, ["a cat"], [[" "], ["a dog"]], 1, config=CONFIG)
    assert worst.references == ("a dog",)
    assert worst.chrf == pytest.approx(CHRF().sentence_score("a cat", ["a dog"]).score)


def test_beside_judges_bleu_of_a_text_reads_those_that_are_there() -> None:
    texts = {("1", "A"): "a small dog ran", ("1", "B"): "the cat"}
    found = metric_scores("bleu", texts, {"1": ["\u3000", "a small dog sat"]}, CONFIG)
    expected = BLEU(tokenize="13a", effective_order=True).sentence_score("a small dog ran", ["a small dog sat"])
    assert found.by_unit["1", "A"] == pytest.approx(expected.score)
