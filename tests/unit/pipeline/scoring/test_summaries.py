"""Summaries: ROUGE of stems against the package, and length, compression and novelty by plain loops."""

import json
import random
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer

from tests.cli.user import tfm, write_lines
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS
from tfm.pipeline.scoring.summaries import NO_SOURCES_REASON, SUMMARY_METRICS, SummaryStatistics, summary_statistics

WORDS = "running runs Ran runner happily happy ties tie flies dogs cats, relational 3.5 it's was bus".split()
CONFIG = EvaluationConfig(metrics=SUMMARY_METRICS)


def lines(count: int, seed: int, most: int = 12) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, most))) for _ in range(count)]


@pytest.mark.parametrize("tokenize", ["rouge-score", "unicode"])
@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
def test_rouge_of_stems_is_the_packages(kind: str, tokenize: str) -> None:
    hypotheses, references = lines(40, 1), lines(40, 2)
    scorer = RougeScorer([kind], use_stemmer=True)
    found = [scorer.score(*pair)[kind] for pair in zip(references, hypotheses, strict=True)]
    config = EvaluationConfig.model_validate({"rouge_tokenize": tokenize, "rouge_stemmer": True})
    score = METRIC_FUNCTIONS[kind](hypotheses, [references], config)
    for mine, name in ((score.score, "fmeasure"), (score.recall, "recall"), (score.precision, "precision")):
        assert mine == pytest.approx(100 * sum(getattr(each, name) for each in found) / len(found), abs=1e-9)
    plain = METRIC_FUNCTIONS[kind](
        hypotheses, [references], EvaluationConfig.model_validate({"rouge_tokenize": tokenize})
    )
    assert score.signature == plain.signature.replace("stem:no", "stem:porter")
    assert score.score > plain.score


def test_stems_are_of_words_of_four_letters_or_more() -> None:
    config = EvaluationConfig(rouge_stemmer=True)
    assert METRIC_FUNCTIONS["rouge1"](["ties dogs"], [["tied dog"]], config).score == 100
    assert METRIC_FUNCTIONS["rouge1"](["was"], [["wa"]], config).score == 0
    assert METRIC_FUNCTIONS["rouge1"](["Häuser 只"], [["Häuser 只"]], config).score == 100


def test_figures_are_those_of_plain_loops() -> None:
    sources = ["a b c d a b", "x y", "", "one two three"]
    texts = ["a b x", "", "n o", "Three one TWO three"]
    found = summary_statistics(sources, texts)
    assert found.length == (3 + 0 + 2 + 4) / 4
    assert found.compression == pytest.approx((6 / 3 + 0 / 2 + 3 / 4) / 3)
    for order in (1, 2, 3, 4):
        new = total = 0
        for source, text in zip(sources, texts, strict=True):
            one, other = source.lower().split(), text.lower().split()
            for begin in range(len(other) - order + 1):
                window = other[begin : begin + order]
                total += 1
                new += all(one[place : place + order] != window for place in range(len(one)))
        assert found.novelty[order] == (100 * new / total if total else None)
    assert found.novelty == {1: 100 * 3 / 9, 2: 50.0, 3: 100 * 2 / 3, 4: 100.0}


def test_texts_that_copy_and_texts_without_words() -> None:
    texts = lines(20, 3)
    copied = summary_statistics(texts, texts)
    assert {*copied.novelty.values()} <= {0.0, None}
    assert copied.compression == 1
    assert summary_statistics(["a"], ["…"]) == SummaryStatistics(0.0, None, dict.fromkeys((1, 2, 3, 4)))


def test_scores_and_table_of_both_sides(tmp_path: Path) -> None:
    sources, given, wanted = ["a b c d e f"], ["a b x"], ["a b"]
    found = evaluate_segments(Segments("test", sources, given, [wanted]), CONFIG, seed=1, reporter=NullReporter())
    assert {name: each.score for name, each in found.scores.items()} == {
        "length": 3.0,
        "compression": 2.0,
        "novelty": 50.0,
    }
    assert found.summaries["references"].compression == 3
    (again,) = evaluations_from_json(json.loads(json.dumps(evaluations_as_json([found]))))
    assert again.summaries == found.summaries
    without = evaluate_segments(Segments("test", None, given, [wanted]), CONFIG, seed=1, reporter=NullReporter())
    assert without.missing == dict.fromkeys(SUMMARY_METRICS, NO_SOURCES_REASON)
    empty = evaluate_segments(Segments("test", sources, [""], [wanted]), CONFIG, seed=1, reporter=NullReporter())
    assert empty.missing == dict.fromkeys(("compression", "novelty"), "no hypothesis has a word")
    files = [write_lines(tmp_path / name, each) for name, each in (("s", sources), ("h", given), ("r", wanted))]
    scored = ("evaluate", "--source", files[0], "--hypotheses", files[1], "--reference", files[2])
    done = tfm(*scored, "--metric", "rouge1", "--metric", "novelty", "--set", "evaluation.rouge_stemmer=true")
    assert done.code == 0, done.err
    assert "new 4-grams %" in done.out
    assert "stem:porter" in done.out
