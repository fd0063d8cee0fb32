"""Means and deviations of channels, against fractions and numpy; and images normalised by them."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.images.channel_statistics import ChannelStatistics
from tfm.data.images.normalization import normalize_image

VALUES = np.random.default_rng(1).integers(0, 256, (6, 5, 4, 3)).astype(np.uint8)


def test_they_are_those_of_numpy() -> None:
    found = ChannelStatistics.from_pixels(VALUES)
    flat = VALUES.reshape(-1, 3).astype(np.float64)
    assert found.count == len(flat)
    np.testing.assert_allclose(found.means, flat.mean(0), rtol=1e-14)
    np.testing.assert_allclose(found.standard_deviations, flat.std(0), rtol=1e-14)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 255), min_size=1, max_size=40), st.integers(0, 40))
def test_parts_add_up_exactly(values: list[int], cut: int) -> None:
    pixels = np.array(values, np.uint8).reshape(-1, 1, 1)
    parts = [ChannelStatistics.from_pixels(part) for part in (pixels[:cut], pixels[cut:])]
    whole = sum(parts, ChannelStatistics.empty(1))  # type: ignore[arg-type]
    assert whole == ChannelStatistics.from_pixels(pixels)
    assert whole.means == (float(Fraction(sum(values), len(values))),)
    variance = Fraction(sum(each**2 for each in values), len(values)) - Fraction(sum(values), len(values)) ** 2
    assert whole.standard_deviations[0] ** 2 == pytest.approx(float(variance), rel=1e-14)


def test_nothing_cancels_where_values_hardly_differ() -> None:
    """Ten billion pixels of 255, and one of 254: E[x^2] - E[x]^2 in float64 would be 0 or less."""
    count = 10**10
    found = ChannelStatistics(count + 1, (255 * count + 254,), (255**2 * count + 254**2,))
    share = Fraction(1, count + 1)
    assert found.standard_deviations[0] == pytest.approx(float(share * (1 - share)) ** 0.5, rel=1e-14)
    assert found.standard_deviations[0] > 0


def test_training_images_are_normalised_to_mean_0_and_deviation_1() -> None:
    found = normalize_image(torch.from_numpy(VALUES), ChannelStatistics.from_pixels(VALUES))
    assert found.shape == (6, 3, 5, 4)
    assert found.dtype == torch.float32
    assert found.is_contiguous(memory_format=torch.channels_last)
    flat = found.double().transpose(0, 1).reshape(3, -1)
    torch.testing.assert_close(flat.mean(1), torch.zeros(3, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(flat.std(1, correction=0), torch.ones(3, dtype=torch.float64), atol=1e-6, rtol=0)


def test_others_are_normalised_by_the_figures_of_training() -> None:
    statistics = ChannelStatistics(4, (40, 400, 0), (500, 40_400, 0))  # means 10, 100, 0; deviations 5, 10, 0
    found = normalize_image(torch.tensor([[[[20, 90, 7]]]], dtype=torch.uint8), statistics)
    torch.testing.assert_close(found.reshape(-1), torch.tensor([2.0, -1.0, 7.0]))
