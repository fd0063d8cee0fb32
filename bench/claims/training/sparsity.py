"""Dropout makes activations sparse, though nothing asks for that: the autoencoders of the claim `features`.

Figure 8 of Srivastava et al. 2014: histograms of the mean activation of each hidden unit over the images of the test
set, and of all activations of all units.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from bench.claims.claim import Claim, Found
from bench.claims.training.features import EPOCHS, SEEDS, make_autoencoder
from bench.claims.training.thinning import DROPPED, NUM_TESTED, NUM_TRAIN, PLAIN, RATE, load_split, train_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_BINS, MAX_DRAWN = 30, 3.0
"""Bins of the histograms, and the activation behind which all are in the last one."""
FIGURES = ("mean activation", "activations of 0")


def histogram(values: Tensor) -> list[float]:
    """The share of values in each of NUM_BINS bins from 0 to MAX_DRAWN, larger ones in the last, in percent."""
    counts = torch.histc(values.clamp(max=MAX_DRAWN), NUM_BINS, 0, MAX_DRAWN)
    shares: list[float] = (100 * counts.double() / values.numel()).tolist()
    return shares


def describe_activations(activations: Tensor) -> dict[str, Any]:
    """The mean of activations (images, units), the share of those that are 0 in percent, and both histograms."""
    return {
        "mean activation": float(activations.double().mean()),
        "activations of 0": 100 * float((activations == 0).double().mean()),
        "means": histogram(activations.mean(0)),
        "all": histogram(activations),
    }


def measure(epochs: int = EPOCHS, seeds: Sequence[int] = SEEDS) -> Found:
    """Activations of each seed's hidden units on images of the test set, with and without dropout."""
    (images, _), (tested, _) = load_split("train", NUM_TRAIN), load_split("t10k", NUM_TESTED)
    mean = images.mean(0)
    images, tested = images - mean, tested - mean
    results: dict[str, list[dict[str, Any]]] = {PLAIN: [], DROPPED: []}
    for name, rate in ((PLAIN, 0.0), (DROPPED, RATE)):
        for seed in seeds:
            torch.manual_seed(seed)
            network = make_autoencoder(images.shape[1], rate)
            train_network(network, images, images, epochs, F.mse_loss)
            with torch.no_grad():
                results[name].append(describe_activations(network[:2](tested)))
    return results


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: means of the seeds."""
    texts: dict[str, str] = {}
    for name, of_seeds in data.items():
        average, zeros = (sum(each[key] for each in of_seeds) / len(of_seeds) for key in FIGURES)
        texts |= {f"mean activation {name}": f"{average:.2f}", f"activations of 0 {name}": f"{zeros:.0f} %"}
    return texts


def draw(data: Found) -> "Figure":
    """Both histograms of the first seed, a row with and a row without dropout."""
    from matplotlib.figure import Figure

    figure, width = Figure(figsize=(10, 4.4), layout="constrained"), MAX_DRAWN / NUM_BINS
    places = [width * number for number in range(NUM_BINS)]
    panels = figure.subplots(len(data), 2, sharex=True)
    for row, (name, (first, *_)) in zip(panels, data.items(), strict=True):
        for axes, key, label in zip(row, ("means", "all"), ("mean activations of units", "activations"), strict=True):
            axes.bar(places, first[key], width, align="edge", color="#3182bd")
            axes.set_title(f"{name}: {label}, %", loc="left")
            axes.grid(axis="y", alpha=0.25)
    return figure


CLAIM = Claim("dropout makes activations sparse", measure, figures, draw)
