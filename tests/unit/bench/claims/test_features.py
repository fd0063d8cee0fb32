"""The claims of features and sparsity: pixels, correlations and histograms computed a second way, weights kept."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from bench.claims.training import features, sparsity
from bench.claims.training.thinning import train_network


def test_pixels_of_a_unit_are_those_with_weights_as_large() -> None:
    weights = torch.tensor([[2.0, 0.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0], [3.0, 3.0, -3.0, 3.0]])
    assert features.count_pixels(weights).tolist() == pytest.approx([1, 2, 4])


def test_the_mean_correlation_is_numpys_without_units_that_never_change() -> None:
    activations = torch.rand(50, 6, generator=torch.Generator().manual_seed(1))
    activations[:, 2] = 0.5
    matrix = np.abs(np.corrcoef(np.delete(activations.double().numpy(), 2, axis=1).T))
    assert features.mean_correlation(activations) == pytest.approx(float(matrix[np.triu_indices(5, 1)].mean()))


def test_weights_of_units_that_are_ever_active_are_scaled_by_the_largest_of_each() -> None:
    network = features.make_autoencoder(2, 0.5)
    with torch.no_grad():
        network[0].weight[:3] = torch.tensor([[0.5, -1.0], [-2.0, 0.0], [3.0, 0.0]])
    assert features.scale_features(network, torch.tensor([[1.0, 0.0]]), 2) == [[50, -99], [99, 0]]


def test_an_autoencoder_learns_its_images_and_is_described_without_dropout() -> None:
    torch.manual_seed(0)
    images = torch.rand(64, 9).round()
    network = features.make_autoencoder(9, 0.5)
    before = features.describe_features(network, images)
    train_network(network, images, images, 60, F.mse_loss)
    after = features.describe_features(network, images)
    assert after["error"] < before["error"] / 2
    assert features.describe_features(network, images) == after
    assert 0 < after["active"] < 100
    assert 0 < after["alive"] <= features.HIDDEN


def test_histograms_are_shares_of_all_values_and_the_last_bin_has_the_larger_ones() -> None:
    activations = torch.tensor([[0.0, 0.05, 1.0], [0.0, 2.95, 40.0]])
    found = sparsity.describe_activations(activations)
    shares, _ = np.histogram(np.minimum(activations.numpy(), sparsity.MAX_DRAWN), sparsity.NUM_BINS, (0, 3.0))
    assert found["all"] == pytest.approx((shares / activations.numel() * 100).tolist())
    assert found["all"][0] == found["activations of 0"] + 100 / 6
    assert found["mean activation"] == pytest.approx(44 / 6)
    assert sum(found["means"]) == pytest.approx(100)
    assert found["means"][-1] == pytest.approx(100 / 3)
