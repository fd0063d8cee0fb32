"""Builders of the networks that read images: the decoders and output layers of texts, after an encoder of images."""

from collections.abc import Callable

import torch

from tfm.model.build_recurrent import build_model_with_recurrent_decoder
from tfm.model.config import ModelConfig, VisionConfig
from tfm.model.layers.dropout import Dropout
from tfm.model.layers.linear import Linear
from tfm.model.recurrent.encoder_decoder import RecurrentEncoderDecoder
from tfm.model.transformer.decoder_masks import DECODER_MASKS
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.model.transformer.encoder_only import POOLINGS, EncoderOnly, SentenceHead, keep_source
from tfm.model.transformer.factory import ModuleFactory
from tfm.model.vision.convolution import ResNetEmbedding
from tfm.model.vision.image_embedding import ImageEmbedding
from tfm.model.vision.image_shape import ImageShape
from tfm.model.vision.patches import PatchEmbedding

ImageModel = EncoderDecoder | EncoderOnly | RecurrentEncoderDecoder


def build_image_embedding(factory: ModuleFactory, image: ImageShape) -> ImageEmbedding:
    """Return the module that makes tokens of an image, as `config.vision` says."""
    assert factory.config.vision is not None
    return VISION_ENCODERS[factory.config.vision.encoder](factory, factory.config.vision, image)


def build_patch_embedding(factory: ModuleFactory, vision: VisionConfig, image: ImageShape) -> PatchEmbedding:
    """Build the embedding of Dosovitskiy et al. 2021, figure 1.

    Args:
        factory: the factory of the network's parts.
        vision: the [model.vision] part of a recipe.
        image: the shape of the images.
    """
    return PatchEmbedding(
        image,
        vision.patch,
        factory.config.encoder.dim,
        positions=vision.positions,
        dropout=Dropout(factory.config.dropout.embedding, factory.dropout_rng),
        compute_dtype=factory.compute_dtype,
    )


def build_resnet_embedding(factory: ModuleFactory, vision: VisionConfig, image: ImageShape) -> ResNetEmbedding:
    """Build the embedding of He et al. 2016, figure 2 and section 3.3.

    Args:
        factory: the factory of the network's parts.
        vision: the [model.vision] part of a recipe.
        image: the shape of the images.
    """
    return ResNetEmbedding(
        image,
        vision.channels,
        vision.blocks,
        vision.stride,
        factory.config.encoder.dim,
        positions=vision.positions,
        dropout=Dropout(factory.config.dropout.embedding, factory.dropout_rng),
        compute_dtype=factory.compute_dtype,
    )


def make_image_encoder_factory(factory: ModuleFactory) -> ModuleFactory:
    """Return the factory of an image encoder's parts: all tokens attend to one another, and their positions are added
    once, before.
    """
    plain = {"mixing": "attention", "window": None, "positions": "none"}
    return ModuleFactory(factory.config.model_copy(update=plain), factory.compute_dtype, factory.dropout_rng)


def build_image_transformer(
    config: ModelConfig, image: ImageShape, target_vocab: int, compute_dtype: torch.dtype
) -> EncoderDecoder:
    """Build a model of captions: an image's tokens are the memory that the decoder of Vaswani et al. 2017 attends to.

    Args:
        config: the [model] part of a recipe, with `config.vision`.
        image: the shape of the images.
        target_vocab: number of pieces of the target vocabulary, or of labels.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts = ModuleFactory(config, compute_dtype)
    image_factory, encoder, decoder = make_image_encoder_factory(parts), config.encoder, config.decoder
    table = parts.table(target_vocab, config.embedding_dim or decoder.dim)
    return EncoderDecoder(
        source_embedding=build_image_embedding(parts, image),
        encoder=image_factory.layers(encoder),
        encoder_norm=image_factory.final_norm(encoder),
        target_embedding=parts.embedding(table, decoder),
        decoder=parts.decoder_layers(),
        decoder_norm=parts.final_norm(decoder),
        narrow=parts.projection_or_identity(decoder.dim, table.embedding_dim),
        output=parts.output(table, target_vocab),
        mask=DECODER_MASKS[config.mask],
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def build_image_classifier(
    config: ModelConfig, image: ImageShape, target_vocab: int, compute_dtype: torch.dtype
) -> EncoderOnly:
    """Build a model of image labels: the tokens are pooled, as Dosovitskiy et al. 2021 have it in appendix D.3.

    Args:
        config: the [model] part of a recipe, with `config.vision`.
        image: the shape of the images.
        target_vocab: number of pieces of the target vocabulary, or of labels.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts, stack = ModuleFactory(config, compute_dtype), config.encoder
    image_factory = make_image_encoder_factory(parts)
    return EncoderOnly(
        begin=keep_source,
        embedding=build_image_embedding(parts, image),
        encoder=image_factory.layers(stack),
        encoder_norm=image_factory.final_norm(stack),
        head=SentenceHead(POOLINGS[config.pooling], Linear(stack.dim, stack.dim, compute_dtype=compute_dtype)),
        output=parts.output_linear(stack.dim, target_vocab),
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def build_image_recurrent(
    config: ModelConfig, image: ImageShape, target_vocab: int, compute_dtype: torch.dtype
) -> RecurrentEncoderDecoder:
    """Build a model of captions: Xu et al. 2015, figure 1; without attention Vinyals et al. 2015, Karpathy and Fei-Fei
    2015.

    Args:
        config: the [model] part of a recipe, with `config.vision`.
        image: the shape of the images.
        target_vocab: number of pieces of the target vocabulary, or of labels.
        compute_dtype: precision of the operands of matrix products in training.
    """
    image_factory = make_image_encoder_factory(ModuleFactory(config, compute_dtype))
    return build_model_with_recurrent_decoder(
        config, image_factory, lambda: build_image_embedding(image_factory, image), target_vocab
    )


VISION_ENCODERS: dict[str, Callable[[ModuleFactory, VisionConfig, ImageShape], ImageEmbedding]] = {
    "patches": build_patch_embedding,
    "convolution": build_resnet_embedding,
}
"""By name: the module that makes tokens of an image."""
IMAGE_MODELS: dict[str, Callable[[ModelConfig, ImageShape, int, torch.dtype], ImageModel]] = {
    "transformer": build_image_transformer,
    "encoder_only": build_image_classifier,
    "recurrent": build_image_recurrent,
}
"""By architecture: (config, image, target_vocab, compute_dtype) -> the network."""
