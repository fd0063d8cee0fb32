"""Scenes by split and number. No two splits share what a scene's captions say; `combinations` shows, in every scene, a
color and a shape that the other splits never show together."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from tfm.data.errors import DataError
from tfm.data.synthetic.scenes.captions import caption_scene
from tfm.data.synthetic.scenes.drawing import render_scene
from tfm.data.synthetic.scenes.scene import Scene, draw_scene
from tfm.data.synthetic.string_tasks import split_of

SPLITS = ("train", "valid", "test", "combinations")


def draw_split_scene(split: str, number: int, seed: int) -> Scene:
    """Draw one scene of a split, a pure function of the arguments.

    Args:
        split: one of SPLITS.
        number: of the scene.
        seed: of the draws.

    Raises:
        DataError: there is no such split.
    """
    if split not in SPLITS:
        raise DataError(f"the built-in corpus `scenes` has no split {split!r}; choose one of {', '.join(SPLITS)}")
    random = Random(f"scenes {seed} {split} {number}")
    while True:
        scene = draw_scene(random)
        # The alphabetically first caption represents the scene.
        if split == ("combinations" if scene.is_held_out else split_of(min(caption_scene(scene)))):
            return scene


def draw_image_and_captions(split: str, number: int, seed: int) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Return the image (48, 48, 3) of a scene and all its captions in random order, so that the first few are a sample.

    Args:
        split: one of SPLITS.
        number: of the scene.
        seed: of the draws.
    """
    scene = draw_split_scene(split, number, seed)
    order = Random(f"captions {seed} {split} {number}")
    ranked = sorted((order.random(), caption) for caption in caption_scene(scene))
    return render_scene(scene), tuple(caption for _, caption in ranked)
