"""Gradients vanish through recurrence, not through attention; and through depth, not through residual connections.

    recurrent       dh_T / dx_t = (prod_{s=t+1..T} dh_s / dh_{s-1}) dh_t / dx_t       T - t factors
    residual        d(x + f(x)) / dx = 1 + f'(x)
Legend: T rows of a sentence · D width.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from bench.claims.claim import Claim, Found
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.model.masks import causal_mask
from tfm.model.recurrent.cells import CELLS
from tfm.model.recurrent.steps import TimeMajorPacking
from tfm.model.transformer.factory import ModuleFactory
from tfm.model.transformer.layers import EncoderLayer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Network = Callable[[Tensor], Tensor]
RECURRENT = {"tanh": "tanh", "LSTM": "lstm", "GRU": "gru"}
TRANSFORMERS: Mapping[str, Mapping[str, object]] = {
    "Transformer": {},
    "without residuals": {"residual": "none"},
}
DEPTHS: Mapping[str, Mapping[str, object]] = {
    "pre-norm": {"norm": "pre"},
    "post-norm": {"norm": "post"},
    "no norm": {"normalization": "none"},
    "no residuals": {"residual": "none", "norm": "pre"},
    "neither": {"residual": "none", "normalization": "none"},
}
FARTHEST = 100


def measure(dim: int = 64, length: int = FARTHEST + 28, layers: int = 2, depth: int = 24, draws: int = 10) -> Found:
    """Norms of gradients of one output: by distance to each input, and to rows between layers, by depth."""
    by_distance = {name: [0.0] * length for name in (*RECURRENT, *TRANSFORMERS)}
    by_depth = {name: [0.0] * (depth + 1) for name in DEPTHS}
    for seed in range(draws):
        torch.manual_seed(seed)
        rows = torch.randn(length, dim)
        for name, network in make_networks(dim, length, layers).items():
            add_norms(by_distance[name], gradient_norms(network, rows), draws)
        for name, model in DEPTHS.items():
            stack = make_layers({**model, "positions": "none"}, dim, depth)
            add_norms(by_depth[name], depth_norms(stack, rows[:32]), draws)
    return {"dim": dim, "layers": layers, "by_distance": by_distance, "by_depth": by_depth}


def add_norms(sums: list[float], norms: Sequence[float], draws: int) -> None:
    """Add the share of one draw to the means."""
    for index, norm in enumerate(norms):
        sums[index] += norm / draws


def make_networks(dim: int, length: int, layers: int) -> dict[str, Network]:
    """Networks with initial weights that read a sentence of so many rows (T, D) from left to right."""
    networks: dict[str, Network] = {}
    steps = TimeMajorPacking(Layout.from_lengths(torch.tensor([length])))
    for name, cell in RECURRENT.items():
        cells = [CELLS[cell](dim, dim, compute_dtype=torch.float32) for _ in range(layers)]
        networks[name] = read_recurrent(cells, steps)
    for name, model in TRANSFORMERS.items():
        networks[name] = read_attention(make_layers({**model, "positions": "none"}, dim, layers))
    return networks


def read_recurrent(cells: Sequence[nn.Module], steps: TimeMajorPacking) -> Network:
    """The stack of some recurrent layers."""

    def run(rows: Tensor) -> Tensor:
        for cell in cells:
            rows, _ = cell(rows, steps)
        return rows

    return run


def make_layers(model: Mapping[str, object], dim: int, layers: int) -> list[EncoderLayer]:
    """Some layers of a Transformer in which no row sees those after it."""
    stack = {"layers": layers, "dim": dim, "heads": 4, "feed_forward_dim": 4 * dim}
    config = ModelConfig.model_validate({**model, "encoder": stack, "decoder": stack})
    factory = ModuleFactory(config, torch.float32)
    return [layer.eval() for layer in factory.layers(config.encoder, causal=True)]


def read_attention(layers: Sequence[EncoderLayer]) -> Network:
    """The stack of some layers of a Transformer."""

    def run(rows: Tensor) -> Tensor:
        layout = Layout.from_lengths(torch.tensor([len(rows)]))
        for layer in layers:
            rows = layer(rows, layout, causal_mask(layout))
        return rows

    return run


def gradient_norms(network: Network, rows: Tensor) -> list[float]:
    """Norm of the gradient of u . output_T with respect to each row, u a random unit vector, by distance from T."""
    rows = rows.clone().requires_grad_()
    output = network(rows)[-1]
    direction = nn.functional.normalize(torch.randn_like(output), dim=0)
    (gradient,) = torch.autograd.grad(output @ direction, rows)
    norms: list[float] = gradient.norm(dim=1).flip(0).tolist()
    return norms


def depth_norms(layers: Sequence[EncoderLayer], rows: Tensor) -> list[float]:
    """Norm of the gradient of u . output_T with respect to all rows before each layer, and after the last one."""
    layout = Layout.from_lengths(torch.tensor([len(rows)]))
    layer_inputs = [rows.clone().requires_grad_()]
    for layer in layers:
        layer_inputs.append(layer(layer_inputs[-1], layout, causal_mask(layout)))
    direction = nn.functional.normalize(torch.randn_like(layer_inputs[-1][-1]), dim=0)
    gradients = torch.autograd.grad(layer_inputs[-1][-1] @ direction, layer_inputs)
    return [float(each.norm()) for each in gradients]


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: what is left of a gradient."""
    texts: dict[str, str] = {}
    for name, norms in data["by_distance"].items():
        texts[f"{name}: norm at a distance of {FARTHEST}, of that at 1"] = quantity(norms[FARTHEST] / norms[1])
    for name, norms in data["by_depth"].items():
        texts[f"{name}: norm before the first of {len(norms) - 1} layers, of that after the last"] = quantity(
            norms[0] / norms[-1]
        )
    return texts


def quantity(ratio: float) -> str:
    """A ratio with two digits: 0.56, 13, 3e-05; 0 if it is less than a float can hold."""
    if ratio == 0:
        return "0"
    return f"{ratio:.0e}" if ratio < 0.01 or ratio >= 1000 else f"{ratio:.2g}"


def draw(data: Found) -> "Figure":
    """Norms over distance and over depth, on log axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    panels: tuple[tuple[Any, str, str, str], ...] = (
        (left, "by_distance", "distance", "gradient of the last output, by distance"),
        (right, "by_depth", "layers below", "gradient of the last output, by depth"),
    )
    for axes, key, label, title in panels:
        for name, norms in data[key].items():
            axes.plot([max(norm, 1e-12) for norm in norms], linewidth=1.3, label=name)
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_title(f"norm of the {title}", loc="left")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


CLAIM = Claim(
    "gradients vanish through recurrence and depth, not through attention and residual connections",
    measure,
    figures,
    draw,
)
