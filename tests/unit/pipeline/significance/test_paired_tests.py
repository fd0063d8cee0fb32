"""Paired tests: those of sacrebleu to the last digit, and ours against every way there is to draw."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.significance import PairedTest

from tfm.data.errors import DataError
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.significance import resampling
from tfm.pipeline.significance.paired_tests import PairedDifference, SystemResult, compare_systems
from tfm.pipeline.significance.resampling import (
    bootstrap_p,
    bootstrap_scores,
    percentile_interval,
    randomisation_p_values,
    resampling_seed,
)
from tfm.pipeline.significance.segment_statistics import (
    SegmentStatistics,
    mean_statistics,
    perplexity_statistics,
    ratio_statistics,
    segment_statistics,
)

WORDS = "der die das Hund Katze für läuft, schläft; sieht. 3,5 Übel-keit nicht! (weiß) U.S. الكلب 狗".split(" ")
CONFIG = EvaluationConfig()


def corpus(size: int, kept: Sequence[float]) -> tuple[list[list[str]], list[str]]:
    """Systems that keep so much of the reference, which has lines of all lengths; the first hypotheses are empty."""
    draw = random.Random(1)
    reference = [" ".join(draw.choices(WORDS, k=draw.randint(1, 20))) for _ in range(size)]
    systems = [
        [" ".join(word for word in text.split() if draw.random() < share) for text in reference] for share in kept
    ]
    return [["", *system[1:]] for system in systems], reference


def randomisation_p(baseline: SegmentStatistics, system: SegmentStatistics, *, trials: int) -> float:
    ((p, _),) = randomisation_p_values(baseline, [system], trials=trials)
    return p


def versus(result: SystemResult) -> PairedDifference:
    assert result.versus is not None
    return result.versus


def sacrebleu(
    folder: Path, systems: Sequence[Sequence[str]], references: Sequence[Sequence[str]], *options: str
) -> str:
    files = [folder / f"{place}" for place in range(len(references) + len(systems))]
    for file, lines in zip(files, (*references, *systems), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = [str(file) for file in files]
    command = [*given[: len(references)], "-i", *given[len(references) :], *options, "-w", "15"]
    done = subprocess.run([sys.executable, "-m", "sacrebleu", *command], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
def test_equals_the_sacrebleu_command_to_the_last_digit(tmp_path: Path) -> None:
    systems, reference = corpus(150, (0.8, 0.84, 0.8))
    metrics = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
    told = json.loads(sacrebleu(tmp_path, systems, [reference], "--paired-ar", "--format", "json", "-m", *metrics))
    # its JSON cannot hold the interval of chrF
    table = sacrebleu(tmp_path, systems, [reference], "--paired-bs", "--format", "text", "-m", *metrics)
    cells = re.findall(r"(\d+\.\d+) \((\d+\.\d+) ± (\d+\.\d+)\)", table)
    p_values = re.findall(r"\(p = (\d\.\d+)\)", table)
    assert (len(cells), len(p_values)) == (9, 6)
    for column, (metric, name) in enumerate(metrics.items()):
        found = compare_systems(segment_statistics(metric, systems, [reference], CONFIG))
        assert [result.value for result in found] == [entry[name]["score"] for entry in told]
        assert [versus(result).p_randomisation for result in found[1:]] == [
            entry[name]["p_value"] for entry in told[1:]
        ]
        for result, cell in zip(found, cells[column::3], strict=True):
            assert tuple(f"{figure:.15f}" for figure in (result.value, result.mean, result.half_width)) == cell
        assert [f"{versus(result).p_bootstrap:.4f}" for result in found[1:]] == p_values[column::3]
        assert 0.001 < min(versus(result).p_bootstrap for result in found[1:]) < 0.9


@pytest.mark.slow
def test_equals_the_sacrebleu_command_on_chinese_with_two_references(tmp_path: Path) -> None:
    draw = random.Random(2)
    references = [
        ["".join(draw.choices("狗猫跑睡看不大小的在，。AbC", k=draw.randint(5, 20))) for _ in range(60)]
        for _ in range(2)
    ]
    systems = [
        [
            "".join(char for char in draw.choice(texts) if draw.random() < share)
            for texts in zip(*references, strict=True)
        ]
        for share in (0.85, 0.88)
    ]
    config = EvaluationConfig(lowercase=True)
    for test, p_value in (("--paired-ar", "p_randomisation"), ("--paired-bs", "p_bootstrap")):
        told = json.loads(sacrebleu(tmp_path, systems, references, test, "--format", "json", "-tok", "zh", "-lc"))
        found = compare_systems(segment_statistics("bleu", systems, references, config))
        assert [result.value for result in found] == [entry["BLEU"]["score"] for entry in told]
        assert getattr(found[1].versus, p_value) == told[1]["BLEU"]["p_value"]
        if test == "--paired-bs":
            figures = [(result.mean, result.half_width) for result in found]
            assert figures == [(entry["BLEU"]["mean"], entry["BLEU"]["ci"]) for entry in told]


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "ter"])
def test_statistics_counted_before_give_what_sacrebleu_finds_in_the_texts(metric: str) -> None:
    systems, reference = corpus(50, (0.8, 0.82))
    statistics = segment_statistics(metric, systems, [reference], CONFIG)
    found = compare_systems(statistics, resamples=100, trials=100)
    metrics: Any = {metric: statistics[0].sacrebleu}
    for test_type, name in (("bs", "p_bootstrap"), ("ar", "p_randomisation")):
        test = PairedTest([("one", systems[0]), ("other", systems[1])], metrics, [reference], test_type, n_samples=100)
        _, told = test()
        results: Any = list(told.values())[1]
        assert [each.score for each in results] == [each.value for each in found]
        assert results[1].p_value == getattr(found[1].versus, name)
        if test_type == "bs":
            assert [(each.mean, each.ci) for each in results] == [(each.mean, each.half_width) for each in found]


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_our_draws_on_sacrebleus_statistics_give_its_figures(metric: str) -> None:
    """The same tests written twice: sacrebleu's, one draw at a time in float32, and ours, matrices in float64."""
    systems, reference = corpus(100, (0.8, 0.82))
    statistics = segment_statistics(metric, systems, [reference], CONFIG)
    theirs = compare_systems(statistics, resamples=200, trials=500)
    ours = compare_systems([replace(each, sacrebleu=None) for each in statistics], resamples=200, trials=500)
    assert versus(ours[1]).p_bootstrap == versus(theirs[1]).p_bootstrap
    assert versus(ours[1]).p == versus(ours[1]).p_randomisation == versus(theirs[1]).p
    if metric == "ter":  # edits are whole numbers, so that there are ties, which sacrebleu does not count
        assert versus(theirs[1]).p_randomisation < versus(theirs[1]).p < versus(theirs[1]).p_randomisation + 0.1
    else:
        assert versus(ours[1]).p == versus(theirs[1]).p_randomisation
    assert 0.01 < versus(ours[1]).p_bootstrap < 0.9
    for mine, their in zip(ours, theirs, strict=True):
        assert (mine.mean, mine.half_width) == pytest.approx((their.mean, their.half_width), abs=1e-4)
        assert (mine.low, mine.high) == (their.low, their.high)
        assert their.low is not None
        assert their.high is not None
        assert (their.high - their.low) / 2 == pytest.approx(their.half_width, abs=1e-4)


def test_randomisation_equals_all_ways_to_swap() -> None:
    """Of 8 segments 256 ways; exact match has ties, and perplexity is no mean."""
    for baseline, system in (
        (mean_statistics([0, 0, 1, 0, 0, 1, 0, 1]), mean_statistics([1, 1, 1, 0, 1, 1, 1, 0])),
        (
            perplexity_statistics([-3, -9, -4, -2, -8, -5, -6, -1], [3] * 8),
            perplexity_statistics([-2, -7, -5, -2, -6, -4, -6, -2], [3] * 8),
        ),
    ):
        gap = abs(system.value - baseline.value)
        both = np.stack([baseline.rows, system.rows])
        gaps = []
        for swaps in product([0, 1], repeat=8):
            one = both[list(swaps), range(8)].sum(0)
            gaps.append(abs(system.score(one) - system.score(both.sum((0, 1)) - one)))
        exact = np.mean(np.array(gaps) >= gap - 1e-12)
        assert 0.05 < exact < 0.5
        assert randomisation_p(baseline, system, trials=40_000) == pytest.approx(exact, abs=0.01)


def test_ties_count_whatever_is_lost_in_rounding() -> None:
    """The same values in tenths have the same p, though sums of tenths are not exact; two scores of 0 always tie."""
    random = np.random.default_rng(1)
    one, other = random.integers(0, 4, 20), random.integers(0, 4, 20)
    whole, tenths = (
        randomisation_p(mean_statistics(other * unit), mean_statistics(one * unit), trials=500) for unit in (1.0, 0.1)
    )
    assert whole == tenths
    nothing = [ratio_statistics([0, 0, 0, 0], wholes) for wholes in ([1, 2, 3, 4], [2, 2, 2, 2])]
    assert randomisation_p(*nothing, trials=50) == 1


def test_bootstrap_equals_all_resamples() -> None:
    """Of 5 segments 3,125 resamples: their scores' percentiles, and sacrebleu's p-value by its formula."""
    baseline, system = mean_statistics([3, 1, 4, 1, 5]), mean_statistics([5, 1, 4, 3, 4])
    resamples = np.array(list(product(range(5), repeat=5)))
    every = np.stack([each.rows[resamples, 0].mean(1) for each in (baseline, system)])
    drawn = bootstrap_scores([baseline, system], resamples=40_000)
    assert drawn.mean(1) == pytest.approx(every.mean(1), abs=0.02)
    assert np.quantile(drawn, [0.1, 0.5, 0.8], axis=1) == pytest.approx(np.quantile(every, [0.1, 0.5, 0.8], axis=1))
    gaps, gap = np.abs(every[1] - every[0]), abs(system.value - baseline.value)
    exact = np.mean(gaps - gaps.mean() > gap)
    assert 0.05 < exact < 0.5
    assert bootstrap_p(baseline, system, drawn[1] - drawn[0]) == pytest.approx(exact, abs=0.02)


def test_blocks_change_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    systems = [mean_statistics(draw.normal(size=37)) for _ in range(2)]
    whole = bootstrap_scores(systems, resamples=500), randomisation_p(*systems, trials=500)
    monkeypatch.setattr(resampling, "_MAX_BLOCK_CELLS", 1)
    assert (bootstrap_scores(systems, resamples=500) == whole[0]).all()
    assert randomisation_p(*systems, trials=500) == whole[1]


def test_the_interval_is_of_the_ordered_resamples() -> None:
    assert percentile_interval(np.arange(1000.0)[::-1]) == (25, 974)
    assert percentile_interval(np.array([4.0])) == (4, 4)


@pytest.mark.parametrize("metric", ["bleu", "ter", "exact_match", "macro_f1"])
def test_a_system_is_not_better_than_itself(metric: str) -> None:
    """sacrebleu says p = 1 / (draws + 1) here."""
    systems, reference = corpus(20, (0.8,))
    same = compare_systems(segment_statistics(metric, systems * 2, [reference], CONFIG), resamples=50, trials=50)[1]
    found = versus(same)
    assert (found.difference, found.low, found.high, found.num_apart) == (0, None, None, 0)
    assert (found.p_bootstrap, found.p_randomisation, found.p, found.better, found.is_significant) == (
        1,
        1,
        1,
        None,
        False,
    )


@pytest.mark.parametrize("metric", ["bleu", "exact_match"])
def test_two_segments_are_no_evidence(metric: str) -> None:
    """Two sentences better, the rest the same: by chance in one case of two. sacrebleu counts no ties: its least p."""
    reference = [f"ein Hund läuft {number}" for number in range(50)]
    worse = ["keine Ahnung", "was ist das", *reference[2:]]
    found = versus(compare_systems(segment_statistics(metric, [worse, reference], [reference], CONFIG), trials=999)[1])
    assert found.num_apart == 2
    assert found.p == pytest.approx(0.5, abs=0.06)
    assert found.p_randomisation == (pytest.approx(0.001) if metric == "bleu" else pytest.approx(0.5, abs=0.06))
    assert not found.is_significant


def test_higher_or_lower_is_better() -> None:
    baseline = [1.0, 2, 3, 4, 5, 6, 7, 8]
    for higher in (True, False):
        systems = [
            mean_statistics(values, higher_is_better=higher) for values in (baseline, [value + 1 for value in baseline])
        ]
        found = versus(compare_systems(systems)[1])
        assert (found.difference, found.low, found.high, found.better) == (1, None, None, higher)
        assert found.is_significant


def test_holm_is_over_all_systems_of_the_call() -> None:
    draw = np.random.default_rng(0)
    baseline = draw.normal(size=60)
    systems = [mean_statistics(baseline + draw.normal(shift, 1, size=60)) for shift in (0.3, 0.35, 0.4)]
    alone = [versus(compare_systems([mean_statistics(baseline), each])[1]).p for each in systems]
    together = [versus(result) for result in compare_systems([mean_statistics(baseline), *systems])[1:]]
    assert [each.p for each in together] == alone
    ordered = sorted(zip(alone, (each.p_holm for each in together), strict=True))
    assert ordered[0][1] == 3 * ordered[0][0]
    assert all(p_holm >= p for p, p_holm in ordered)


def test_infinite_perplexities_are_not_compared() -> None:
    """Beyond what a float holds, as `exp_or_inf` has them."""
    finite, infinite = perplexity_statistics([-1.0, -1.0], [1, 1]), perplexity_statistics([-1e6, -1e6], [1, 1])
    for pair in ([finite, infinite], [infinite, finite], [infinite, replace(infinite, rows=infinite.rows * 2)]):
        found = versus(compare_systems(pair, resamples=20, trials=20)[1])
        assert (found.p_bootstrap, found.p, found.is_significant) == (1, 1, False)


def test_numbers_that_are_none_are_refused() -> None:
    for wrong in (np.nan, np.inf):
        with pytest.raises(DataError, match="line 2 has no finite number"):
            compare_systems([mean_statistics([1, 2, 3]), mean_statistics([1, wrong, 3])])


def test_the_baseline_alone_has_an_interval() -> None:
    systems, reference = corpus(100, (0.8,))
    (found,) = compare_systems(segment_statistics("bleu", systems, [reference], CONFIG), resamples=100)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert found.versus is None


def test_systems_of_other_segments_are_refused() -> None:
    for systems in ([mean_statistics([1, 2]), mean_statistics([1])], [mean_statistics([])]):
        with pytest.raises(DataError, match="segments: compare them on the same ones"):
            compare_systems(systems)


def test_the_seed_is_sacrebleus(monkeypatch: pytest.MonkeyPatch) -> None:
    systems, reference = corpus(40, (0.8, 0.82))
    draw = np.random.default_rng(2)
    ours, theirs = (
        [mean_statistics(draw.normal(size=40)) for _ in range(2)],
        segment_statistics("bleu", systems, [reference], CONFIG),
    )

    def p_values() -> list[float]:
        return [
            p
            for pair in (ours, theirs)
            for found in [versus(compare_systems(pair, resamples=100, trials=100)[1])]
            for p in (found.p_bootstrap, found.p_randomisation)
        ]

    usual = p_values()
    assert p_values() == usual
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    assert p_values() == usual
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    seven = p_values()
    assert all(mine != other for mine, other in zip(seven, usual, strict=True))
    assert p_values() == seven
    monkeypatch.setenv("SACREBLEU_SEED", "None")
    assert resampling_seed() is None
    for wrong in ("-1", "x", ""):
        monkeypatch.setenv("SACREBLEU_SEED", wrong)
        with pytest.raises(RecipeError, match="SACREBLEU_SEED"):
            compare_systems(ours)
