"""Dropout averages many thinned networks and makes activations sparse: two hidden layers on Fashion-MNIST.

Figures 4, 8 and 11 of Srivastava et al. 2014: errors by width with and without, activations of hidden units, and the
mean of k thinned networks, softmax by softmax, beside the one network that scales instead.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.claims.claim import Claim, Found
from bench.processes import ROOT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDERS = (Path("corpora/fashion-mnist"), ROOT.parent / "shared" / "data" / "fashion-mnist")
WIDTHS, RATE, INPUT_RATE = (128, 512, 1024), 0.5, 0.2
NUM_TRAIN, NUM_TESTED, EPOCHS, BATCH = 10_000, 10_000, 40, 128
THINNED = (1, 2, 5, 10, 20, 50)
PLAIN, DROPPED = "without dropout", "with dropout"


def load_split(name: str, number: int) -> tuple[Tensor, Tensor]:
    """Load images (number, 784) from 0 to 1 and their labels (number,) of the published files of a split."""
    from tfm.data.images.idx import read_idx

    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None:
        raise SystemExit(f"Fashion-MNIST is missing: put its four files into {FOLDERS[0]}/")
    pixels, labels = (folder / f"{name}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
    images = list(islice(read_idx(pixels, labels), number))
    stacked = np.stack([np.asarray(each.content) for each in images])
    return torch.from_numpy(stacked).flatten(1) / 255, torch.tensor([int(each.captions[0]) for each in images])


def make_network(num_inputs: int, width: int, rate: float) -> nn.Sequential:
    """Two hidden layers of ReLU units; with a rate, units of each and some inputs are dropped."""
    return nn.Sequential(
        nn.Dropout(INPUT_RATE if rate else 0.0),
        *(nn.Linear(num_inputs, width), nn.ReLU(), nn.Dropout(rate)),
        *(nn.Linear(width, width), nn.ReLU(), nn.Dropout(rate)),
        nn.Linear(width, 10),
    )


def train_network(
    network: nn.Sequential,
    images: Tensor,
    targets: Tensor,
    epochs: int,
    loss_function: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
) -> None:
    """Train a network by Adam at a fixed rate; `loss_function` compares what it gives with the targets."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    network.train()
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(images)), BATCH):
            optimizer.zero_grad()
            loss = loss_function(network(images[rows]), targets[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


@torch.no_grad()
def error(network: nn.Sequential, images: Tensor, labels: Tensor) -> float:
    """Percentage of images that a network, scaled and not thinned, takes for something else."""
    network.eval()
    return 100 * float((network(images).argmax(1) != labels).double().mean())


@torch.no_grad()
def describe_activations(network: nn.Sequential, images: Tensor) -> dict[str, float]:
    """Mean activation of the first hidden layer's units, and the share of them that an image activates."""
    network.eval()
    hidden = network[:3](images)
    return {"mean": float(hidden.mean()), "active": 100 * float((hidden > 0).double().mean())}


@torch.no_grad()
def thinned_errors(network: nn.Sequential, images: Tensor, labels: Tensor, numbers: Sequence[int]) -> list[float]:
    """Errors in percent of the mean of the softmax of so many thinned networks."""
    network.train()
    total, errors = torch.zeros(len(images), 10), []
    for number in range(1, max(numbers) + 1):
        total += network(images).softmax(1)
        if number in numbers:
            errors.append(100 * float((total.argmax(1) != labels).double().mean()))
    return errors


def measure(widths: Sequence[int] = WIDTHS, numbers: Sequence[int] = THINNED, epochs: int = EPOCHS) -> Found:
    """Errors by width, activations, and errors of means of thinned networks of the largest width."""
    images, labels = load_split("train", NUM_TRAIN)
    tested = load_split("t10k", NUM_TESTED)
    errors: dict[str, list[float]] = {PLAIN: [], DROPPED: []}
    activations: dict[str, dict[str, float]] = {}
    for name, rate in ((PLAIN, 0.0), (DROPPED, RATE)):
        for width in widths:
            torch.manual_seed(width)
            network = make_network(images.shape[1], width, rate)
            train_network(network, images, labels, epochs)
            errors[name].append(error(network, *tested))
        activations[name] = describe_activations(network, tested[0])
    return {
        "widths": list(widths),
        "errors": errors,
        "activations": activations,
        "numbers": list(numbers),
        "thinned": thinned_errors(network, *tested, numbers),
    }


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {
        f"error {name}, width {width}": f"{value:.1f} %"
        for name, values in data["errors"].items()
        for width, value in zip(data["widths"], values, strict=True)
    }
    for name, activations in data["activations"].items():
        texts[f"units active {name}"] = f"{activations['active']:.0f} %"
        texts[f"mean activation {name}"] = f"{activations['mean']:.2f}"
    for number, value in zip(data["numbers"], data["thinned"], strict=True):
        texts[f"error of the mean of {number} thinned networks"] = f"{value:.1f} %"
    return texts


def draw(data: Found) -> "Figure":
    """Errors by width, and of means of thinned networks beside the scaled one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, values in data["errors"].items():
        left.plot(data["widths"], values, marker=".", label=name)
    left.set_xlabel("units of each hidden layer")
    left.set_title("test error, %", loc="left")
    right.plot(data["numbers"], data["thinned"], marker=".", label="mean of thinned networks")
    right.axhline(data["errors"][DROPPED][-1], color="#999999", linestyle="--", label="one network, scaled")
    right.set_xscale("log")
    right.set_xticks(data["numbers"], [str(each) for each in data["numbers"]])
    right.minorticks_off()
    right.set_xlabel("thinned networks")
    right.set_title("test error, %", loc="left")
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return figure


CLAIM = Claim("dropout averages many networks, and makes activations sparse", measure, figures, draw)
