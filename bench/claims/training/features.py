"""Features of single units with and without dropout: an autoencoder of one hidden layer on Fashion-MNIST.

Figure 7 of Srivastava et al. 2014, who show 256 units that learned MNIST: each square has the weights of one unit to
all pixels. What the eye sees in them is measured too: how many pixels a unit reads, and how alike units are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.claims.claim import Claim, Found
from bench.claims.training.thinning import DROPPED, NUM_TESTED, NUM_TRAIN, PLAIN, RATE, load_split, train_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIDDEN, EPOCHS, SEEDS = 256, 30, (1, 2, 3)
INITIAL_DEVIATION = 0.01  # small, so that what is seen of a unit is what it learned
ROWS, COLUMNS, SIDE = 4, 6, 28
FULL = 99  # the largest weight of a unit that is kept


def make_autoencoder(num_inputs: int, rate: float) -> nn.Sequential:
    """Rectified linear units, some dropped, from which the inputs are computed again."""
    hidden = nn.Linear(num_inputs, HIDDEN)
    nn.init.normal_(hidden.weight, std=INITIAL_DEVIATION)
    nn.init.zeros_(hidden.bias)
    return nn.Sequential(hidden, nn.ReLU(), nn.Dropout(rate), nn.Linear(HIDDEN, num_inputs))


def count_pixels(weights: Tensor) -> Tensor:
    """The number of pixels over which the weights (units, pixels) of each unit are spread.

    It is (sum w^2)^2 / sum w^4, the participation ratio: n where n weights are as large and the others 0.
    """
    energy = weights.double() ** 2
    return energy.sum(1) ** 2 / (energy**2).sum(1)


def mean_correlation(activations: Tensor) -> float:
    """The mean of the absolute correlations of two units' activations (images, units), of those that ever change."""
    centered = activations.double() - activations.double().mean(0)
    norms = centered.norm(dim=0)
    normed_activations = centered[:, norms > 0] / norms[norms > 0]
    products, number = (normed_activations.T @ normed_activations).abs(), normed_activations.shape[1]
    return float((products.sum() - products.trace()) / (number * (number - 1)))


@torch.no_grad()
def describe_features(network: nn.Sequential, images: Tensor) -> dict[str, float]:
    """The error of the images computed again, the pixels of a unit, and the correlation of units."""
    network.eval()
    activations = network[:2](images)
    is_alive = activations.amax(0) > 0
    weights: Tensor = network[0].weight  # type: ignore[assignment]
    return {
        "error": float(F.mse_loss(network(images), images)),
        "alive": int(is_alive.sum()),
        "pixels": float(count_pixels(weights[is_alive]).mean()),
        "correlation": mean_correlation(activations),
        "active": 100 * float((activations > 0).double().mean()),
    }


@torch.no_grad()
def scale_features(network: nn.Sequential, images: Tensor, number: int) -> list[list[int]]:
    """The weights of the first units that some image activates, each from -FULL to FULL."""
    weights: Tensor = network[0].weight  # type: ignore[assignment]
    weights = weights[network[:2](images).amax(0) > 0][:number]
    scaled: list[list[int]] = (FULL * weights / weights.abs().amax(1, keepdim=True)).round().int().tolist()
    return scaled


def measure(epochs: int = EPOCHS, seeds: Sequence[int] = SEEDS) -> Found:
    """Figures of each seed, and the first units of the first one, with and without dropout."""
    (images, _), (tested, _) = load_split("train", NUM_TRAIN), load_split("t10k", NUM_TESTED)
    mean = images.mean(0)
    images, tested = images - mean, tested - mean
    results: dict[str, dict[str, Any]] = {}
    for name, rate in ((PLAIN, 0.0), (DROPPED, RATE)):
        seed_figures, features = [], []
        for seed in seeds:
            torch.manual_seed(seed)
            network = make_autoencoder(images.shape[1], rate)
            train_network(network, images, images, epochs, F.mse_loss)
            seed_figures.append(describe_features(network, tested))
            features.append(scale_features(network, tested, ROWS * COLUMNS))
        results[name] = {"seeds": seed_figures, "features": features[0]}
    return results


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: means of the seeds."""
    digits = {"error": ".4f", "alive": ".0f", "pixels": ".0f", "correlation": ".2f", "active": ".0f"}
    return {
        f"{key} {name}": f"{sum(each[key] for each in model['seeds']) / len(model['seeds']):{form}}"
        + (" %" if key == "active" else "")
        for name, model in data.items()
        for key, form in digits.items()
    }


def draw(data: Found) -> "Figure":
    """The weights of the first units, a square each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, (name, model) in zip(figure.subplots(1, len(data)), data.items(), strict=True):
        squares = torch.tensor(model["features"]).view(ROWS, COLUMNS, SIDE, SIDE)
        framed = F.pad(squares, (1, 1, 1, 1)).permute(0, 2, 1, 3).reshape(ROWS * (SIDE + 2), COLUMNS * (SIDE + 2))
        axes.imshow(framed.tolist(), cmap="gray", vmin=-FULL, vmax=FULL, interpolation="nearest")
        axes.set_axis_off()
        axes.set_title(name, loc="left")
    return figure


CLAIM = Claim("dropout makes single units learn features", measure, figures, draw)
