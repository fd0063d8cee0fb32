"""The factory of a network's parts: looks up each part that the configuration names."""

from collections.abc import Callable

import torch
from torch import nn

from tfm.model.attention.explicit_attention import ATTENTION_WEIGHT_FUNCTIONS
from tfm.model.attention.inner_attention import BlockedAttention, InnerAttention, choose_inner_attention
from tfm.model.attention.multi_head import CrossAttention, HeadShapes, SelfAttention
from tfm.model.attention.positions import POSITION_JOINS, POSITIONS, AbsoluteAttentionPositions, ConcatenatedPositions
from tfm.model.attention.projections import VALUE_PROJECTIONS, ProjectionFactory, make_identity_projection
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import SCORES
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layers.adaptive_softmax import (
    AdaptiveEmbedding,
    AdaptiveSoftmax,
    EmbeddingTable,
    OutputLayer,
    make_clusters,
)
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.embedding import Embedding, SourceEmbedding
from tfm.model.layers.feed_forward import ACTIVATIONS, FeedForward
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import NORMALIZATIONS
from tfm.model.layers.residual import RESIDUALS, RESIDUALS_BY_NORM_PLACEMENT, Residual, StochasticDepth
from tfm.model.recurrent.cells import CELLS
from tfm.model.transformer.encoder_only import PredictionHeadTransform
from tfm.model.transformer.layers import DecoderLayer, EncoderLayer
from tfm.model.transformer.token_mixing import ConvolutionMixing, Mixing, RecurrentMixing


class ModuleFactory:
    """Factory of the parts of one network, which share its source of dropout masks.

    Args:
        config: the [model] part of a recipe.
        compute_dtype: precision of the operands of matrix products in training.
        dropout_rng: source of dropout masks, where other parts of the network have it already.
    """

    def __init__(self, config: ModelConfig, compute_dtype: torch.dtype, dropout_rng: DropoutRng | None = None) -> None:
        self.config, self.compute_dtype, self.dropout_rng = config, compute_dtype, dropout_rng or DropoutRng()

    def layers(self, stack: StackConfig, *, causal: bool = False) -> list[EncoderLayer]:
        """The layers of a stack without cross-attention. causal: no row sees those after it."""
        return [self.layer(stack, causal=causal, layer_index=layer_index) for layer_index in range(stack.layers)]

    def layer(self, stack: StackConfig, *, causal: bool = False, layer_index: int | None = None) -> EncoderLayer:
        """Return one layer of attention and feed-forward.

        Args:
            stack: the settings of its stack.
            causal: whether a row sees none after it.
            layer_index: number of the layer in the stack, from 0; None for a layer that is in none.
        """
        mixing = self.mixing(stack, causal=causal, layer_index=layer_index or 0)
        return EncoderLayer(mixing, self.feed_forward(stack), self.residual(stack, layer_index))

    def decoder_layers(self) -> list[DecoderLayer]:
        """The layers of the decoder, with cross-attention."""
        stack, memory_dim = self.config.decoder, self.config.encoder.dim
        return [
            DecoderLayer(
                self.mixing(stack, causal=True, layer_index=layer_index),
                self.cross_attention(stack, memory_dim),
                self.feed_forward(stack),
                self.residual(stack, layer_index),
            )
            for layer_index in range(stack.layers)
        ]

    def mixing(self, stack: StackConfig, *, causal: bool, layer_index: int) -> Mixing:
        """Return the module that mixes the positions of a sentence: self-attention, or a replacement of it.

        Args:
            stack: the settings of its stack.
            causal: whether a row sees none after it.
            layer_index: number of the layer in the stack, from 0.
        """
        return MIXINGS[stack.mixing or self.config.mixing](self, stack, causal, layer_index)

    def self_attention(self, stack: StackConfig, causal: bool, layer_index: int) -> SelfAttention:
        """Return self-attention, whose masks say who sees whom.

        Args:
            stack: the settings of its stack.
            causal: whether the stack is a decoder.
            layer_index: number of the layer in the stack, from 0.
        """
        heads, window = self.heads(stack), self.config.window
        scheme, positions = POSITIONS[self.config.positions], AttentionPositions()
        if self.config.positions_join != "attention":
            positions = scheme.attention(heads.num_heads, heads.key_dim, heads.value_dim, self.config.rotary)
        elif layer_index == 0:
            positions = AbsoluteAttentionPositions(scheme.input(stack.dim, self.config.num_positions(causal=causal)))
        mix = self.inner_attention(heads, positions)
        return SelfAttention(
            stack.dim,
            heads,
            mix=mix if window is None else BlockedAttention(mix),
            positions=positions,
            norm=self.query_key_norm,
            project=self.projection,
            has_output=self.config.output_projection,
            window=window,
            compute_dtype=self.compute_dtype,
        )

    def recurrent_mixing(self, stack: StackConfig, causal: bool, layer_index: int) -> RecurrentMixing:
        """Return a recurrent layer; arguments as of `mixing`."""
        widths = (stack.dim,) if causal else (stack.dim - stack.dim // 2, stack.dim // 2)
        cell = CELLS[self.config.recurrent.cell]
        return RecurrentMixing([cell(stack.dim, width, compute_dtype=self.compute_dtype) for width in widths])

    def convolution(self, stack: StackConfig, causal: bool, layer_index: int) -> ConvolutionMixing:
        """Return a convolution; arguments as of `mixing`."""
        offsets = self.config.convolution_offsets(layer_index, causal=causal)
        filters = self.config.convolution.filters
        return ConvolutionMixing(stack.dim, offsets, filters=filters, compute_dtype=self.compute_dtype)

    def cross_attention(self, stack: StackConfig, memory_dim: int) -> CrossAttention:
        heads = self.heads(stack)
        return CrossAttention(
            stack.dim,
            memory_dim,
            heads,
            mix=self.inner_attention(heads, AttentionPositions()),
            norm=self.query_key_norm,
            project=self.projection,
            has_output=self.config.output_projection,
            compute_dtype=self.compute_dtype,
        )

    def heads(self, stack: StackConfig) -> HeadShapes:
        head_dim = stack.dim // stack.heads
        groups = stack.key_value_heads or stack.heads
        return HeadShapes(stack.heads, groups, stack.key_dim or head_dim, stack.value_dim or head_dim)

    def inner_attention(self, heads: HeadShapes, positions: AttentionPositions) -> InnerAttention:
        score = SCORES[self.config.score](heads.num_heads, heads.key_dim)
        return choose_inner_attention(
            score,
            positions,
            self.config.dropout.attention,
            self.dropout_rng,
            self.compute_dtype,
            ATTENTION_WEIGHT_FUNCTIONS[self.config.lookup],
        )

    @property
    def projection(self) -> ProjectionFactory:
        """The function that makes the projections of queries, keys and values."""
        return VALUE_PROJECTIONS[self.config.values] if self.config.attention_projections else make_identity_projection

    def query_key_norm(self, key_dim: int) -> nn.Module:
        return NORMALIZATIONS["rms"](key_dim, eps=self.config.norm_eps) if self.config.qk_norm else nn.Identity()

    def feed_forward(self, stack: StackConfig) -> FeedForward | None:
        """Return the feed-forward layer; None for a layer of attention alone."""
        return FEED_FORWARDS[self.config.feed_forward](self, stack)

    def position_wise(self, stack: StackConfig) -> FeedForward:
        """Return two matrices with an activation between them."""
        return FeedForward(
            stack.dim,
            stack.feed_forward_dim,
            activation=ACTIVATIONS[self.config.activation],
            dropout=Dropout(self.config.dropout.feed_forward, self.dropout_rng),
            compute_dtype=self.compute_dtype,
        )

    def residual(self, stack: StackConfig, layer_index: int | None) -> Callable[[], Residual]:
        """Return a function that makes the residual connections of layer `layer_index`, as `layer` has it."""
        depth = 0.0 if layer_index is None else (layer_index + 1) / stack.layers
        rates = self.config.dropout
        dropout, stochastic_depth = (
            Dropout(rates.residual, self.dropout_rng),
            StochasticDepth(depth * rates.depth, self.dropout_rng),
        )
        residual_class = RESIDUALS[self.config.residual][self.config.norm]
        return lambda: residual_class(self.normalization(stack.dim), dropout, stochastic_depth)

    def final_norm(self, stack: StackConfig) -> nn.Module:
        """Return the norm at the end of a stack."""
        ends_normed = RESIDUALS_BY_NORM_PLACEMENT[self.config.norm].output_is_normalized
        return nn.Identity() if ends_normed else self.normalization(stack.dim)

    def normalization(self, dim: int) -> nn.Module:
        """The norm of the configuration, of rows so wide."""
        return NORMALIZATIONS[self.config.normalization](dim, eps=self.config.norm_eps)

    def embedding(self, table: EmbeddingTable, stack: StackConfig, max_length: int | None = None) -> Embedding:
        """Return the embedding of a stack's tokens.

        Args:
            table: ids to vectors.
            stack: the settings of the stack.
            max_length: number of positions; None for `config.max_length`.
        """
        scheme, join = POSITIONS[self.config.positions].input, POSITION_JOINS[self.config.positions_join]
        positions = join(scheme, stack.dim, max_length or self.config.max_length)
        position_dim = positions.width if isinstance(positions, ConcatenatedPositions) else 0
        return Embedding(
            table,
            stack.dim,
            positions=positions,
            scale=table.embedding_dim**0.5 if self.config.scale_embedding else 1.0,
            norm=self.normalization(stack.dim) if self.config.embedding_norm else nn.Identity(),
            dropout=Dropout(self.config.dropout.embedding, self.dropout_rng),
            widen=self.projection_or_identity(table.embedding_dim, stack.dim - position_dim),
        )

    def source_embedding(self, table: EmbeddingTable) -> SourceEmbedding:
        """Return the embedding that the encoder reads, of the source's own table."""
        return self.embedding(table, self.config.encoder, self.config.num_positions(causal=False))

    def source_embedding_table(self, vocab: int) -> EmbeddingTable:
        """A vector for each piece of the source."""
        return self.table(vocab, self.config.embedding_dim or self.config.encoder.dim)

    def tables(self, source_vocab: int, target_vocab: int) -> tuple[EmbeddingTable, EmbeddingTable]:
        """The embeddings of source and target, which may be one; then the vocabularies are one too."""
        config, source = self.config, self.source_embedding_table(source_vocab)
        if config.tie not in ("embeddings", "all"):
            return source, self.table(target_vocab, config.embedding_dim or config.decoder.dim)
        return source, source

    def table(self, vocab: int, dim: int) -> EmbeddingTable:
        """A vector for each piece, of the same width, or of clusters."""
        adaptive = self.config.adaptive
        if adaptive is None or not adaptive.inputs:
            return make_embedding(vocab, dim)
        tables = [make_embedding(cluster.size, cluster.width) for cluster in make_clusters(adaptive, dim, vocab)]
        return AdaptiveEmbedding(tables, compute_dtype=self.compute_dtype)

    def output(self, table: EmbeddingTable, vocab: int) -> OutputLayer:
        """The output layer, whose weight may be that of the embeddings."""
        adaptive, tied = self.config.adaptive, self.config.tie in ("output", "all")
        if adaptive is not None:
            clusters = make_clusters(adaptive, table.embedding_dim, vocab)
            tables = table.iterate_tables() if tied and isinstance(table, AdaptiveEmbedding) else ()
            return AdaptiveSoftmax(clusters, tables, compute_dtype=self.compute_dtype)
        output = self.output_linear(table.embedding_dim, vocab)
        if tied and isinstance(table, nn.Embedding):
            output.weight = table.weight
        return output

    def output_linear(self, dim: int, num_outputs: int) -> Linear:
        """Return a linear layer from rows of width `dim` to the logits of pieces or labels."""
        return Linear(dim, num_outputs, bias=self.config.output_bias, compute_dtype=self.compute_dtype)

    def projection_or_identity(self, in_dim: int, out_dim: int) -> nn.Module:
        """A projection between widths, if they differ."""
        return nn.Identity() if in_dim == out_dim else self.make_linear(in_dim, out_dim)

    def prediction_head(self, stack: StackConfig, out_dim: int) -> nn.Module:
        """Return the module between a stack and the output layer of masked pieces."""
        if not self.config.head_transform:
            return self.projection_or_identity(stack.dim, out_dim)
        dense = Linear(stack.dim, out_dim, compute_dtype=self.compute_dtype)
        return PredictionHeadTransform(dense, ACTIVATIONS[self.config.activation].function, self.normalization(out_dim))

    def make_linear(self, in_dim: int, out_dim: int) -> Linear:
        return Linear(in_dim, out_dim, bias=False, compute_dtype=self.compute_dtype)


def make_embedding(vocab: int, dim: int) -> nn.Embedding:
    """Return an embedding with one row a piece, of unit length in expectation."""
    table = nn.Embedding(vocab, dim)
    nn.init.normal_(table.weight, std=dim**-0.5)
    return table


MIXINGS: dict[str, Callable[[ModuleFactory, StackConfig, bool, int], Mixing]] = {
    "attention": ModuleFactory.self_attention,
    "recurrent": ModuleFactory.recurrent_mixing,
    "convolution": ModuleFactory.convolution,
}
"""By name: (parts, stack, whether it is causal, the layer's number) -> the module in self-attention's place."""
FEED_FORWARDS: dict[str, Callable[[ModuleFactory, StackConfig], FeedForward | None]] = {
    "position_wise": ModuleFactory.position_wise,
    "none": lambda parts, stack: None,
}
"""By name: (parts, stack) -> the layer after attention, or None."""
