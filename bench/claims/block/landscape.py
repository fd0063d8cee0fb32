"""Residual connections smooth the loss landscape: the slice around a trained network (Li et al. 2018).

loss(w + a d + b e), d and e random, each row of a matrix as long as that of w (filter-normalised), 0 for vectors
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from bench.claims.block.depth import NO_RESIDUAL, PRE, train_model
from bench.claims.claim import Claim, Found
from tfm.model.layout import Layout
from tfm.model.transformer.decoder_only import DecoderOnly
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.tokenizer.special import BOS_ID, EOS_ID

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTH = 24
STEPS = tuple(number / 5 for number in range(-5, 6))
NUM_TEXTS = 60


def measure(steps: Sequence[float] = STEPS, depth: int = DEPTH) -> Found:
    """The loss on a grid around two networks of the claim `depth`, with residual connections and without."""
    from tfm.data.synthetic.grammar import generate

    texts = [german for _, german in generate("valid", NUM_TEXTS, 1)]
    losses: dict[str, list[list[float]]] = {}
    for name in (PRE, NO_RESIDUAL):
        loaded = load_model(train_model(name, depth) / "model", "cpu")
        network, ids = loaded.model, [loaded.target_tokenizer.encode(text) for text in texts]
        assert isinstance(network, DecoderOnly)
        generator = torch.Generator().manual_seed(1)
        directions = [draw_direction(network, generator) for _ in range(2)]
        start = [weight.detach().clone() for weight in network.parameters()]
        losses[name] = []
        for a in steps:
            row = []
            for b in steps:
                move_weights(network, start, directions, (a, b))
                row.append(mean_loss(network, ids))
            losses[name].append(row)
    return {"steps": list(steps), "depth": depth, "losses": losses}


@torch.no_grad()
def mean_loss(network: DecoderOnly, texts: Sequence[Sequence[int]]) -> float:
    """The mean of -log p of all ids of some texts and of their ends, in nats."""
    layout = Layout.from_lengths(torch.tensor([len(text) + 1 for text in texts]))
    read = torch.tensor([number for text in texts for number in (BOS_ID, *text)])
    predicted = torch.tensor([number for text in texts for number in (*text, EOS_ID)])
    return float(torch.nn.functional.nll_loss(network.log_probs(network.hidden_states(read, layout)), predicted))


def draw_direction(network: nn.Module, generator: torch.Generator) -> list[Tensor]:
    """A random direction, of the size of each weight: rows of matrices as long as the network's, 0 for vectors."""
    direction = []
    for weight in network.parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if weight.dim() < 2:
            direction.append(torch.zeros_like(noise))
            continue
        lengths = weight.detach().flatten(1).norm(dim=1), noise.flatten(1).norm(dim=1)
        direction.append(noise * (lengths[0] / lengths[1]).view(-1, *[1] * (weight.dim() - 1)))
    return direction


@torch.no_grad()
def move_weights(
    network: nn.Module, start: Sequence[Tensor], directions: Sequence[Sequence[Tensor]], steps: Sequence[float]
) -> None:
    """Set the weights to start + a d + b e.

    Args:
        network: the network.
        start: its weights at (0, 0).
        directions: d and e.
        steps: a and b.
    """
    for weight, first, *moves in zip(network.parameters(), start, *directions, strict=True):
        weight.copy_(first + sum(step * move for step, move in zip(steps, moves, strict=True)))


def mean_loss_rise(data: Found, name: str, step: float) -> float:
    """The mean rise of the loss above its value in the middle, over the points at distance `step` on the two axes."""
    losses, steps = data["losses"][name], data["steps"]
    middle = len(steps) // 2
    places = [steps.index(step), steps.index(-step)]
    edge_losses = [losses[place][middle] for place in places] + [losses[middle][place] for place in places]
    return float(sum(edge_losses) / len(edge_losses) - losses[middle][middle])


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: the loss in the middle, and how it rises."""
    middle, texts = len(data["steps"]) // 2, {}
    for name, losses in data["losses"].items():
        texts[f"{name}: loss in the middle"] = f"{losses[middle][middle]:.2f}"
        for step in (0.4, 1.0):
            texts[f"{name}: rise at {step}"] = f"{mean_loss_rise(data, name, step):.2f}"
    return texts


def draw(data: Found) -> "Figure":
    """Contours of both."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    highest = max(value for losses in data["losses"].values() for row in losses for value in row)
    lowest = min(value for losses in data["losses"].values() for row in losses for value in row)
    levels = [lowest + (highest - lowest) * number / 20 for number in range(21)]
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (name, losses) in zip(panels, data["losses"].items(), strict=True):
        contours = axes.contourf(data["steps"], data["steps"], losses, levels=levels, cmap="viridis")
        axes.set_title(f"{name}, {data['depth']} layers", loc="left")
        axes.set_aspect("equal")
    figure.colorbar(contours, ax=panels, label="validation loss a word, nats", format="%.1f")
    return figure


CLAIM = Claim("residual connections smooth the loss landscape", measure, figures, draw)
