"""DotScore products grow with the square root of the width, and the softmax saturates; 1 / sqrt(d) stops it.

    q . k = sum_i q_i k_i has variance d where the q_i and k_i are independent, of mean 0 and variance 1
Legend: n keys · d width of queries and keys.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from bench.claims.attention.heads import NUMBERS, train_heads
from bench.claims.claim import Claim, Found
from tfm.model.attention.scores import DotScore, ScaledDotScore
from tfm.model.config import ModelConfig
from tfm.model.transformer.factory import ModuleFactory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = (4, 16, 64, 256, 1024)
KINDS: tuple[Literal["encoder", "cross"], ...] = ("encoder", "cross")
DIM = 64  # of the models of the claim `heads`
SCORES = {"q · k": DotScore, "q · k / √d": ScaledDotScore}
DRAWN, PROJECTED = "components of variance 1", "projections of rows of variance 1"


def draw_components(width: int, num_keys: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Queries and keys (n, d) whose components are independent, of mean 0 and variance 1."""
    query, key = torch.randn(2, num_keys, width, generator=generator)
    return query, key


def project_rows(width: int, num_keys: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Queries and keys (n, d) that a head of self-attention makes of normed rows with its initial weights."""
    config = {"architecture": "encoder_only", "task": "tagging", "encoder": {"dim": width, "heads": 1}}
    factory = ModuleFactory(ModelConfig.model_validate(config), torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        attention = factory.self_attention(factory.config.encoder, causal=False, layer_index=0)
    rows = torch.randn(num_keys, width, generator=generator)
    with torch.no_grad():
        query, key, _ = attention.query_key_value(rows).chunk(3, dim=-1)
    return query, key


SOURCES: dict[str, Callable[[int, int, torch.Generator], tuple[Tensor, Tensor]]] = {
    DRAWN: draw_components,
    PROJECTED: project_rows,
}


def measure() -> Found:
    """The scores of initial weights by width, and the entropy of trained attention."""
    return {**measure_initial(), "trained": {str(DIM // number): measure_trained(number) for number in NUMBERS}}


def measure_trained(number: int, num_texts: int = 40) -> dict[str, float]:
    """Mean entropy of the weights as a share of its most, by kind of attention, of a trained model of so many heads."""
    import tfm
    from tfm.data.synthetic.grammar import generate

    model = tfm.load(train_heads(number), device="cpu")
    shares: dict[str, list[float]] = {}
    for source, target in generate("test", num_texts, 1):
        attention = model.attend(source, target)
        for kind in KINDS:
            weights = torch.as_tensor(attention.weights(kind), dtype=torch.float64)
            entropy = -torch.special.xlogy(weights, weights).sum(-1)
            shares.setdefault(kind, []).append(float(entropy.mean()) / math.log(weights.shape[-1]))
    return {kind: sum(some) / len(some) for kind, some in shares.items()}


def measure_initial(widths: Sequence[int] = WIDTHS, num_keys: int = 64, draws: int = 20) -> Found:
    """Variance of the scores, and entropy and largest weight of their softmax, by width."""
    results: dict[str, dict[str, list[dict[str, float]]]] = {
        source: {name: [] for name in SCORES} for source in SOURCES
    }
    for source, make in SOURCES.items():
        for width in widths:
            generator = torch.Generator().manual_seed(width)
            pairs = [make(width, num_keys, generator) for _ in range(draws)]
            for name, score in SCORES.items():
                logits = torch.stack([score(1, width)(q[None, None], k[None, None])[0, 0] for q, k in pairs])
                results[source][name].append(describe_logits(logits))
    return {"widths": list(widths), "keys": num_keys, "scores": results}


def describe_logits(logits: Tensor) -> dict[str, float]:
    """The variance of logits (..., n), the entropy of their softmax as a share of log n, and its largest weight."""
    log_weights = logits.double().log_softmax(-1)
    entropy = -(log_weights.exp() * log_weights).sum(-1).mean() / math.log(logits.shape[-1])
    largest = log_weights.exp().amax(-1).mean()
    return {"variance": float(logits.double().var()), "entropy": float(entropy), "largest": float(largest)}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: at the narrowest and the widest."""
    texts = {}
    for index, width in ((0, data["widths"][0]), (-1, data["widths"][-1])):
        for name, of_widths in data["scores"][PROJECTED].items():
            scores = of_widths[index]
            texts[f"variance of {name}, d = {width}"] = f"{scores['variance']:,.2f}"
            texts[f"entropy of {name}, d = {width}"] = f"{scores['entropy']:.0%}".replace("%", " %")
            texts[f"largest weight of {name}, d = {width}"] = f"{scores['largest']:.2f}"
    for width, kinds in data["trained"].items():
        for kind, share in kinds.items():
            texts[f"entropy after training, {kind}, d = {width}"] = f"{100 * share:.0f} %"
    return texts


def draw(data: Found) -> "Figure":
    """Variance and entropy over d."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, (key, title) in zip(
        figure.subplots(1, 2),
        (("variance", "variance of the score"), ("entropy", f"entropy of the weights of {data['keys']} keys, share")),
        strict=True,
    ):
        for (source, scores), style in zip(data["scores"].items(), ("-", "--"), strict=True):
            for (name, of_widths), colour in zip(scores.items(), ("#e6550d", "#3182bd"), strict=True):
                values = [each[key] for each in of_widths]
                axes.plot(data["widths"], values, style, color=colour, marker=".", label=f"{name}, {source}")
        axes.set_xscale("log", base=2)
        axes.set_xticks(data["widths"], [f"{each:,}" for each in data["widths"]])
        axes.set_xlabel("d")
        axes.set_title(title, loc="left")
        axes.grid(alpha=0.25)
        if key == "variance":
            axes.set_yscale("log", base=2)
        else:
            axes.set_ylim(0, 1)
            axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.6))
    return figure


CLAIM = Claim("scores grow with √d, and the softmax saturates; scaling stops it", measure, figures, draw)
