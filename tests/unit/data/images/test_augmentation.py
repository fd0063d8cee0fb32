"""Images varied at random: a pure function of (seed, step, row), against a loop over pixels, and by its statistics."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tfm.data.images.augmentation import DRAWS_PER_IMAGE, Augmentation, draw_uniform

VALUES = np.random.default_rng(1).integers(0, 256, (40, 9, 7, 3)).astype(np.uint8)
ROWS = np.arange(40)
ALL = Augmentation(shift=2, flip=True, crop=0.6)


def test_the_default_changes_nothing() -> None:
    assert Augmentation()(VALUES, 1, 2, ROWS) is VALUES


@pytest.mark.parametrize("kind", [Augmentation(shift=2), Augmentation(flip=True), Augmentation(crop=0.5), ALL], ids=str)
def test_is_a_pure_function_of_seed_step_and_row(kind: Augmentation) -> None:
    before = VALUES.copy()
    found = kind(VALUES, 3, 5, ROWS)
    assert (found.shape, found.dtype) == (VALUES.shape, np.uint8)
    assert np.array_equal(kind(VALUES, 3, 5, ROWS), found)
    order = np.random.default_rng(2).permutation(40)
    assert np.array_equal(kind(VALUES[order], 3, 5, ROWS[order]), found[order])
    assert np.array_equal(kind(VALUES[7:8], 3, 5, [7]), found[7:8])  # what a batch holds beside it is no matter
    for other in (kind(VALUES, 4, 5, ROWS), kind(VALUES, 3, 6, ROWS), kind(VALUES, 3, 5, ROWS + 1)):
        assert not np.array_equal(other, found)
    assert np.array_equal(VALUES, before)
    assert kind(VALUES[:0], 3, 5, []).shape == (0, 9, 7, 3)


def plainly(image: NDArray[np.uint8], kind: Augmentation, draws: NDArray[np.float64]) -> NDArray[np.uint8]:
    """One image, pixel by pixel."""
    height, width, _ = image.shape
    share = kind.crop + (1 - kind.crop) * draws[0]
    top, left = draws[1] * (height - share * height), draws[3] * (width - share * width)
    down, right = (math.floor(each * (2 * kind.shift + 1)) - kind.shift for each in (draws[2], draws[4]))
    found = np.empty_like(image)
    for y in range(height):
        for x in range(width):
            column = width - 1 - x if kind.flip and draws[5] < 0.5 else x
            from_y = math.floor(top + (y + 0.5) * share) + down
            from_x = math.floor(left + (column + 0.5) * share) + right
            found[y, x] = image[min(max(from_y, 0), height - 1), min(max(from_x, 0), width - 1)]
    return found


def test_each_pixel_is_the_one_it_should_be() -> None:
    draws = draw_uniform(3, 5, ROWS)
    found = ALL(VALUES, 3, 5, ROWS)
    for row in range(40):
        assert np.array_equal(found[row], plainly(VALUES[row], ALL, draws[row])), row


def shifts(image: NDArray[np.uint8], found: NDArray[np.uint8], most: int) -> list[tuple[int, int]]:
    """By how much an image may have been shifted, from its inner pixels."""
    height, width = image.shape[:2]
    inner = found[most : height - most, most : width - most]
    both = [(y, x) for y in range(-most, most + 1) for x in range(-most, most + 1)]
    return [
        (y, x)
        for y, x in both
        if np.array_equal(inner, image[most + y : height - most + y, most + x : width - most + x])
    ]


def test_every_shift_up_to_the_largest_comes_equally_often() -> None:
    rows = np.arange(3000)
    image = VALUES[:1]
    found = Augmentation(shift=1)(np.repeat(image, 3000, 0), 1, 0, rows)
    counts: dict[tuple[int, int], int] = {}
    for each in found:
        (shift,) = shifts(image[0], each, 1)
        counts[shift] = counts.get(shift, 0) + 1
    assert len(counts) == 9
    expected = 3000 / 9
    assert (
        sum((count - expected) ** 2 / expected for count in counts.values()) < 26.1
    )  # chi-square, 8 degrees, p = 0.001


def test_what_is_shifted_in_repeats_the_edge() -> None:
    found = Augmentation(shift=100)(VALUES, 1, 0, ROWS)
    edges = {tuple(pixel) for row in (0, -1) for pixel in VALUES[3][row]}
    edges |= {tuple(pixel) for column in (0, -1) for pixel in VALUES[3][:, column]}
    assert {tuple(pixel) for pixel in found[3].reshape(-1, 3)} <= {tuple(pixel) for pixel in VALUES[3].reshape(-1, 3)}
    assert tuple(found[3][0, 0]) in edges


def test_half_of_the_images_are_flipped_and_nothing_else() -> None:
    rows = np.arange(4000)
    found = Augmentation(flip=True)(np.repeat(VALUES[:1], 4000, 0), 1, 0, rows)
    flipped = (found == VALUES[0, :, ::-1]).all((1, 2, 3))
    assert (flipped | (found == VALUES[0]).all((1, 2, 3))).all()
    assert abs(flipped.mean() - 0.5) < 4 * 0.5 / 4000**0.5


def test_a_crop_keeps_a_window_of_its_share() -> None:
    """Of images whose pixels are their places, the window is read off."""
    size, rows = 64, np.arange(2000)
    places = np.broadcast_to(np.arange(size, dtype=np.uint8)[:, None, None], (size, size, 1))
    found = Augmentation(crop=0.5)(np.broadcast_to(places, (2000, size, size, 1)), 1, 0, rows)[:, :, 0, 0].astype(int)
    assert (np.diff(found, axis=1) >= 0).all()
    share = (found[:, -1] - found[:, 0] + 1) / size
    assert share.min() > 0.49
    assert share.max() > 0.98
    assert abs(share.mean() - 0.75) < 0.02
    place = found[:, 0] / (size - size * share + 1e-9)
    assert abs(place[share < 0.9].mean() - 0.5) < 0.04  # uniform between the ends


def test_draws_are_uniform_and_do_not_hang_together() -> None:
    draws = np.concatenate([draw_uniform(1, step, np.arange(2000)) for step in range(5)])
    assert draws.shape == (10_000, DRAWS_PER_IMAGE)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert abs(draws.mean(0) - 0.5).max() < 4 * (1 / 12) ** 0.5 / 100
    assert abs(np.corrcoef(draws.T) - np.eye(DRAWS_PER_IMAGE)).max() < 0.05
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 0.05  # of one row and the next
    assert len(np.unique(draws)) == draws.size
    assert draw_uniform(2**64 - 1, 2**40, np.array([2**40])).shape == (1, DRAWS_PER_IMAGE)


@pytest.mark.parametrize(("keys", "said"), [({"shift": -1}, "shift"), ({"crop": 0.0}, "crop"), ({"crop": 1.5}, "crop")])
def test_what_cannot_be_is_refused(keys: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Augmentation(**keys)  # type: ignore[arg-type]
