"""What a test of significance promises: of systems that are the same it says "better" in 5 of 100 cases, and a real
difference it finds as often as theory says."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.significance.paired_tests import PairedDifference, compare_systems
from tfm.pipeline.significance.seeds import SeedDifference, compare_recipes
from tfm.pipeline.significance.segment_statistics import (
    SegmentStatistics,
    mean_statistics,
    perplexity_statistics,
    ratio_statistics,
    segment_statistics,
)

Array = NDArray[np.float64]
Pair = tuple[SegmentStatistics, SegmentStatistics]
Draw = Callable[[np.random.Generator], Pair]
LEVEL, WITHIN = 5.0, 1.5  # percent of 2,000 draws
DRAWS = 2_000
SEGMENTS = 150
NOISE = 0.6


def continuous(rng: np.random.Generator, shift: float = 0.0, num_segments: int = SEGMENTS) -> Pair:
    """A score as METEOR's: segments are hard or easy for both systems; the system's scores are `shift` higher."""
    shared = rng.normal(0, 1, num_segments)
    one, other = (shared + rng.normal(0, NOISE, num_segments) for _ in range(2))
    return mean_statistics(one), mean_statistics(other + shift)


def exact_match(rng: np.random.Generator) -> Pair:
    """A score of two values, with ties."""
    share = rng.beta(1, 1, SEGMENTS)
    one, other = (100.0 * (rng.random(SEGMENTS) < share) for _ in range(2))
    return mean_statistics(one), mean_statistics(other)


def perplexity(rng: np.random.Generator) -> Pair:
    """Sentences of all lengths, whose words are about as probable to both models."""
    words = rng.integers(1, 40, SEGMENTS)
    shared = words * rng.gamma(4, 0.5, SEGMENTS)
    one, other = (shared + rng.normal(0, 0.8, SEGMENTS) * np.sqrt(words) for _ in range(2))
    return tuple(perplexity_statistics(list(-each), list(map(int, words))) for each in (one, other))  # type: ignore[return-value]


def tags(rng: np.random.Generator) -> Pair:
    """Accuracy of tags; some sentences are hard."""
    words = rng.integers(1, 40, SEGMENTS)
    share = rng.beta(8, 2, SEGMENTS)
    one, other = (rng.binomial(words, share) for _ in range(2))
    return ratio_statistics(list(one), list(words), scale=100), ratio_statistics(list(other), list(words), scale=100)


def plain_bleu(sums: Array) -> Array:
    """BLEU as Papineni et al. 2002 have it, from sums of sacrebleu's statistics."""
    length, reference, matched, total = sums[..., 0], sums[..., 1], sums[..., 2:6], sums[..., 6:]
    brevity = np.exp(np.minimum(0, 1 - reference / length))
    found: Array = 100 * brevity * np.exp(np.log(matched / total).mean(-1))
    return found


def bleu_of_two() -> Pair:
    """Two systems that leave out and put in words, with the same chances: 1,000 segments each."""
    draw, words = random.Random(4), "ein Hund läuft über die große Wiese und bellt laut . , nicht".split()
    reference = [" ".join(draw.choices(words, k=draw.randint(3, 25))) for _ in range(1000)]
    systems = [
        [
            " ".join(
                word if draw.random() < 0.8 else draw.choice(words) for word in text.split() if draw.random() < 0.9
            )
            for text in reference
        ]
        for _ in range(2)
    ]
    one, other = segment_statistics("bleu", systems, [reference], EvaluationConfig())
    assert float(plain_bleu(one.rows.sum(0))) == pytest.approx(one.value)
    return one, other


def macro_f1_of_two() -> Pair:
    draw = random.Random(4)
    labels = "A B C D E F".split()
    reference = [draw.choices(labels, weights=[20, 10, 5, 3, 2, 1])[0] for _ in range(1000)]
    systems = [[label if draw.random() < 0.7 else draw.choice(labels) for label in reference] for _ in range(2)]
    one, other = segment_statistics("macro_f1", systems, [reference], EvaluationConfig(labels="line"))
    return one, other


def swapping(make: Callable[[], Pair], score: Callable[[Array], Array] | None = None) -> Draw:
    """Test sets from these segments; which output is which system's is drawn for each."""
    one, other = make()
    both = np.stack([one.rows, other.rows])

    def draw(rng: np.random.Generator) -> Pair:
        chosen, side = rng.choice(len(one), SEGMENTS, replace=False), rng.integers(2, size=SEGMENTS)
        first, second = both[side, chosen], both[1 - side, chosen]
        return SegmentStatistics(first, score or one.score), SegmentStatistics(second, score or one.score)

    return draw


def differences(draw: Draw, draws: int, resamples: int, trials: int) -> list[PairedDifference]:
    rng, found = np.random.default_rng(17), []
    for _ in range(draws):
        versus = compare_systems(draw(rng), resamples=resamples, trials=trials)[1].versus
        assert versus is not None
        found.append(versus)
    return found


def percent(found: list[bool]) -> float:
    return 100 * sum(found) / len(found)


def rate_of_sacrebleus_bootstrap() -> float:
    """How often |d*| - mean |d*| > |d| has p < 0.05 of systems that are the same, where d and d* - d are normal."""

    def p_value(size: float) -> float:
        mean = float(stats.foldnorm.mean(size))
        return float(stats.norm.sf(size + mean - size) + stats.norm.cdf(-size - mean - size))

    least = optimize.brentq(lambda size: p_value(size) - 0.05, 0.1, 5)
    return float(100 * 2 * stats.norm.sf(least))


KINDS: dict[str, Callable[[], Draw]] = {
    "continuous": lambda: continuous,
    "exact_match": lambda: exact_match,
    "perplexity": lambda: perplexity,
    "tags": lambda: tags,
    "bleu": lambda: swapping(bleu_of_two, plain_bleu),
    "macro_f1": lambda: swapping(macro_f1_of_two),
}


def test_same_systems_are_found_to_differ_in_about_5_of_100_cases() -> None:
    found = differences(continuous, 300, resamples=200, trials=200)
    assert 1.5 < percent([each.p < 0.05 for each in found]) < 9
    assert 1.5 < percent([not each.low <= 0 <= each.high for each in found]) < 9.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_same_systems_are_found_to_differ_in_5_of_100_cases(kind: str) -> None:
    found = differences(KINDS[kind](), DRAWS, resamples=1000, trials=2000)
    rates = {
        "randomisation": percent([each.p < 0.05 for each in found]),
        "interval": percent([not each.low <= 0 <= each.high for each in found]),
        "sacrebleu's bootstrap": percent([each.p_bootstrap < 0.05 for each in found]),
    }
    assert rates["randomisation"] == pytest.approx(LEVEL, abs=WITHIN)
    assert rates["interval"] == pytest.approx(LEVEL, abs=WITHIN)
    assert rates["sacrebleu's bootstrap"] == pytest.approx(rate_of_sacrebleus_bootstrap(), abs=2 * WITHIN)


def power_by_theory(in_errors: float) -> float:
    """Of a two-sided test at 5 %, in percent, where the difference is so many standard errors."""
    limit = stats.norm.ppf(0.975)
    return float(100 * (stats.norm.sf(limit - in_errors) + stats.norm.cdf(-limit - in_errors)))


@pytest.mark.slow
@pytest.mark.parametrize("in_errors", [1.0, 2.0, 2.8])
def test_a_planted_difference_is_found_at_the_power_of_theory(in_errors: float) -> None:
    shift = in_errors * NOISE * np.sqrt(2 / SEGMENTS)
    found = differences(lambda rng: continuous(rng, shift), DRAWS, resamples=20, trials=1000)
    expected = power_by_theory(in_errors)
    assert percent([each.p < 0.05 for each in found]) == pytest.approx(expected, abs=3)


def test_a_planted_difference_is_found_about_as_often_as_theory_says() -> None:
    shift = 2 * NOISE * np.sqrt(2 / SEGMENTS)
    found = differences(lambda rng: continuous(rng, shift), 200, resamples=20, trials=200)
    assert percent([each.p < 0.05 for each in found]) == pytest.approx(power_by_theory(2), abs=10)


def recipe(
    rng: np.random.Generator, num_seeds: int, shared: Array, *, of_seeds: float, of_recipe: float, shift: float = 0.0
) -> list[SegmentStatistics]:
    """Runs of one recipe: what each part adds to a segment's score, the part of seed and segment being 1."""
    of_all = shared + shift + rng.normal(0, of_recipe, len(shared))
    return [mean_statistics(of_all + rng.normal(0, of_seeds) + rng.normal(0, 1, len(shared))) for _ in range(num_seeds)]


def over_seeds(
    num_seeds: int, draws: int, *, of_seeds: float, of_recipe: float, shift: float = 0.0
) -> list[SeedDifference]:
    rng, found = np.random.default_rng(23), []
    for _ in range(draws):
        shared = rng.normal(0, 1, SEGMENTS)
        pair = [
            recipe(rng, num_seeds, shared, of_seeds=of_seeds, of_recipe=of_recipe, shift=each) for each in (0, shift)
        ]
        versus = compare_recipes(pair)[1].versus
        assert versus is not None
        found.append(versus)
    return found


PARTS = {
    "no effect of seeds": (0.0, 0.0),
    "no effect of seeds, recipes suit other segments": (0.0, 0.7),
    "seeds matter as much as segments": (0.08, 0.0),
    "seeds and recipes matter": (0.08, 0.7),
    "seeds matter most": (0.5, 0.0),
}
"""Standard deviations of seeds and of a recipe's segments; a mean over segments has 0.08 of the part of both."""


@pytest.mark.slow
@pytest.mark.parametrize("num_seeds", [3, 5])
@pytest.mark.parametrize("parts", PARTS)
def test_same_recipes_are_found_to_differ_in_5_of_100_cases(parts: str, num_seeds: int) -> None:
    of_seeds, of_recipe = PARTS[parts]
    found = over_seeds(num_seeds, DRAWS, of_seeds=of_seeds, of_recipe=of_recipe)
    assert percent([each.p < 0.05 for each in found]) == pytest.approx(LEVEL, abs=WITHIN)
    assert percent([not each.low <= 0 <= each.high for each in found]) == pytest.approx(LEVEL, abs=WITHIN)


@pytest.mark.few(2)
@pytest.mark.parametrize("parts", PARTS)
def test_same_recipes_are_found_to_differ_in_about_5_of_100_cases(parts: str) -> None:
    of_seeds, of_recipe = PARTS[parts]
    found = over_seeds(3, 200, of_seeds=of_seeds, of_recipe=of_recipe)
    assert 1 <= percent([each.p < 0.05 for each in found]) < 10


def test_a_test_over_segments_alone_finds_seeds() -> None:
    """Why seeds need a test of their own: two models of one recipe differ."""
    rng, found = np.random.default_rng(5), []
    for _ in range(100):
        shared = rng.normal(0, 1, SEGMENTS)
        pair = [recipe(rng, 1, shared, of_seeds=0.3, of_recipe=0.0)[0] for _ in range(2)]
        versus = compare_systems(pair, resamples=20, trials=200)[1].versus
        assert versus is not None
        found.append(versus.p < 0.05)
    assert percent(found) > 40


@pytest.mark.slow
@pytest.mark.parametrize("num_seeds", [3, 5])
@pytest.mark.parametrize("parts", ["seeds matter most", "no effect of seeds, recipes suit other segments"])
def test_a_better_recipe_is_found_at_the_power_of_theory(parts: str, num_seeds: int) -> None:
    of_seeds, of_recipe = PARTS[parts]
    error = np.sqrt(2 * (of_seeds**2 / num_seeds + of_recipe**2 / SEGMENTS + 1 / (num_seeds * SEGMENTS)))
    found = over_seeds(num_seeds, DRAWS, of_seeds=of_seeds, of_recipe=of_recipe, shift=2.8 * error)
    # the test's own degrees of freedom, which are few where seeds matter
    degrees = np.median([each.degrees_of_freedom for each in found])
    limit = stats.t.ppf(0.975, degrees)
    expected = 100 * (stats.nct.sf(limit, degrees, 2.8) + stats.nct.cdf(-limit, degrees, 2.8))
    assert percent([each.p < 0.05 for each in found]) == pytest.approx(expected, abs=4)
