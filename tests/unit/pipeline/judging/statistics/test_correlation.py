"""Correlations of metrics with judges: by counting pairs, by definition, and metrics as sacrebleu computes them."""

import math
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from sacrebleu import corpus_bleu, sentence_bleu, sentence_chrf

from tests.meaning import plain_scores as plain
from tests.meaning.plain_tokens import tokens_of_words
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.judging.statistics.correlation import (
    KENDALL,
    PEARSON,
    CorrelationCoefficient,
    MetricScores,
    correlate_metric,
    correlate_units,
    kendall,
    metric_scores,
    pair_differences,
    pearson,
)


def tau_b(x: list[float], y: list[float]) -> float:
    pairs = list(combinations(zip(x, y, strict=True), 2))
    signs = [((a > c) - (a < c), (b > d) - (b < d)) for (a, b), (c, d) in pairs]
    return sum(s * t for s, t in signs) / math.sqrt(sum(s != 0 for s, _ in signs) * sum(t != 0 for _, t in signs))


def test_coefficients_by_their_definitions() -> None:
    random = np.random.default_rng(4)
    for _ in range(10):
        x = random.integers(0, 6, size=20).astype(float).tolist()
        y = [a + float(random.integers(0, 4)) for a in x]
        assert kendall(x, y) == pytest.approx(tau_b(x, y), abs=1e-12)
        mx, my = fmean(x), fmean(y)
        by_hand = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / math.sqrt(
            sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y)
        )
        assert pearson(x, y) == pytest.approx(by_hand, abs=1e-12)
    for coefficient in (kendall, pearson):
        assert coefficient([1, 1], [1, 2]) is None
        assert coefficient([1], [2]) is None
        assert coefficient([], []) is None


@pytest.mark.parametrize(("coefficient", "most"), [(KENDALL, 1500), (KENDALL, 5), (PEARSON, 1500)])
def test_draws_are_those_of_the_values_drawn(
    coefficient: CorrelationCoefficient, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfm.pipeline.judging.statistics.correlation.MAX_PAIRWISE_UNITS", most)
    random = np.random.default_rng(8)
    x = random.integers(0, 5, size=20) / 3 + 1e6
    y = x + random.integers(0, 3, size=20)
    counts = random.multinomial(20, np.full(20, 1 / 20), size=30)
    counts[0] = 20 * (np.arange(20) == 4)  # one value again and again
    expected = [coefficient.plain(np.repeat(x, each).tolist(), np.repeat(y, each).tolist()) for each in counts]
    assert expected[0] is None
    found = coefficient.of_draws(counts.astype(float), x, y)
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx(expected[1:], abs=1e-8)


def test_intervals_are_drawn_by_segment() -> None:
    """Ten copies of each segment's unit add nothing: the interval is as wide as that of single units."""
    random = np.random.default_rng(1)
    x = {str(line): float(random.normal()) for line in range(120)}
    y = {line: value + float(random.normal()) for line, value in x.items()}
    single = correlate_units(PEARSON, {(s, "a"): v for s, v in x.items()}, {(s, "a"): v for s, v in y.items()}, 500)
    copies = correlate_units(
        PEARSON,
        {(s, str(i)): v for s, v in x.items() for i in range(10)},
        {(s, str(i)): v for s, v in y.items() for i in range(10)},
        500,
    )
    assert copies.value == pytest.approx(single.value)
    assert (copies.low, copies.high) == pytest.approx((single.low, single.high))
    assert single.value is not None
    assert single.low is not None
    assert single.high is not None
    # Fisher's interval, another way, is near
    assert math.tanh(math.atanh(single.value) - 1.96 / math.sqrt(117)) == pytest.approx(single.low, abs=0.12)
    assert math.tanh(math.atanh(single.value) + 1.96 / math.sqrt(117)) == pytest.approx(single.high, abs=0.12)


TEXTS = {
    ("t:1", "a"): "Ein Hund läuft über die Wiese.",
    ("t:2", "a"): "ZWEI MÄNNER SPIELEN FUSSBALL",
    ("t:1", "b"): "Der Hund rennt.",
    ("t:2", "b"): "",
}
REFERENCES = {
    "t:1": ["Ein Hund läuft über eine Wiese.", "Ein Hund läuft übers Gras."],
    "t:2": ["Zwei Männer spielen Fußball."],
}


def test_metrics_are_those_of_texts_alone_and_of_a_system() -> None:
    config = EvaluationConfig(bleu_tokenize="13a")
    bleu = metric_scores("bleu", TEXTS, REFERENCES, config)
    chrf = metric_scores("chrf", TEXTS, REFERENCES, config)
    for (segment, system), text in TEXTS.items():
        wanted = REFERENCES[segment]
        assert bleu.by_unit[segment, system] == pytest.approx(sentence_bleu(text, wanted).score)
        assert chrf.by_unit[segment, system] == pytest.approx(sentence_chrf(text, wanted).score)
    for system in "ab":
        texts = [text for (_, name), text in TEXTS.items() if name == system]
        expected = corpus_bleu(
            texts, [[first for first, *_ in REFERENCES.values()], [REFERENCES["t:1"][1], None]], force=True
        )
        assert bleu.by_system[system] == pytest.approx(expected.score)
    exact = metric_scores("exact_match", {("t:1", "a"): REFERENCES["t:1"][1]}, REFERENCES, config)
    assert exact.by_unit == {("t:1", "a"): 100}


@pytest.mark.parametrize(
    "metric", ["bleu", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "meteor", "cider_d", "exact_match"]
)
def test_more_is_better(metric: str) -> None:
    scores = metric_scores(
        metric, {**TEXTS, ("t:1", "c"): REFERENCES["t:1"][0]}, REFERENCES, EvaluationConfig(bleu_tokenize="13a")
    )
    assert scores.by_unit["t:1", "c"] > scores.by_unit["t:1", "b"]
    assert scores.by_unit.keys() == {*TEXTS, ("t:1", "c")}


def test_cider_d_has_the_document_frequencies_of_all_segments_for_each_system() -> None:
    """Also for a system of which one text alone was judged."""
    references = {**REFERENCES, "t:3": ["Ein Hund spielt.", "Zwei Männer warten hier."]}
    texts = {**TEXTS, ("t:3", "a"): "Ein Hund wartet.", ("t:3", "c"): "Zwei Männer warten."}
    scores = metric_scores("cider_d", texts, references, EvaluationConfig())
    documents = [[tokens_of_words(text) for text in each] for each in references.values()]
    for system in "abc":
        given = [tokens_of_words(texts.get((segment, system), "")) for segment in references]
        values = dict(zip(references, plain.cider_d(given, documents), strict=True))
        own = {segment: values[segment] for segment, name in texts if name == system}
        assert {s: value for (s, name), value in scores.by_unit.items() if name == system} == pytest.approx(own)
        assert scores.by_system[system] == pytest.approx(sum(own.values()) / len(own))
    assert scores.by_unit["t:3", "c"] > 0
    assert "|nrefs:var" in f"|{scores.signature}"
    assert "|documents:3|" in scores.signature


def test_scripts_without_spaces_are_read() -> None:
    texts = {("t:1", "a"): "一只狗在草地上跑。", ("t:1", "b"): "كلب يجري"}
    for name, reference in (("zh", "一只狗在草地上奔跑。"), ("13a", "كلب يجري على العشب")):
        scores = metric_scores("bleu", texts, {"t:1": [reference]}, EvaluationConfig(bleu_tokenize=name))  # type: ignore[arg-type]
        assert max(scores.by_unit.values()) > 20


def test_pairs_are_differences() -> None:
    found = pair_differences({("t:1", "a"): 50, ("t:1", "b"): 20, ("t:2", "a"): 7}, {"a > b": ("a", "b")})
    assert found == {("t:1", "a > b"): 30}


def test_a_metric_beside_judges() -> None:
    human = {(f"t:{line}", system): float(line + 5 * (system == "b")) for line in range(6) for system in "abc"}
    scores = {unit: value**3 for unit, value in human.items() if unit[1] != "c"}
    found = correlate_metric(
        "chrf", MetricScores("how", scores, {"a": 10, "b": 30}), human, {"a": 1, "b": 2, "c": 9}, 50
    )
    assert found.signature == "how"
    assert found.kendall.value == 1
    assert found.pearson.value is not None
    assert 0.8 < found.pearson.value < 1
    assert (found.num_units, found.num_segments, found.num_systems) == (12, 6, 2)
    assert (found.system_kendall, found.system_pearson) == (1, pytest.approx(1))
    alone = correlate_metric("chrf", MetricScores("how", {("t:1", "a"): 1.0}, {"a": 1}), {("t:1", "a"): 1.0}, {"a": 1})
    assert (alone.kendall.value, alone.system_pearson) == (None, None)
