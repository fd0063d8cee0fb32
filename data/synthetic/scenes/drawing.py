"""A scene as pixels, in whole numbers throughout: the same picture to the last bit wherever it is drawn."""

import numpy as np
from numpy.typing import NDArray

from tfm.data.synthetic.scenes.scene import GRID_SIDE, Scene, Thing

CELL_SIZE = 16  # pixels
IMAGE_SIZE = GRID_SIDE * CELL_SIZE  # of a side of the image
UNITS_PER_PIXEL = 8  # steps of a pixel; it is looked at in 4 x 4 of them
RADIUS = {"small": 28, "big": 52}
SAMPLES_PER_PIXEL = 16
Ints = NDArray[np.int64]


def render_scene(scene: Scene) -> NDArray[np.uint8]:
    """The image of a scene: (48, 48, 3); edges are smooth, since a pixel is covered in sixteenths."""
    image = np.full((IMAGE_SIZE, IMAGE_SIZE, 3), scene.background, np.int64)
    for thing in scene.things:
        cell = image[
            thing.row * CELL_SIZE : (thing.row + 1) * CELL_SIZE,
            thing.column * CELL_SIZE : (thing.column + 1) * CELL_SIZE,
        ]
        covered = _pixel_coverage(thing)[:, :, None]
        cell[:] = (
            cell * (SAMPLES_PER_PIXEL - covered) + np.array(thing.paint) * covered + SAMPLES_PER_PIXEL // 2
        ) // SAMPLES_PER_PIXEL
    return image.astype(np.uint8)


def _pixel_coverage(thing: Thing) -> Ints:
    """The number of each pixel's 16 samples that the thing covers in its cell (16, 16)."""
    samples = 2 * np.arange(CELL_SIZE * UNITS_PER_PIXEL // 2) + 1 - CELL_SIZE * UNITS_PER_PIXEL // 2
    inside = _is_inside_shape(thing.shape, samples - thing.right, (samples - thing.down)[:, None], RADIUS[thing.size])
    return np.asarray(inside.reshape(CELL_SIZE, 4, CELL_SIZE, 4).sum(axis=(1, 3)), np.int64)


def _is_inside_shape(shape: str, x: Ints, y: Ints, radius: int) -> NDArray[np.bool_]:
    """Mask of the points in a shape around the origin, y counted downwards."""
    if shape == "circle":
        return x**2 + y**2 <= radius**2
    if shape == "ring":
        return (x**2 + y**2 <= radius**2) & (81 * (x**2 + y**2) >= 25 * radius**2)
    if shape == "square":
        return np.maximum(abs(x), abs(y)) <= radius
    if shape == "diamond":
        return abs(x) + abs(y) <= radius
    if shape == "cross":
        return (np.maximum(abs(x), abs(y)) <= radius) & (3 * np.minimum(abs(x), abs(y)) <= radius)
    assert shape == "triangle"
    return (2 * abs(x) <= y + radius) & (y <= radius)
