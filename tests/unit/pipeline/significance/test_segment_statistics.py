"""The sum of the rows gives the score of the corpus, for every metric."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from tests.meaning import plain_scores as plain
from tests.meaning.plain_tokens import tokens_of_words
from tests.tiny_wordnet import write_wordnet
from tfm.data.errors import DataError
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, score_texts
from tfm.pipeline.scoring.metrics.score import lower_is_better
from tfm.pipeline.significance import segment_statistics as module
from tfm.pipeline.significance.segment_statistics import (
    mean_statistics,
    perplexity_statistics,
    ratio_statistics,
    segment_statistics,
)

LATIN = "der die HUND Katze für läuft, schläft; sieht. 3,5 Übel-keit nicht! \u2028 (weiß) U.S. stroll walk".split(" ")
ARABIC = "الكلب القط يجري ينام لا يرى، كبير صغير. ٣ هذا".split()
HINDI = "कुत्ता बिल्ली दौड़ता है। सोता नहीं देखता बड़ा छोटा".split()
CHINESE = list("狗猫跑睡看不大小的在，。")
SCRIPTS = {"Latin": (LATIN, " "), "Arabic": (ARABIC, " "), "Hindi": (HINDI, " "), "Chinese": (CHINESE, "")}


def corpus(script: str, num_references: int, size: int = 16) -> tuple[list[list[str]], list[list[str]]]:
    """Two systems' hypotheses and the references; one hypothesis is empty, some segments have one reference alone."""
    words, space = SCRIPTS[script]
    draw = random.Random(7)
    references = [
        [space.join(draw.choices(words, k=draw.randint(4, 12))) for _ in range(size)] for _ in range(num_references)
    ]
    systems = [
        [
            space.join(word for word in (text.split(" ") if space else text) if draw.random() < kept)
            for text in map(draw.choice, zip(*references, strict=True))
        ]
        for kept in (0.8, 0.9)
    ]
    systems[0][0] = ""
    for reference in references[1:]:
        reference[3] = reference[5] = ""
    systems[1][7] = references[0][7]
    return systems, references


@pytest.mark.parametrize(("num_references", "labels"), [(1, "line"), (3, "word")])
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_rows_sum_to_the_score_of_every_metric(
    script: str, num_references: int, labels: str, tmp_path: Path
) -> None:
    systems, references = corpus(script, num_references)
    wordnet = str(write_wordnet(tmp_path / "wordnet"))
    config = EvaluationConfig.model_validate({"metrics": tuple(METRIC_FUNCTIONS), "labels": labels, "wordnet": wordnet})
    expected = [score_texts(hypotheses, references, config) for hypotheses in systems]
    assert len(expected[0]) >= len(METRIC_FUNCTIONS) - 1 - (script == "Chinese")  # entity F1 is of tags
    for metric in expected[0]:
        for found, scores in zip(segment_statistics(metric, systems, references, config), expected, strict=True):
            assert found.value == pytest.approx(scores[metric].score, abs=1e-9), metric
            assert len(found) == len(systems[0])
            assert found.higher_is_better is not lower_is_better(metric)
            assert found.rows.sum(0) == pytest.approx(found.rows[::-1].sum(0))
        if metric.startswith("rouge"):
            for part in ("recall", "precision"):
                found = segment_statistics(f"{metric}.{part}", systems, references, config)[1]
                assert found.value == pytest.approx(getattr(expected[1][metric], part), abs=1e-9)


def test_lower_case_is_kept_in_mind() -> None:
    for metric in ("bleu", "chrf", "exact_match"):
        mixed, lower = (
            segment_statistics(metric, [["DER Hund lief davon"]], [["Der Hund lief davon"]], config)[0].value
            for config in (EvaluationConfig(), EvaluationConfig(lowercase=True))
        )
        assert (mixed < 100, lower) == (True, pytest.approx(100))


@pytest.mark.parametrize("metric", [name for name in METRIC_FUNCTIONS if name != "cider_d"])
def test_part_of_the_rows_gives_the_score_of_these_segments(metric: str) -> None:
    """What a resample needs: also a segment twice, and of macro F1 without some labels."""
    systems, references = corpus("Latin", 2)
    rows = [3, 9, 9, 12, 14, 15]
    config = EvaluationConfig.model_validate({"metrics": (metric,), "labels": "word"})
    found = segment_statistics(metric, systems, references, config)[1]
    some = [systems[1][row] for row in rows], [[reference[row] for row in rows] for reference in references]
    expected = METRIC_FUNCTIONS[metric](*some, config).score
    assert float(found.score(found.rows[rows].sum(0))) == pytest.approx(expected, abs=1e-9)
    # several sums at once, as the tests ask for them
    both = found.score(np.stack([found.rows[rows].sum(0), found.rows.sum(0)])[None])
    assert both == pytest.approx(np.array([[expected, found.value]]), abs=1e-9)


def test_part_of_the_rows_of_cider_d_keeps_the_frequencies_of_all_segments() -> None:
    systems, references = corpus("Latin", 2)
    rows = [3, 9, 9, 12, 14, 15]
    found = segment_statistics("cider_d", systems, references, EvaluationConfig())[1]
    documents = [
        [tokens_of_words(text) for text in (first, *filter(None, further))]
        for first, *further in zip(*references, strict=True)
    ]
    expected = plain.cider_d([*map(tokens_of_words, systems[1])], documents)
    assert found.value == pytest.approx(sum(expected) / len(expected), abs=1e-9)
    part = sum(expected[row] for row in rows) / len(rows)
    assert float(found.score(found.rows[rows].sum(0))) == pytest.approx(part, abs=1e-9)


def test_labels_of_one_system_have_a_column_in_all() -> None:
    """A row can be swapped between systems: what only one of them gives counts against the one that has it then."""
    config = EvaluationConfig(labels="line")
    one, other = segment_statistics("macro_f1", [["A", "B"], ["A", "Ü"]], [["A", "B"]], config)
    assert (one.value, other.value) == (100, pytest.approx(100 / 3))
    assert one.rows.shape == other.rows.shape
    assert other.score(other.rows[0] + one.rows[1]) == 100


def test_capitals_are_another_label() -> None:
    (found,) = segment_statistics("macro_f1", [["a", "A"]], [["A", "A"]], EvaluationConfig(labels="line"))
    assert found.value == pytest.approx(
        METRIC_FUNCTIONS["macro_f1"](["a", "A"], [["A", "A"]], EvaluationConfig()).score
    )


def test_labels_that_are_nowhere_score_zero() -> None:
    for metric in ("macro_f1", "accuracy"):
        (found,) = segment_statistics(metric, [["", " "]], [["", ""]], EvaluationConfig(labels="word"))
        assert found.value == 0


def test_perplexity_leaves_out_what_has_none() -> None:
    found = perplexity_statistics([-2.0, None, None, -4.0], [3, None, 8, 1])
    assert found.value == pytest.approx(math.exp(6 / 4))
    assert not found.higher_is_better
    assert perplexity_statistics([-1e9], [1]).value == math.inf
    assert perplexity_statistics([-math.inf, -1.0], [1, 1]).value == math.inf


def test_means_and_ratios() -> None:
    assert mean_statistics([1, 2, 6]).value == 3
    assert not mean_statistics([1.0], higher_is_better=False).higher_is_better
    assert ratio_statistics([1, 1], [3, 5], scale=100).value == 25
    assert ratio_statistics([0], [0]).value == 0


def test_what_cannot_be_counted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for systems, references in (([["a"], ["a", "b"]], [["a"]]), ([["a"]], [["a"], []]), ([[]], [[]])):
        with pytest.raises(DataError, match="one for each segment"):
            segment_statistics("bleu", systems, references, EvaluationConfig())
    monkeypatch.setattr(module, "MAX_MACRO_F1_CELLS", 10)
    with pytest.raises(DataError, match="macro F1 of 2 labels on 2 lines"):
        segment_statistics("macro_f1", [["a", "b"]], [["a", "b"]], EvaluationConfig())
