"""Heads divide the labour: 1 to 16 heads of one total width, and heads taken away one by one (Michel et al. 2019).

A head is taken away by zeros in its columns of W_o: concat(head_1, .., 0, .., head_H) W_o.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bench.claims.claim import Claim, Found
from bench.claims.runs import read_score, run_recipe
from tfm.model.attention.multi_head import CrossAttention, SelfAttention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/heads.toml"
NUMBERS = (1, 4, 16)
TAKEN_FROM = 4  # heads of the model from which they are taken
NUM_PAIRS = 200


def measure(numbers: Sequence[int] = NUMBERS, num_pairs: int = NUM_PAIRS) -> Found:
    """Scores by number of heads; perplexity without each head of one model, and without all of a layer but each."""
    from tfm.data.synthetic.grammar import generate
    from tfm.pipeline.api.logged import LoggingReporter
    from tfm.pipeline.api.text_scores import score_texts
    from tfm.pipeline.model_io.loaded_model import load_model

    runs = {number: train_heads(number) for number in numbers}
    by_number = {
        number: {name: read_score(run, f"test.{name}") for name in ("bleu", "perplexity")}
        for number, run in runs.items()
    }
    loaded = load_model(runs[TAKEN_FROM] / "model", "cpu")
    sources, targets = map(list, zip(*generate("test", num_pairs, 1), strict=True))

    def perplexity() -> float:
        return score_texts(loaded, sources, targets, LoggingReporter(), None, None, None).perplexity

    perplexities: dict[str, list[dict[str, Any]]] = {}
    for kind, layer, attention in list_attentions(loaded.model):
        missing_scores, single_scores = [], []
        for head in range(TAKEN_FROM):
            with take_heads(attention, [head]):
                missing_scores.append(perplexity())
            with take_heads(attention, [each for each in range(TAKEN_FROM) if each != head]):
                single_scores.append(perplexity())
        perplexities.setdefault(kind, []).append({"layer": layer, "without": missing_scores, "alone": single_scores})
    return {"by_number": by_number, "whole": perplexity(), "taken": perplexities}


def train_heads(number: int) -> Path:
    """The run of a model with so many heads."""
    return run_recipe(RECIPE, str(number), *(f"model.{side}.heads={number}" for side in ("encoder", "decoder")))


def list_attentions(network: nn.Module) -> Iterator[tuple[str, int, SelfAttention | CrossAttention]]:
    """Every attention of a Transformer with its kind and its layer, from 1."""
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(network, side), 1):
            yield side, number, layer.attention
            if side == "decoder":
                yield "cross", number, layer.cross_attention


@contextmanager
def take_heads(attention: SelfAttention | CrossAttention, heads: Sequence[int]) -> Iterator[None]:
    """An attention without some of its heads, for as long as the context lasts."""
    weight = attention.output.weight
    assert isinstance(weight, torch.Tensor)
    original, width = weight.detach().clone(), attention.heads.value_dim
    with torch.no_grad():
        for head in heads:
            weight[:, head * width : (head + 1) * width] = 0
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(original)


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {f"BLEU with heads: {number}": f"{each['bleu']:.2f}" for number, each in data["by_number"].items()}
    texts |= {
        f"perplexity with heads: {number}": f"{scores['perplexity']:.3f}"
        for number, scores in data["by_number"].items()
    }
    baseline = data["whole"]
    changes = sorted(
        value / baseline - 1
        for layers in data["taken"].values()
        for layer_losses in layers
        for value in layer_losses["without"]
    )
    texts["heads taken away"] = str(len(changes))
    texts["heads whose loss costs less than 1 %"] = str(sum(each < 0.01 for each in changes))
    texts["perplexity of the whole model"] = f"{baseline:.3f}"
    for kind, layers in data["taken"].items():
        largest = max(each for layer_losses in layers for each in layer_losses["without"])
        texts[f"most that one head costs, {kind}"] = f"{100 * (largest / baseline - 1):.1f} %"
        best = [min(layer_losses["alone"]) / baseline for layer_losses in layers]
        texts[f"one head in place of all of a layer, {kind}"] = ", ".join(f"{each:.2f}" for each in best)
    return texts


def draw(data: Found) -> "Figure":
    """Perplexity by number of heads; what each head costs, as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    numbers = [*data["by_number"]]
    left.plot(numbers, [each["perplexity"] for each in data["by_number"].values()], marker="o", markersize=4)
    left.set_xlabel("heads of one total width")
    left.set_title("test perplexity", loc="left")
    left.grid(alpha=0.25)
    rows = [(f"{kind} {one['layer']}", one["without"]) for kind, layers in data["taken"].items() for one in layers]
    costs = [[100 * (each / data["whole"] - 1) for each in without] for _, without in rows]
    image = right.imshow(costs, aspect="auto", cmap="OrRd", vmin=0)
    right.set_yticks(range(len(rows)), [name for name, _ in rows])
    right.set_xticks(range(len(costs[0])), [str(head + 1) for head in range(len(costs[0]))])
    right.set_xlabel("head")
    right.set_title("perplexity without it, % more", loc="left")
    figure.colorbar(image, ax=right)
    return figure


CLAIM = Claim("heads divide the labour", measure, figures, draw)
