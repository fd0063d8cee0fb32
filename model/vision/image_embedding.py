"""Modules that make rows of images, in the place where an embedding makes rows of token ids."""

from typing import TypeAlias

from tfm.model.vision.convolution import ResNetEmbedding
from tfm.model.vision.patches import PatchEmbedding

ImageEmbedding: TypeAlias = PatchEmbedding | ResNetEmbedding
