"""The shape of a model's images, and the check that an encoder can read it. Without torch: recipes are checked with
it.
"""

from dataclasses import dataclass

from tfm.model.config_tables import VisionConfig


@dataclass(frozen=True)
class ImageShape:
    """The shape of all images of a model, in pixels. channels: 1 (gray) or 3 (red, green, blue)."""

    height: int
    width: int
    channels: int


def pixels_per_image_token(vision: VisionConfig) -> int:
    """Return the height and width, in pixels, of the square of an image for which a token stands.

    A patch is just that; a cell of a convolution sees some pixels around the square too.
    """
    return vision.patch if vision.encoder == "patches" else vision.stride * 2 ** (len(vision.channels) - 1)


def grid_size(vision: VisionConfig, image: ImageShape) -> tuple[int, int]:
    """Return the number of rows and of columns of tokens of an image; each stage of a convolution but the first halves
    its sides.
    """
    side = pixels_per_image_token(vision)
    return -(-image.height // side), -(-image.width // side)


def map_size(vision: VisionConfig, image: ImageShape, stage: int) -> tuple[int, int]:
    """Return the number of rows and of columns of the map of a stage of a convolution; of patches their grid.

    Args:
        vision: the [model.vision] part of a recipe.
        image: the shape of an image.
        stage: the number of the stage, from 0; each but the first halves the map.
    """
    if vision.encoder == "patches":
        return grid_size(vision, image)
    step = vision.stride * 2**stage
    return -(-image.height // step), -(-image.width // step)


def num_tokens(vision: VisionConfig, image: ImageShape) -> int:
    """Return the number of tokens of an image: of its patches, or of the cells of the last map."""
    rows, columns = grid_size(vision, image)
    return rows * columns


def shape_problem(vision: VisionConfig, image: ImageShape) -> str | None:
    """Why images of this shape are not for this encoder; None if they are."""
    if vision.encoder == "patches" and (image.height % vision.patch or image.width % vision.patch):
        return (
            f"model.vision.patch = {vision.patch} does not divide images of {image.height} x {image.width} pixels: "
            "choose another patch, or another size in [data.images]"
        )
    return None
