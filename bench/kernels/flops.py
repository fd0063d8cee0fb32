"""Floating-point operations of the encoder-decoder: what an exact implementation has to multiply and add.

With S and T the source and target tokens of a text (end tokens counted), s and t those of one of its sentences:

    forward  =  2 S enc  +  2 T dec  +  2 T E V  +  4 D_e L_e sum s^2  +  4 D_d L_d (sum t (t+1) / 2  +  sum s t)
    training =  3 forward          (the gradients of inputs and of weights cost a product each)

    enc = L_e (4 D_e^2 + 2 D_e F_e)  +  L_d 2 D_e D_d      a source row: encoder; keys and values of cross-attention
    dec = L_d (4 D_d^2 + 2 D_d^2 + 2 D_d F_d)              a target row: self-attention; query and output of
                                                           cross-attention; feed-forward

The 2 counts a multiplication and an addition for each weight; attention has twice that (scores, mixing) for each pair
of positions that may see each other. A gated feed-forward layer has another D F. Embeddings narrower or wider than a
stack, or than its part without positions, add their projections. With H heads, G of keys and values, queries and keys
of width K and values of width V, the four matrices of D^2 are D H K, D G K, D G V and D H V, and a pair takes H (K + V)
instead of 2 D. Norms, softmax, activations, dropout and the optimiser are not counted, since they are not matrix
products, nor are the multiplications of scores other than dot products and of relative positions. Models with another
layer in place of self-attention, or with a window, are rejected.

Decoding with W hypotheses multiplies W rows for each target position instead of one, each with the whole vocabulary;
the source is read once:

    decoding =  2 S enc  +  W 2 T (dec + E V)  +  4 D_e L_e sum s^2  +  W 4 D_d L_d (sum t (t+1) / 2  +  sum s t)
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.errors import RecipeError

MEGA, GIGA = 1e6, 1e9
GATED_ACTIVATIONS = ("glu", "swiglu")


@dataclass(frozen=True)
class TokenCounts:
    """Counts that give a text's FLOP: tokens of both sides, and pairs of positions that may attend to each other."""

    source: int
    target: int
    within_source: int
    within_target: int
    across: int

    @classmethod
    def from_lengths(cls, lengths: Iterable[tuple[int, int]]) -> "TokenCounts":
        """From the (source, target) tokens of each sentence, end tokens counted."""
        pairs = [(int(s), int(t)) for s, t in lengths]
        return cls(
            source=sum(s for s, _ in pairs),
            target=sum(t for _, t in pairs),
            within_source=sum(s * s for s, _ in pairs),
            within_target=sum(t * (t + 1) // 2 for _, t in pairs),
            across=sum(s * t for s, t in pairs),
        )


def forward_flops(config: ModelConfig, vocab: int, work: TokenCounts) -> float:
    """FLOP of the forward pass with teacher forcing. Raises RecipeError for a model that these equations are not of."""
    return _encoder_flops(config, work) + _decoder_flops(config, vocab, work)


def training_flops(config: ModelConfig, vocab: int, work: TokenCounts) -> float:
    """FLOP of forward and backward."""
    return 3 * forward_flops(config, vocab, work)


def decoding_flops(config: ModelConfig, vocab: int, work: TokenCounts, beam: int) -> float:
    """FLOP of a search with `beam` hypotheses a sentence, each as long as the target."""
    return _encoder_flops(config, work) + beam * _decoder_flops(config, vocab, work)


def _encoder_flops(config: ModelConfig, work: TokenCounts) -> float:
    _check_architecture(config)
    encoder, decoder = config.encoder, config.decoder
    query, key_value, pair = _attention(encoder)
    layer = encoder.dim * (query + key_value) + _matrices(config) * encoder.dim * encoder.feed_forward_dim
    of_memory = encoder.dim * _attention(decoder)[1]
    row = encoder.layers * layer + decoder.layers * of_memory + _widen(config, encoder.dim)
    return 2 * work.source * row + 2 * pair * encoder.layers * work.within_source


def _decoder_flops(config: ModelConfig, vocab: int, work: TokenCounts) -> float:
    decoder = config.decoder
    query, key_value, pair = _attention(decoder)
    layer = decoder.dim * (2 * query + key_value) + _matrices(config) * decoder.dim * decoder.feed_forward_dim
    embedding_dim = config.embedding_dim or decoder.dim
    narrow = 0 if embedding_dim == decoder.dim else embedding_dim * decoder.dim
    row = decoder.layers * layer + _widen(config, decoder.dim) + narrow + embedding_dim * vocab
    return 2 * work.target * row + 2 * pair * decoder.layers * (work.within_target + work.across)


def _check_architecture(config: ModelConfig) -> None:
    counted_values = {
        "architecture": "transformer",
        "mixing": "attention",
        "window": None,
        "adaptive": None,
        "vision": None,
        "feed_forward": "position_wise",
        "attention_projections": True,
        "values": "projection",
        "output_projection": True,
        "mask": "causal",
    }
    for name, value in counted_values.items():
        if (actual := getattr(config, name)) != value:
            raise RecipeError(f"model.{name} = {actual!r}: its FLOP are not counted here")
    for side in ("encoder", "decoder"):
        if (mixing := config.stack_mixing(side)) != "attention":
            raise RecipeError(f"model.{side}.mixing = {mixing!r}: its FLOP are not counted here")


def _attention(stack: StackConfig) -> tuple[int, int, int]:
    """Columns of the projections to queries and from what is mixed, to keys and values; products for a pair."""
    heads, groups = stack.heads, stack.key_value_heads or stack.heads
    width = (stack.key_dim or stack.dim // heads) + (stack.value_dim or stack.dim // heads)
    return heads * width, groups * width, heads * width


def _matrices(config: ModelConfig) -> int:
    """D x F matrices of a feed-forward layer."""
    return 3 if config.activation in GATED_ACTIVATIONS else 2


def _widen(config: ModelConfig, dim: int) -> int:
    """FLOP of the layer that widens embeddings to the part of a stack's width that positions leave."""
    width = dim - dim // 2 if config.positions_join == "concatenate" else dim
    embedding_dim = config.embedding_dim or dim
    return 0 if embedding_dim == width else embedding_dim * width
