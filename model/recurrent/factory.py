"""Builder of the recurrent parts of a network that its configuration names."""

from collections.abc import Callable

import torch
from torch import nn

from tfm.model.attention.explicit_attention import ATTENTION_WEIGHT_FUNCTIONS
from tfm.model.config import ModelConfig
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import NORMALIZATIONS
from tfm.model.recurrent.attention import MEMORY_SCORES, MemoryAttention
from tfm.model.recurrent.cells import CELLS, RecurrentLayer
from tfm.model.recurrent.decoder import BahdanauDecoder, Decoder, LuongDecoder
from tfm.model.recurrent.encoder_decoder import Encoder, IdentityBridge, ProjectionBridge


class RecurrentModuleFactory:
    """Builder of encoder, bridge and decoder, which share one source of dropout masks.

    Args:
        config: the [model] part of a recipe.
        dropout_rng: the source of dropout masks.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(self, config: ModelConfig, dropout_rng: DropoutRng, compute_dtype: torch.dtype) -> None:
        self.config, self.dropout_rng, self.compute_dtype = config, dropout_rng, compute_dtype

    def encoder(self) -> Encoder:
        stack, recurrent = self.config.encoder, self.config.recurrent
        backward = (False, True) if recurrent.bidirectional else (recurrent.reverse_source,)
        layers = [
            [self.cell(stack.dim, stack.dim // len(backward), number) for _ in backward]
            for number in range(stack.layers)
        ]
        return Encoder(layers, backward=backward, dropout=self.dropout())

    def bridge(self) -> nn.Module:
        """Return the module that gives the decoder's first states: the encoder's last ones, or a projection if layers
        or widths differ.
        """
        encoder, decoder = self.config.encoder, self.config.decoder
        if (encoder.layers, encoder.dim) == (decoder.layers, decoder.dim):
            return IdentityBridge()
        return self.projection()

    def projection(self) -> ProjectionBridge:
        """Return the module that projects the last state of the encoder's last layer to each layer's first states.

        The hidden state of a cell that does not read it is projected where attention does: Bahdanau's, to find the
        context of the first layer.
        """
        encoder, decoder, cell = self.config.encoder, self.config.decoder, CELLS[self.config.recurrent.cell]
        is_query = self.config.recurrent.attention == "bahdanau"
        return ProjectionBridge(
            encoder.dim,
            decoder.dim,
            has_projection=[
                (cell.reads_hidden or (is_query and number == 0), *[True] * (cell.num_states - 1))
                for number in range(decoder.layers)
            ],
            compute_dtype=self.compute_dtype,
        )

    def decoder(self) -> Decoder:
        return DECODERS[self.config.recurrent.attention](self)

    def plain_decoder(self) -> Decoder:
        return Decoder(self.decoder_layers(), dropout=self.dropout())

    def luong_decoder(self) -> Decoder:
        dim = self.config.decoder.dim
        return LuongDecoder(
            self.decoder_layers(),
            attention=self.attention(),
            combine=self.linear(2 * dim, dim, bias=False),
            dropout=self.dropout(),
        )

    def bahdanau_decoder(self) -> Decoder:
        dim, layers = self.config.decoder.dim, self.decoder_layers()
        gates = layers[0].num_gates
        return BahdanauDecoder(
            layers,
            attention=self.attention(),
            context_gates=self.linear(dim, gates * dim, bias=False, num_parts=gates),
            combine=self.linear(3 * dim, 2 * dim),
            dropout=self.dropout(),
        )

    def decoder_layers(self) -> list[RecurrentLayer]:
        stack = self.config.decoder
        return [self.cell(stack.dim, stack.dim, layer_index) for layer_index in range(stack.layers)]

    def cell(self, in_dim: int, dim: int, layer_index: int) -> RecurrentLayer:
        """Return one recurrent layer.

        Args:
            in_dim: width of its input, which has a norm in every layer but the first.
            dim: width of its output.
            layer_index: number of the layer in its stack, from 0.
        """
        cell = CELLS[self.config.recurrent.cell](in_dim, dim, compute_dtype=self.compute_dtype)
        if layer_index and self.config.recurrent.normalization != "none":
            norm = NORMALIZATIONS[self.config.recurrent.normalization](in_dim, eps=self.config.norm_eps)
            cell.input = nn.Sequential(norm, cell.input)
        return cell

    def attention(self) -> MemoryAttention:
        stack, memory_dim = self.config.decoder, self.config.encoder.dim
        return MemoryAttention(
            stack.heads,
            fit=nn.Identity() if memory_dim == stack.dim else self.linear(memory_dim, stack.dim, bias=False),
            score=MEMORY_SCORES[self.config.score](stack.heads, stack.dim // stack.heads),
            dropout=Dropout(self.config.dropout.attention, self.dropout_rng),
            lookup=ATTENTION_WEIGHT_FUNCTIONS[self.config.lookup],
        )

    def dropout(self) -> Dropout:
        """Dropout on a layer's output, at the rate of a Transformer sublayer's."""
        return Dropout(self.config.dropout.residual, self.dropout_rng)

    def linear(self, in_dim: int, out_dim: int, *, bias: bool = True, num_parts: int = 1) -> Linear:
        """Return a linear layer in the precision of this network.

        Args:
            in_dim: width of the input.
            out_dim: width of the output.
            bias: whether a bias is added.
            num_parts: number of matrices that are stacked in the weight.
        """
        return Linear(in_dim, out_dim, bias=bias, compute_dtype=self.compute_dtype, num_parts=num_parts)


DECODERS: dict[str, Callable[[RecurrentModuleFactory], Decoder]] = {
    "none": RecurrentModuleFactory.plain_decoder,
    "bahdanau": RecurrentModuleFactory.bahdanau_decoder,
    "luong": RecurrentModuleFactory.luong_decoder,
}
"""By the name of the attention."""
