"""The builder: a configuration becomes a network. It reads as the diagram of the paper."""

from collections.abc import Callable

import torch
from torch import nn

from model.attention import CrossAttention, SelfAttention
from model.blocks import ACTIVATIONS, NORMALIZATIONS, NORMS, DecoderLayer, EncoderLayer, FeedForward, Residual
from model.config import ModelConfig, StackConfig
from model.linear import Linear
from model.noise import Dropout, Noise
from model.positions import POSITIONS
from model.scores import SCORES
from model.transformer import Embedding, EncoderDecoder


def build(
    config: ModelConfig,
    *,
    source_vocab: int,
    target_vocab: int,
    seed: int = 0,
    compute_dtype: torch.dtype = torch.float32,
) -> EncoderDecoder:
    """The network a configuration describes, its initial weights a pure function of the seed.

    compute_dtype: precision of the operands of matrix products in training.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ARCHITECTURES[config.architecture](config, source_vocab, target_vocab, compute_dtype)


def build_transformer(
    config: ModelConfig, source_vocab: int, target_vocab: int, compute_dtype: torch.dtype
) -> EncoderDecoder:
    """Vaswani et al. 2017, figure 1."""
    parts = Parts(config, compute_dtype)
    encoder, decoder = config.encoder, config.decoder
    source_table = embedding_table(source_vocab, config.embedding_dim or encoder.dim)
    shared = config.tie in ("embeddings", "all")
    target_table = source_table if shared else embedding_table(target_vocab, config.embedding_dim or decoder.dim)
    if shared and source_vocab != target_vocab:
        raise ValueError(f'tie = "{config.tie}" needs one vocabulary for source and target (tokenizer.shared = true)')
    output = Linear(target_table.embedding_dim, target_vocab, bias=False, compute_dtype=compute_dtype)
    if config.tie in ("output", "all"):
        output.weight = target_table.weight
    return EncoderDecoder(
        source_embedding=parts.embedding(source_table, encoder),
        encoder=[parts.encoder_layer() for _ in range(encoder.layers)],
        encoder_norm=parts.final_norm(encoder),
        target_embedding=parts.embedding(target_table, decoder),
        decoder=[parts.decoder_layer() for _ in range(decoder.layers)],
        decoder_norm=parts.final_norm(decoder),
        narrow=parts.resize(decoder.dim, target_table.embedding_dim),
        output=output,
        noise=parts.noise,
        max_length=config.max_length,
    )


class Parts:
    """Makes the parts of one network; they share its source of dropout masks."""

    def __init__(self, config: ModelConfig, compute_dtype: torch.dtype) -> None:
        self.config, self.compute_dtype, self.noise = config, compute_dtype, Noise()

    def encoder_layer(self) -> EncoderLayer:
        stack = self.config.encoder
        return EncoderLayer(self.self_attention(stack), self.feed_forward(stack), self.residual(stack))

    def decoder_layer(self) -> DecoderLayer:
        stack, memory_dim = self.config.decoder, self.config.encoder.dim
        return DecoderLayer(
            self.self_attention(stack),
            CrossAttention(
                stack.dim,
                memory_dim,
                stack.heads,
                score=SCORES[self.config.score](stack.heads, stack.dim // stack.heads),
                dropout=self.config.dropout.attention,
                noise=self.noise,
                compute_dtype=self.compute_dtype,
            ),
            self.feed_forward(stack),
            self.residual(stack),
        )

    def self_attention(self, stack: StackConfig) -> SelfAttention:
        return SelfAttention(
            stack.dim,
            stack.heads,
            score=SCORES[self.config.score](stack.heads, stack.dim // stack.heads),
            positions=POSITIONS[self.config.positions].attention(stack.heads, stack.dim // stack.heads),
            dropout=self.config.dropout.attention,
            noise=self.noise,
            compute_dtype=self.compute_dtype,
        )

    def feed_forward(self, stack: StackConfig) -> FeedForward:
        return FeedForward(
            stack.dim,
            stack.feed_forward_dim,
            activation=ACTIVATIONS[self.config.activation],
            dropout=Dropout(self.config.dropout.feed_forward, self.noise),
            compute_dtype=self.compute_dtype,
        )

    def residual(self, stack: StackConfig) -> Callable[[], Residual]:
        normalization = NORMALIZATIONS[self.config.normalization]
        dropout = Dropout(self.config.dropout.residual, self.noise)
        return lambda: NORMS[self.config.norm](normalization(stack.dim), dropout)

    def final_norm(self, stack: StackConfig) -> nn.Module:
        """What a stack ends with."""
        ends_normed = NORMS[self.config.norm].ends_normed
        return nn.Identity() if ends_normed else NORMALIZATIONS[self.config.normalization](stack.dim)

    def embedding(self, table: nn.Embedding, stack: StackConfig) -> Embedding:
        return Embedding(
            table,
            stack.dim,
            positions=POSITIONS[self.config.positions].input(stack.dim, self.config.max_length),
            scale=table.embedding_dim**0.5 if self.config.scale_embedding else 1.0,
            dropout=Dropout(self.config.dropout.embedding, self.noise),
            widen=self.resize(table.embedding_dim, stack.dim),
        )

    def resize(self, in_dim: int, out_dim: int) -> nn.Module:
        """A projection between widths, where they differ."""
        if in_dim == out_dim:
            return nn.Identity()
        return Linear(in_dim, out_dim, bias=False, compute_dtype=self.compute_dtype)


def embedding_table(vocab: int, dim: int) -> nn.Embedding:
    """One row a piece, of unit length in expectation."""
    table = nn.Embedding(vocab, dim)
    nn.init.normal_(table.weight, std=dim**-0.5)
    return table


ARCHITECTURES = {"transformer": build_transformer}
