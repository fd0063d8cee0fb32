"""Floating-point operations of the encoder-decoder: what an exact implementation has to multiply and add.

With S and T the source and target tokens of a text (end tokens counted), s and t those of one of its sentences:

    forward  =  2 S enc  +  2 T dec  +  2 T E V  +  4 D_e L_e sum s^2  +  4 D_d L_d (sum t (t+1) / 2  +  sum s t)
    training =  3 forward          (the gradients of inputs and of weights cost a product each)

    enc = L_e (4 D_e^2 + 2 D_e F_e)  +  L_d 2 D_e D_d      a source row: encoder; keys and values of cross-attention
    dec = L_d (4 D_d^2 + 2 D_d^2 + 2 D_d F_d)              a target row: self-attention; query and output of
                                                           cross-attention; feed-forward

The 2 is a multiplication and an addition for each weight; attention has twice that (scores, mixing) for each pair of
positions that may see each other. A gated feed-forward layer has D F once more. Embeddings narrower or wider than a
stack add their projections. Norms, softmax, activations, dropout and the optimiser are not counted: they are no matrix
products. Nor is what another score than a dot product multiplies, or a relative scheme of positions.

Decoding with W hypotheses multiplies W rows a target position where training has one, all of them at once with the
whole vocabulary; the source is read once:

    decoding =  2 S enc  +  W 2 T (dec + E V)  +  4 D_e L_e sum s^2  +  W 4 D_d L_d (sum t (t+1) / 2  +  sum s t)
"""

from collections.abc import Iterable
from dataclasses import dataclass

from model.config import ModelConfig

MEGA, GIGA = 1e6, 1e9
GATED = ("glu", "swiglu")


@dataclass(frozen=True)
class Work:
    """What a text has to be computed on: tokens of both sides, and pairs of positions that may see each other."""

    source: int
    target: int
    within_source: int
    within_target: int
    across: int

    @classmethod
    def of(cls, lengths: Iterable[tuple[int, int]]) -> "Work":
        """From the (source, target) tokens of each sentence, end tokens counted."""
        pairs = [(int(s), int(t)) for s, t in lengths]
        return cls(
            source=sum(s for s, _ in pairs),
            target=sum(t for _, t in pairs),
            within_source=sum(s * s for s, _ in pairs),
            within_target=sum(t * (t + 1) // 2 for _, t in pairs),
            across=sum(s * t for s, t in pairs),
        )


def forward(config: ModelConfig, vocab: int, work: Work) -> float:
    """FLOP of the forward pass with teacher forcing."""
    return _reading(config, work) + _writing(config, vocab, work)


def training(config: ModelConfig, vocab: int, work: Work) -> float:
    """FLOP of forward and backward."""
    return 3 * forward(config, vocab, work)


def decoding(config: ModelConfig, vocab: int, work: Work, beam: int) -> float:
    """FLOP of a search with `beam` hypotheses a sentence, each as long as the target."""
    return _reading(config, work) + beam * _writing(config, vocab, work)


def _reading(config: ModelConfig, work: Work) -> float:
    encoder, decoder = config.encoder, config.decoder
    layer = 4 * encoder.dim**2 + _matrices(config) * encoder.dim * encoder.feed_forward_dim
    row = encoder.layers * layer + decoder.layers * 2 * encoder.dim * decoder.dim + _resize(config, encoder.dim)
    return 2 * work.source * row + 4 * encoder.dim * encoder.layers * work.within_source


def _writing(config: ModelConfig, vocab: int, work: Work) -> float:
    decoder = config.decoder
    layer = 6 * decoder.dim**2 + _matrices(config) * decoder.dim * decoder.feed_forward_dim
    output = (config.embedding_dim or decoder.dim) * vocab
    row = decoder.layers * layer + 2 * _resize(config, decoder.dim) + output  # in and out
    return 2 * work.target * row + 4 * decoder.dim * decoder.layers * (work.within_target + work.across)


def _matrices(config: ModelConfig) -> int:
    """D x F matrices of a feed-forward layer."""
    return 3 if config.activation in GATED else 2


def _resize(config: ModelConfig, dim: int) -> int:
    return 0 if config.embedding_dim in (None, dim) else (config.embedding_dim or 0) * dim
