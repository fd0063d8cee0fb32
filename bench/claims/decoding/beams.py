"""Larger beams stop helping: BLEU by beam, of models trained with and without label smoothing, three seeds."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.seeds import format_seeds
from bench.claims.training.smoothing import RATES, SEEDS, train_smoothed
from tfm.pipeline.config import LengthNorm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEAMS = (1, 2, 4, 8, 16, 32, 64)
NORMALIZED, PLAIN = "log p / length", "log p"
LENGTH_NORMS: Mapping[str, LengthNorm] = {NORMALIZED: "average", PLAIN: "none"}


def measure(beams: Sequence[int] = BEAMS, num_pairs: int = 300, seeds: Sequence[int] = SEEDS) -> Found:
    """BLEU and length of the translations, by rate of smoothing, how hypotheses are ranked, beam, and seed."""
    import sacrebleu

    import tfm
    from tfm.data.synthetic.grammar import generate

    sources, references = map(list, zip(*generate("test", num_pairs, 1), strict=True))
    scores_by_rate: dict[str, dict[str, list[dict[str, list[float]]]]] = {}
    for rate in RATES:
        models = [tfm.load(train_smoothed(rate, seed), device="cpu") for seed in seeds]
        by_ranking = scores_by_rate.setdefault(str(rate), {})
        for ranking, norm in LENGTH_NORMS.items():
            by_ranking[ranking] = []
            for beam in beams:
                texts = [model.translate(sources, beam=beam, length_norm=norm) for model in models]
                scores = [sacrebleu.corpus_bleu(each, [references]) for each in texts]
                lengths = [each.sys_len / each.ref_len for each in scores]
                by_ranking[ranking].append({"bleu": [each.score for each in scores], "length": lengths})
    return {"beams": list(beams), "pairs": num_pairs, "seeds": list(seeds), "scores": scores_by_rate}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: means, and deviations of BLEU."""
    texts = {}
    for rate, by_ranking in data["scores"].items():
        for ranking, of_beams in by_ranking.items():
            for beam, scores in zip(data["beams"], of_beams, strict=True):
                texts[f"BLEU, eps = {rate}, {ranking}, beam {beam}"] = format_seeds(scores["bleu"])
            length = statistics.fmean(of_beams[-1]["length"])
            texts[f"length, eps = {rate}, {ranking}, widest beam"] = f"{length:.2f}"
    return texts


def draw(data: Found) -> "Figure":
    """Mean BLEU over beam, on a log axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for (rate, by_ranking), colour in zip(data["scores"].items(), ("#3182bd", "#e6550d"), strict=True):
        for (ranking, of_beams), style in zip(by_ranking.items(), ("-", "--"), strict=True):
            values = [statistics.fmean(each["bleu"]) for each in of_beams]
            axes.plot(data["beams"], values, style, color=colour, marker=".", label=f"eps = {rate}, {ranking}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(data["beams"], [str(each) for each in data["beams"]])
    axes.set_xlabel("beam")
    axes.set_title(f"BLEU of {data['pairs']} sentences", loc="left")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("larger beams stop helping", measure, figures, draw)
