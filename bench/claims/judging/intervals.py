"""A score has an interval, and a small test set a wide one: BLEU of greedy and beam search of one model, by its size.

Half of the 95 % interval by bootstrap (Koehn 2004) shrinks with the square root of the number of segments.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench.claims.claim import Claim, Found
from bench.claims.training.smoothing import RATES, train_smoothed
from tfm.pipeline.significance.segment_statistics import SegmentStatistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (50, 100, 200, 400, 800)
NUM_PAIRS, DRAWS = 1600, 40
BEAMS, LEVEL = (1, 4), 0.05


def measure(sizes: Sequence[int] = SIZES, num_pairs: int = NUM_PAIRS, draws: int = DRAWS) -> Found:
    """By size of test sets drawn from a large one: half an interval, and how often two systems are found to differ."""
    import tfm
    from tfm.data.synthetic.grammar import generate
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.significance.segment_statistics import segment_statistics

    sources, references = map(list, zip(*generate("test", num_pairs, 1), strict=True))
    model = tfm.load(train_smoothed(RATES[-1], 1), device="cpu")
    texts = [model.translate(sources, beam=beam) for beam in BEAMS]
    systems = segment_statistics("bleu", texts, [references], EvaluationConfig())
    return {"sizes": list(sizes), "bleu": [each.value for each in systems], "of": resample(systems, sizes, draws)}


def resample(systems: Sequence[SegmentStatistics], sizes: Sequence[int], draws: int) -> list[dict[str, float]]:
    """For each size: the mean half interval of the first system, the share of draws in which the two differ, the share
    in which the worse of the two is ahead.
    """
    from dataclasses import replace

    from tfm.pipeline.significance.resampling import bootstrap_scores, percentile_interval, randomisation_p_values

    generator, results = np.random.default_rng(1), []
    true = systems[1].value - systems[0].value
    for size in sizes:
        half, differs, wrong = [], [], []
        for _ in range(draws):
            rows = generator.choice(len(systems[0]), size, replace=False)
            first, second = (replace(each, rows=each.rows[rows]) for each in systems)
            low, high = percentile_interval(bootstrap_scores([first], resamples=400)[0])
            half.append((high - low) / 2)
            ((p, _),) = randomisation_p_values(first, [second], trials=400)
            differs.append(p < LEVEL)
            wrong.append((second.value - first.value) * true < 0)
        results.append({"half": float(np.mean(half)), "apart": float(np.mean(differs)), "wrong": float(np.mean(wrong))})
    return results


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {f"BLEU, beam {beam}": f"{bleu:.1f}" for beam, bleu in zip(BEAMS, data["bleu"], strict=True)}
    for size, shares in zip(data["sizes"], data["of"], strict=True):
        texts[f"half of the interval, {size} segments"] = f"± {shares['half']:.1f}"
        texts[f"found to differ, {size} segments"] = f"{100 * shares['apart']:.0f} %"
        texts[f"the worse one ahead, {size} segments"] = f"{100 * shares['wrong']:.0f} %"
    return texts


def draw(data: Found) -> "Figure":
    """Both over the number of segments."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(data["sizes"], [each["half"] for each in data["of"]], marker=".", label="measured")
    first = data["of"][0]["half"] * data["sizes"][0] ** 0.5
    left.plot(data["sizes"], [first / size**0.5 for size in data["sizes"]], "--", color="#999999", label="1 / √n")
    left.set_yscale("log")
    left.set_title("half of BLEU's 95 % interval", loc="left")
    for key, label in (("apart", "differ, p < 0.05"), ("wrong", "the worse one is ahead")):
        right.plot(data["sizes"], [100 * each[key] for each in data["of"]], marker=".", label=label)
    right.set_title("beams of 1 and 4, % of test sets", loc="left")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(data["sizes"], [str(each) for each in data["sizes"]])
        axes.set_xlabel("segments")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


CLAIM = Claim("a score has an interval, and a small test set a wide one", measure, figures, draw)
