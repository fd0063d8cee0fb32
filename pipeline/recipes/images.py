"""Check that a recipe's model reads the kind of its corpora: images or texts."""

from tfm.data.image_config import ImagesConfig
from tfm.model.config import ModelConfig
from tfm.model.vision.image_shape import ImageShape, shape_problem
from tfm.pipeline.training_config import TrainingConfig


def check_images(images: ImagesConfig | None, model: ModelConfig, training: TrainingConfig) -> None:
    """Raise ValueError if the corpora are images and the model reads texts, or the other way round, or the model
    cannot read images of their shape.

    Args:
        images: the [data.images] part of a recipe; None for texts.
        model: the [model] part.
        training: the [training] part.
    """
    if images is None:
        if model.vision is not None:
            raise ValueError("model.vision reads images, and the corpora are texts: give [data.images] and images")
        return
    if model.vision is None:
        raise ValueError("the corpora are images (data.images), which a model with [model.vision] reads: give it")
    shape = ImageShape(images.height, images.width, 3 if images.colour else 1)
    if (reason := shape_problem(model.vision, shape)) is not None:
        raise ValueError(reason)
    if training.layout == "flat":
        raise ValueError('training.layout = "flat" is for texts, and the corpora are images')
