"""Builder that makes the network of a configuration; the code reads like the diagram of the paper."""

from collections.abc import Callable

import torch
from torch import nn

from tfm.model.build_images import IMAGE_MODELS
from tfm.model.build_recurrent import build_character_recurrent, build_recurrent
from tfm.model.characters.factory import CharacterModuleFactory
from tfm.model.characters.tagger import CharacterTagger
from tfm.model.config import ModelConfig
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import NORM_CLASSES
from tfm.model.recurrent.encoder_decoder import RecurrentEncoderDecoder
from tfm.model.transformer.decoder_masks import DECODER_MASKS
from tfm.model.transformer.decoder_only import DecoderOnly
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.model.transformer.encoder_only import (
    POOLINGS,
    EncoderOnly,
    SentenceHead,
    TokenHead,
    find_after_begin,
    find_in_text,
    keep_source,
    prepend_begin_token,
)
from tfm.model.transformer.factory import ModuleFactory, make_embedding
from tfm.model.transformer.language_prefix import LANGUAGE_PREFIX_MODELS
from tfm.model.transformer.recurrent_stack import RecurrentStackFactory
from tfm.model.vision.image_shape import ImageShape, shape_problem
from tfm.model.word_vectors import PREDICTION_RULES, WordVectors, embedding_table

Model = EncoderDecoder | DecoderOnly | EncoderOnly | CharacterTagger | RecurrentEncoderDecoder | WordVectors


def build(
    config: ModelConfig,
    *,
    source_vocab: int,
    target_vocab: int,
    image: ImageShape | None = None,
    seed: int = 0,
    compute_dtype: torch.dtype = torch.float32,
) -> Model:
    """Return the network that a configuration describes, its initial weights a pure function of the seed.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary; unused where the source is an image.
        target_vocab: number of pieces of the target vocabulary.
        image: the shape of the source where it is an image (`config.vision`), else None.
        seed: seed of the initial weights.
        compute_dtype: precision of the operands of matrix products in training.

    Raises:
        ValueError: the vocabularies differ in size and the model has one for both, or the model cannot read images of
            that shape.
    """
    if (image is None) != (config.vision is None):
        raise ValueError("images need [model.vision]" if image else "[model.vision] needs the shape of the images")
    if config.vision is not None and image is not None and (problem := shape_problem(config.vision, image)) is not None:
        raise ValueError(problem)
    if config.shared_vocabulary_reason is not None and source_vocab != target_vocab:
        raise ValueError(
            f"{config.shared_vocabulary_reason} needs one vocabulary for source and target (tokenizer.shared = true)"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Model
        if image is None:
            build_text = SINGLE_STACK_RECURRENT_BUILDERS.get(
                (config.architecture, config.only_stack), ARCHITECTURES[config.architecture]
            )
            if config.canine is not None:
                build_text = CHARACTER_MODEL_BUILDERS.get((config.architecture, config.task), build_text)
            model = build_text(config, source_vocab, target_vocab, compute_dtype)
        else:
            model = IMAGE_MODELS[config.architecture](config, image, target_vocab, compute_dtype)
        if config.init_range is not None:
            initialize_uniformly(model, config.init_range)
    for side in config.frozen_vector_sides:
        embedding_table(model, side).requires_grad_(False)
    return model


@torch.no_grad()
def initialize_uniformly(model: nn.Module, bound: float) -> None:
    """Draw all weights of a network but those of its norms from -bound to bound (Sutskever et al. 2014, sec. 3.4)."""
    norm_parameter_ids = {
        id(weight) for module in model.modules() if isinstance(module, NORM_CLASSES) for weight in module.parameters()
    }
    for parameter in model.parameters():
        if id(parameter) not in norm_parameter_ids:
            parameter.uniform_(-bound, bound)


def num_parameters(model: nn.Module) -> int:
    """Return the number of parameters of a network; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def build_transformer(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> EncoderDecoder:
    """Build the network of Vaswani et al. 2017, figure 1.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts, network = make_factory(config, compute_dtype), LANGUAGE_PREFIX_MODELS[config.languages]
    encoder, decoder = config.encoder, config.decoder
    source_embedding_table, target_table = parts.tables(source_vocab, target_vocab)
    output = parts.output(target_table, target_vocab)
    return network(
        source_embedding=parts.source_embedding(source_embedding_table),
        encoder=parts.layers(encoder),
        encoder_norm=parts.final_norm(encoder),
        target_embedding=parts.embedding(target_table, decoder, config.num_positions(causal=True)),
        decoder=parts.decoder_layers(),
        decoder_norm=parts.final_norm(decoder),
        narrow=parts.projection_or_identity(decoder.dim, target_table.embedding_dim),
        output=output,
        mask=DECODER_MASKS[config.mask],
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def build_decoder_only(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> DecoderOnly:
    """Build the network of Radford et al. 2018, figure 1 (left): a decoder without cross-attention.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts, stack = make_factory(config, compute_dtype), config.decoder
    table = parts.table(target_vocab, config.embedding_dim or stack.dim)
    return DecoderOnly(
        embedding=parts.embedding(table, stack, config.num_positions(causal=True)),
        layers=parts.layers(stack, causal=True),
        norm=parts.final_norm(stack),
        narrow=parts.projection_or_identity(stack.dim, table.embedding_dim),
        output=parts.output(table, target_vocab),
        mask=DECODER_MASKS[config.mask],
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def build_encoder_only(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> EncoderOnly:
    """Build the network of Devlin et al. 2019, figure 1: one encoder, and for each task an output layer.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts, stack = make_factory(config, compute_dtype), config.encoder
    table = parts.source_embedding_table(source_vocab)
    begin, find_rows = (prepend_begin_token, find_after_begin) if config.begin_token else (keep_source, find_in_text)
    head: TokenHead | SentenceHead
    if config.task == "masked_language_model":
        head = TokenHead(parts.prediction_head(stack, table.embedding_dim), find_rows)
        output = parts.output(table, source_vocab)
    else:
        inner = Linear(stack.dim, stack.dim, compute_dtype=compute_dtype)
        pooled = config.has_pooler
        head = SentenceHead(POOLINGS[config.pooling], inner) if pooled else TokenHead(nn.Identity(), find_rows)
        output = parts.output_linear(stack.dim, target_vocab)
    return EncoderOnly(
        begin=begin,
        embedding=parts.source_embedding(table),
        encoder=parts.layers(stack),
        encoder_norm=parts.final_norm(stack),
        head=head,
        output=output,
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def build_character_tagger(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> CharacterTagger:
    """Build the network of Clark et al. 2022, figure 1.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts, stack = CharacterModuleFactory(config, compute_dtype), config.encoder
    return CharacterTagger(
        embedding=parts.source_embedding(parts.source_embedding_table(source_vocab)),
        encoder=parts.layers(stack),
        encoder_norm=parts.final_norm(stack),
        head=parts.upsampling(),
        output=parts.output_linear(stack.dim, target_vocab),
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def make_factory(config: ModelConfig, compute_dtype: torch.dtype) -> ModuleFactory:
    """Return the parts of a network: of one that reads pieces or characters, or of one stack of recurrent layers."""
    if config.architecture == "recurrent" and config.only_stack is not None:
        return RecurrentStackFactory(config, compute_dtype)
    return (
        ModuleFactory(config, compute_dtype) if config.canine is None else CharacterModuleFactory(config, compute_dtype)
    )


def build_word_vectors(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> WordVectors:
    """Build the network of Mikolov et al. 2013a, figure 1: no layer but the two tables.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts = ModuleFactory(config, compute_dtype)
    table = make_embedding(target_vocab, config.embedding_dim or config.encoder.dim)
    return WordVectors(
        table=table,
        output=parts.make_linear(table.embedding_dim, target_vocab),
        reading=PREDICTION_RULES[config.architecture],
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


ARCHITECTURES: dict[str, Callable[[ModelConfig, int, int, torch.dtype], Model]] = {
    "transformer": build_transformer,
    "decoder_only": build_decoder_only,
    "encoder_only": build_encoder_only,
    "recurrent": build_recurrent,
    "skip_gram": build_word_vectors,
    "cbow": build_word_vectors,
}
"""By name: (config, source_vocab, target_vocab, compute_dtype) -> the network."""
SINGLE_STACK_RECURRENT_BUILDERS: dict[tuple[str, str | None], Callable[[ModelConfig, int, int, torch.dtype], Model]] = {
    ("recurrent", "decoder"): build_decoder_only,
    ("recurrent", "encoder"): build_encoder_only,
}
"""By architecture and stack: builders of recurrent networks with one stack, which is built as that of a Transformer."""
CHARACTER_MODEL_BUILDERS: dict[tuple[str, str], Callable[[ModelConfig, int, int, torch.dtype], Model]] = {
    ("encoder_only", "tagging"): build_character_tagger,
    ("recurrent", "translation"): build_character_recurrent,
}
"""By architecture and task: builders of models of characters that differ from others in more than the embedding."""
