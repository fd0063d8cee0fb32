"""Builder of a network in numpy from a model's configuration and weights, if all its parts are here."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np

from tfm.model.config import BOS_ID, ModelConfig, RotaryConfig, StackConfig
from tfm.model.numpy_inference.attention import CrossAttention, HeadShapes, Rotary, SelfAttention, no_rotation
from tfm.model.numpy_inference.decoder_only import DecoderOnly
from tfm.model.numpy_inference.encoder_only import POOLINGS, EncoderOnly, SentenceHead
from tfm.model.numpy_inference.layers import (
    ACTIVATIONS,
    Array,
    Embedding,
    FeedForward,
    LayerNorm,
    Linear,
    PostNorm,
    PreNorm,
    Residual,
    Sublayer,
    sinusoids,
    zero_positions,
)
from tfm.model.numpy_inference.transformer import DecoderLayer, EncoderLayer, Transformer

SUPPORTED_KEYS = (
    *("encoder", "decoder", "norm", "norm_eps", "positions", "rotary", "tie", "scale_embedding", "output_bias"),
    *("activation", "max_length", "dropout", "init_range", "source_vectors", "target_vectors", "freeze_vectors"),
)
"""The keys that may differ from their defaults: they are implemented here, or only affect training."""
LABEL_MODEL_KEYS = (*SUPPORTED_KEYS, "architecture", "task", "pooling", "begin_token")
"""These keys of models that give labels."""
LANGUAGE_MODEL_KEYS = (*SUPPORTED_KEYS, "architecture", "task", "block")
"""These keys of language models."""
SUPPORTED_POSITIONS = ("none", "sinusoidal", "learned", "rotary")
RESIDUALS: dict[str, Callable[[LayerNorm], Residual]] = {"pre": PreNorm, "post": PostNorm}


class UnsupportedModelError(Exception):
    """The model has parts that this engine does not compute, or weights that do not fit its configuration."""


def build_network(
    config: ModelConfig, weights: Mapping[str, Array], *, source_vocab: int, target_vocab: int
) -> Transformer:
    """Return the network of a configuration in numpy.

    Args:
        config: the [model] part of a recipe.
        weights: arrays by the names that `model/build.py` gives them.
        source_vocab: number of pieces of the source vocabulary.
        target_vocab: number of pieces of the target vocabulary.

    Raises:
        UnsupportedModelError: the network has parts that are not implemented in numpy; then `build` may make it.
    """
    if not is_supported(config) or (config.shared_vocabulary_reason is not None and source_vocab != target_vocab):
        raise UnsupportedModelError
    parts = _NetworkBuilder(config, dict(weights))
    network = parts.network(source_vocab, target_vocab)
    parts.check_no_unused_weights()
    return network


def build_encoder_only_network(
    config: ModelConfig, weights: Mapping[str, Array], *, source_vocab: int, target_vocab: int
) -> EncoderOnly:
    """Return the network of a classifier or tagger in numpy; the rest as `build_network`."""
    if not is_label_model(config):
        raise UnsupportedModelError
    parts = _NetworkBuilder(config, dict(weights))
    network = parts.encoder_only_network(source_vocab, target_vocab)
    parts.check_no_unused_weights()
    return network


def build_decoder_only_network(config: ModelConfig, weights: Mapping[str, Array], *, vocab: int) -> DecoderOnly:
    """Return the network of a decoder-only language model in numpy; the rest as `build_network`."""
    if not is_language_model(config):
        raise UnsupportedModelError
    parts = _NetworkBuilder(config, dict(weights))
    network = parts.decoder_only_network(vocab)
    parts.check_no_unused_weights()
    return network


def is_supported(config: ModelConfig) -> bool:
    """Return whether all parts of an encoder-decoder are here."""
    return (
        _has_only_known_keys(config, SUPPORTED_KEYS)
        and config.encoder.layers > 0
        and config.encoder.dim == config.decoder.dim
    )


def is_label_model(config: ModelConfig) -> bool:
    """Return whether a model is a classifier or tagger all parts of which are here."""
    return (
        _has_only_known_keys(config, LABEL_MODEL_KEYS)
        and config.encoder.layers > 0
        and config.architecture == "encoder_only"
        and config.task in ("classification", "tagging")
        and config.shared_vocabulary_reason is None
    )


def is_language_model(config: ModelConfig) -> bool:
    """Return whether a model is a decoder-only language model all parts of which are here."""
    return (
        _has_only_known_keys(config, LANGUAGE_MODEL_KEYS)
        and config.decoder.layers > 0
        and config.architecture == "decoder_only"
        and config.task == "language_model"
    )


def _has_only_known_keys(config: ModelConfig, known_keys: Collection[str]) -> bool:
    """Whether the keys that are other than by default are these, with values that are implemented here."""
    other_keys = ModelConfig.model_fields.keys() - set(known_keys)
    return (
        all(getattr(config, name) == ModelConfig.model_fields[name].default for name in other_keys)
        and config.mixings == {"attention"}
        and config.positions in SUPPORTED_POSITIONS
        and config.activation in ACTIVATIONS
        and config.rotary == RotaryConfig(base=config.rotary.base)
    )


class _NetworkBuilder:
    """Builder of the parts of a network, which takes each weight once."""

    def __init__(self, config: ModelConfig, weights: dict[str, Array]) -> None:
        self._config, self._unused_weights = config, weights

    def network(self, source_vocab: int, target_vocab: int) -> Transformer:
        """Vaswani et al. 2017, figure 1."""
        config, dim, stack = self._config, self._config.decoder.dim, self._config.encoder
        source_table = self._pop_weight("source_embedding.table.weight", source_vocab, dim)
        shared, tied = config.tie in ("embeddings", "all"), config.tie in ("output", "all")
        target_table = source_table if shared else self._pop_weight("target_embedding.table.weight", target_vocab, dim)
        to_pieces = target_table if tied else self._pop_weight("output.weight", target_vocab, dim)
        bias = self._pop_weight("output.bias", target_vocab) if config.output_bias else np.zeros(1, to_pieces.dtype)
        return Transformer(
            source_embedding=self._embedding("source_embedding", source_table),
            encoder=[self._encoder_layer(f"encoder.{number}", stack) for number in range(stack.layers)],
            encoder_norm=self._final_norm("encoder_norm", stack),
            target_embedding=self._embedding("target_embedding", target_table),
            decoder=[self._decoder_layer(f"decoder.{number}") for number in range(config.decoder.layers)],
            decoder_norm=self._final_norm("decoder_norm", config.decoder),
            output=Linear(to_pieces, bias),
            max_length=config.max_length,
        )

    def encoder_only_network(self, source_vocab: int, num_labels: int) -> EncoderOnly:
        """Devlin et al. 2019, figure 1."""
        config, stack = self._config, self._config.encoder
        table = self._pop_weight("embedding.table.weight", source_vocab, stack.dim)
        to_labels = self._pop_weight("output.weight", num_labels, stack.dim)
        bias = self._pop_weight("output.bias", num_labels) if config.output_bias else np.zeros(1, to_labels.dtype)
        begin = (BOS_ID,) if config.begin_token else ()
        if config.task == "classification":
            head: Sublayer = SentenceHead(POOLINGS[config.pooling], self._linear("head.inner", stack.dim, stack.dim))
        else:
            head = (lambda rows: rows[1:]) if config.begin_token else (lambda rows: rows)
        return EncoderOnly(
            begin=begin,
            embedding=self._embedding("embedding", table, len(begin)),
            encoder=[self._encoder_layer(f"encoder.{number}", stack) for number in range(stack.layers)],
            encoder_norm=self._final_norm("encoder_norm", stack),
            head=head,
            output=Linear(to_labels, bias),
            max_length=config.max_length,
        )

    def decoder_only_network(self, vocab: int) -> DecoderOnly:
        """Radford et al. 2018, figure 1 (left)."""
        config, stack = self._config, self._config.decoder
        table = self._pop_weight("embedding.table.weight", vocab, stack.dim)
        tied = config.tie in ("output", "all")
        to_pieces = table if tied else self._pop_weight("output.weight", vocab, stack.dim)
        bias = self._pop_weight("output.bias", vocab) if config.output_bias else np.zeros(1, to_pieces.dtype)
        return DecoderOnly(
            embedding=self._embedding("embedding", table),
            layers=[self._encoder_layer(f"layers.{number}", stack) for number in range(stack.layers)],
            norm=self._final_norm("norm", stack),
            output=Linear(to_pieces, bias),
            max_length=config.max_length,
        )

    def check_no_unused_weights(self) -> None:
        """Raise UnsupportedModelError if weights are left that no part has taken."""
        if self._unused_weights:
            raise UnsupportedModelError

    def _pop_weight(self, name: str, *shape: int) -> Array:
        weight = self._unused_weights.pop(name, None)
        if weight is None or weight.shape != shape:
            raise UnsupportedModelError
        return weight

    def _embedding(self, name: str, table: Array, num_begin_tokens: int = 0) -> Embedding:
        """Build an embedding. num_begin_tokens: tokens that are read before a text of the maximum length."""
        config, dim = self._config, table.shape[1]
        added: Callable[[Array], Array] = zero_positions
        if config.positions == "sinusoidal":
            added = partial(sinusoids, dim)
        elif config.positions == "learned":
            added = self._pop_weight(
                f"{name}.positions.table.weight", config.max_length + num_begin_tokens, dim
            ).__getitem__
        return Embedding(table, dim**0.5 if config.scale_embedding else 1.0, added)

    def _encoder_layer(self, name: str, stack: StackConfig) -> EncoderLayer:
        return EncoderLayer(
            self._self_attention(f"{name}.attention", stack),
            self._feed_forward(f"{name}.feed_forward", stack),
            self._residual(f"{name}.around_attention", stack),
            self._residual(f"{name}.around_feed_forward", stack),
        )

    def _decoder_layer(self, name: str) -> DecoderLayer:
        stack = self._config.decoder
        return DecoderLayer(
            self._self_attention(f"{name}.attention", stack),
            self._cross_attention(f"{name}.cross_attention", stack),
            self._feed_forward(f"{name}.feed_forward", stack),
            self._residual(f"{name}.around_attention", stack),
            self._residual(f"{name}.around_cross_attention", stack),
            self._residual(f"{name}.around_feed_forward", stack),
        )

    def _self_attention(self, name: str, stack: StackConfig) -> SelfAttention:
        heads, config = make_attention_heads(stack), self._config
        return SelfAttention(
            heads,
            self._linear(f"{name}.query_key_value", stack.dim, sum(heads.projection_widths)),
            self._linear(f"{name}.output", heads.num_heads * heads.value_dim, stack.dim),
            Rotary(config.rotary.base) if config.positions == "rotary" else no_rotation,
        )

    def _cross_attention(self, name: str, stack: StackConfig) -> CrossAttention:
        heads, memory_dim = make_attention_heads(stack), self._config.encoder.dim
        query, key, value = heads.projection_widths
        return CrossAttention(
            heads,
            self._linear(f"{name}.query", stack.dim, query),
            self._linear(f"{name}.key_value", memory_dim, key + value),
            self._linear(f"{name}.output", heads.num_heads * heads.value_dim, stack.dim),
        )

    def _feed_forward(self, name: str, stack: StackConfig) -> FeedForward:
        return FeedForward(
            self._linear(f"{name}.inner", stack.dim, stack.feed_forward_dim),
            self._linear(f"{name}.outer", stack.feed_forward_dim, stack.dim),
            ACTIVATIONS[self._config.activation],
        )

    def _residual(self, name: str, stack: StackConfig) -> Residual:
        return RESIDUALS[self._config.norm](self._norm(f"{name}.norm", stack.dim))

    def _final_norm(self, name: str, stack: StackConfig) -> Sublayer:
        """Return the norm at the end of a stack: one more norm for pre-norm layers, else the identity."""
        return self._norm(name, stack.dim) if self._config.norm == "pre" else lambda x: x

    def _norm(self, name: str, dim: int) -> LayerNorm:
        return LayerNorm(
            self._pop_weight(f"{name}.weight", dim), self._pop_weight(f"{name}.bias", dim), self._config.norm_eps
        )

    def _linear(self, name: str, in_dim: int, out_dim: int) -> Linear:
        return Linear(self._pop_weight(f"{name}.weight", out_dim, in_dim), self._pop_weight(f"{name}.bias", out_dim))


def make_attention_heads(stack: StackConfig) -> HeadShapes:
    """The heads of a stack's attention."""
    equal_dim = stack.dim // stack.heads
    return HeadShapes(
        stack.heads, stack.key_value_heads or stack.heads, stack.key_dim or equal_dim, stack.value_dim or equal_dim
    )
