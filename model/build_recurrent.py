"""Builders of the networks with a recurrent decoder, after an encoder that reads step by step or one that attends."""

from collections.abc import Callable

import torch

from tfm.model.characters.factory import CharacterModuleFactory
from tfm.model.config import ModelConfig
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layers.embedding import SourceEmbedding
from tfm.model.recurrent.attentive_reader import AttentionEncoderWithMeanState
from tfm.model.recurrent.encoder_decoder import RecurrentEncoderDecoder
from tfm.model.recurrent.factory import RecurrentModuleFactory
from tfm.model.transformer.factory import ModuleFactory


def build_recurrent(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> RecurrentEncoderDecoder:
    """Build the network of Sutskever et al. 2014, figure 1; with attention Bahdanau et al. 2015, figure 1, Luong et
    al. 2015, figure 2.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts = make_positionless_factory(config, compute_dtype)
    recurrent = RecurrentModuleFactory(config, parts.dropout_rng, compute_dtype)
    encoder, decoder = config.encoder, config.decoder
    source_embedding_table, target_table = parts.tables(source_vocab, target_vocab)
    return RecurrentEncoderDecoder(
        source_embedding=parts.embedding(source_embedding_table, encoder),
        encoder=recurrent.encoder(),
        bridge=recurrent.bridge(),
        target_embedding=parts.embedding(target_table, decoder),
        decoder=recurrent.decoder(),
        narrow=parts.projection_or_identity(decoder.dim, target_table.embedding_dim),
        output=parts.output(target_table, target_vocab),
        dropout_rng=parts.dropout_rng,
        max_length=config.max_length,
    )


def build_character_recurrent(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> RecurrentEncoderDecoder:
    """Build the encoder of Clark et al. 2022, figure 1, and a recurrent decoder.

    Args:
        config: the [model] part of a recipe.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.
        compute_dtype: precision of the operands of matrix products in training.
    """
    parts = CharacterModuleFactory(config, compute_dtype)
    return build_model_with_recurrent_decoder(
        config, parts, lambda: parts.source_embedding(parts.source_embedding_table(source_vocab)), target_vocab
    )


def build_model_with_recurrent_decoder(
    config: ModelConfig,
    encoder_factory: ModuleFactory,
    source_embedding: Callable[[], SourceEmbedding],
    target_vocab: int,
) -> RecurrentEncoderDecoder:
    """Build a recurrent decoder after layers of attention, which the source enters by its embedding.

    Args:
        config: the [model] part of a recipe.
        encoder_factory: the factory of the encoder's parts.
        source_embedding: () -> the source's embedding, made when it is its turn: the order in which parts are made
            decides their first weights.
        target_vocab: number of pieces of the target vocabulary.
    """
    decoder_parts = make_positionless_factory(config, encoder_factory.compute_dtype, encoder_factory.dropout_rng)
    recurrent = RecurrentModuleFactory(config, encoder_factory.dropout_rng, encoder_factory.compute_dtype)
    encoder, decoder = config.encoder, config.decoder
    table = decoder_parts.table(target_vocab, config.embedding_dim or decoder.dim)
    return RecurrentEncoderDecoder(
        source_embedding=source_embedding(),
        encoder=AttentionEncoderWithMeanState(encoder_factory.layers(encoder), encoder_factory.final_norm(encoder)),
        bridge=recurrent.projection(),
        target_embedding=decoder_parts.embedding(table, decoder),
        decoder=recurrent.decoder(),
        narrow=decoder_parts.projection_or_identity(decoder.dim, table.embedding_dim),
        output=decoder_parts.output(table, target_vocab),
        dropout_rng=encoder_factory.dropout_rng,
        max_length=config.max_length,
    )


def make_positionless_factory(
    config: ModelConfig, compute_dtype: torch.dtype, dropout_rng: DropoutRng | None = None
) -> ModuleFactory:
    """Return the factory of parts without positions: a recurrent model counts by itself.

    Args:
        config: the [model] part of a recipe.
        compute_dtype: precision of the operands of matrix products in training.
        dropout_rng: source of dropout masks, where other parts of the network have it already.
    """
    return ModuleFactory(config.model_copy(update={"positions": "none"}), compute_dtype, dropout_rng)
