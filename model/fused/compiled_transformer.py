"""A Transformer in numpy whose searches of a sentence are compiled (`cpu_kernels/beam_search.py`; extra: fast).

It needs no torch. Legend: L layers · D width · M most positions · G heads of keys and values · K width of a head's
queries and keys · S source pieces.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np

from tfm.model.fused.panels import WeightPacker, pack_panels
from tfm.model.numpy_inference.attention import Rotary
from tfm.model.numpy_inference.layers import Array, Embedding, LayerNorm, Linear, PreNorm, gelu, gelu_tanh, relu
from tfm.model.numpy_inference.transformer import DecoderLayer, EncoderLayer, Transformer

ACTIVATION_NUMBERS: dict[Any, int] = {relu: 0, gelu: 1, gelu_tanh: 2}
"""Activations that the loops know, by their numbers in `cpu_kernels/transformer_layers.py`."""


def compile_transformer(network: Transformer) -> "CompiledTransformer | None":
    """Return a network whose search is compiled; None if the loops lack a part of it, or there is no numba."""
    layers: list[EncoderLayer | DecoderLayer] = [*network.encoder, *network.decoder]
    knows_all = all(each.feed_forward.activation in ACTIVATION_NUMBERS for each in layers)
    loops = load_search_kernels() if network.encoder and network.decoder and knows_all else None
    return None if loops is None else CompiledTransformer(network, loops)


def load_search_kernels() -> Any:
    """The module of the compiled search; None without numba, or where its libraries cannot be loaded."""
    try:
        from tfm.model.cpu_kernels import beam_search
    except (ImportError, OSError):
        return None
    return beam_search


class CompiledTransformer:
    """The weights of a network as the loops read them.

    Args:
        network: all parts of which the loops know.
        loops: the module of the compiled search.
    """

    def __init__(self, network: Transformer, loops: Any) -> None:
        from tfm.model.cpu_kernels import greedy_search, transformer_layers
        from tfm.model.cpu_kernels.jit import UNROLL_FACTOR

        self._loops, self._types, self.max_length = loops, transformer_layers, network.max_length
        embedding, layers, norm = network.target_embedding, network.decoder, network.decoder_norm
        self._spare_slots = UNROLL_FACTOR
        self._greedy_loop, self._encode_source = greedy_search.search_greedily, greedy_search.encode_source
        self._encoder = self._stack_weights(
            network.source_embedding, network.encoder, network.encoder_norm, pack_panels
        )
        self._decoder = self._stack_weights(embedding, layers, norm, pack_panels)
        self._memory_key_value = self._stack_linear_weights(
            pack_panels, (each.cross_attention.key_value for each in layers)
        )
        self._cross_attention = self._cross_attention_weights(network, pack_panels)
        self._output_layer = network.output
        self._output = self._stack_linear_weights(pack_panels, [network.output])
        self._greedy_weights = (
            None
            if network.output.bias.any()
            else (
                self._stack_weights(embedding, layers, norm, np.ascontiguousarray),
                self._cross_attention_weights(network, np.ascontiguousarray),
                np.ascontiguousarray(network.output.weight),
                np.arange(len(network.output.weight)),
            )
        )

    def restrict(self, pieces: Array) -> "CompiledTransformer":
        """As `Transformer.restrict`, with the weights of all layers as they are."""
        restricted, table = copy(self), self._decoder.table[pieces]
        restricted._decoder = self._decoder._replace(table=table)
        restricted._output_layer = output = self._output_layer.select_outputs(pieces)
        restricted._output = self._stack_linear_weights(pack_panels, [output])
        if self._greedy_weights is not None:
            decoder, cross_attention, _, _ = self._greedy_weights
            weight, indices = np.ascontiguousarray(output.weight), np.arange(len(pieces))
            restricted._greedy_weights = decoder._replace(table=table), cross_attention, weight, indices
        return restricted

    def encode(self, source: Sequence[int]) -> tuple[Array, Array]:
        """Source ids, end token included -> keys (L, 1, G, S, K) and values (L, 1, G, S, V) of the memory."""
        if max(source) >= len(self._encoder.table):
            raise IndexError(f"piece {max(source)} of a vocabulary of {len(self._encoder.table)}")
        ids, heads = np.array(source, np.int64), self._decoder.settings.head_shapes
        return self._encode_source(self._encoder, self._memory_key_value, heads, ids)  # type: ignore[no-any-return]

    def start_beam(self, beam: int, n_best: int, longest: int) -> Any:
        """Return the `BeamState` of a sentence of which nothing is written.

        Args:
            beam: number of hypotheses kept at each step.
            n_best: number of hypotheses that are asked for.
            longest: the most pieces of one, without its end token.
        """
        steps, layers = longest + 1, len(self._memory_key_value.bias)
        _, groups, key_dim, value_dim = self._decoder.settings.head_shapes
        sums = np.full(beam, -np.inf)
        sums[0] = 0.0
        return self._loops.BeamState(
            keys=np.empty((layers, 1, groups, beam * steps, key_dim), np.float32),
            values=np.empty((layers, 1, groups, beam * steps, value_dim), np.float32),
            slots=np.zeros((1, beam, steps + self._spare_slots), np.uint64),
            tokens=np.zeros((steps, beam), np.int64),
            parents=np.zeros((steps, beam), np.int64),
            sums=sums,
            end_steps=np.empty(beam * steps, np.int64),
            end_parents=np.empty(beam * steps, np.int64),
            end_sums=np.empty(beam * steps),
            best=np.full(n_best, -np.inf),
            progress=np.zeros(3, np.int64),
        )

    def extend_beam(
        self,
        memory: tuple[Array, Array],
        state: Any,
        pad_bos_eos_ids: tuple[int, int, int],
        length_limits: tuple[int, int],
        length_norms: Array,
        max_steps: int,
    ) -> bool:
        """Extend the hypotheses of a sentence; return whether its search is done.

        Args:
            memory: keys and values of the source.
            state: the hypotheses, changed.
            pad_bos_eos_ids: padding, begin and end token.
            length_limits: the fewest and the most pieces of a hypothesis.
            length_norms: length norms by the number of pieces, end token included.
            max_steps: the most steps.
        """
        weights = self._decoder, self._cross_attention, self._output
        self._loops.extend_beam(*weights, *memory, pad_bos_eos_ids, *length_limits, length_norms, state, max_steps)
        return bool(state.progress[2])

    def search_greedily(
        self, memory: tuple[Array, Array], pad_bos_eos_ids: tuple[int, int, int], length_limits: tuple[int, int]
    ) -> tuple[list[int], float] | None:
        """Return the likeliest pieces one after another, end token included, and the sum of their log-probabilities.

        Args:
            memory: keys and values of the source.
            pad_bos_eos_ids: padding, begin and end token.
            length_limits: the fewest and the most pieces, without the end token.

        Returns:
            The pieces and the sum; None if the loop lacks a part of the network: a bias of the output.
        """
        if self._greedy_weights is None:
            return None
        ids = np.empty(length_limits[1] + 1, np.int64)
        count, log_prob = self._greedy_loop(*self._greedy_weights, *memory, pad_bos_eos_ids, *length_limits, ids)
        return ids[:count].tolist(), log_prob

    def _cross_attention_weights(self, network: Transformer, pack_weight: WeightPacker) -> Any:
        """The `AttentionWeights` of the cross-attention in each layer; arrange: the form of each weight."""
        crosses = [layer.cross_attention for layer in network.decoder]
        return self._types.AttentionWeights(
            self._stack_linear_weights(pack_weight, (cross.query for cross in crosses)),
            self._stack_linear_weights(pack_weight, (cross.output for cross in crosses)),
            self._stack_norm_weights(layer.around_cross_attention.norm for layer in network.decoder),
        )

    def _stack_weights(
        self, embedding: Embedding, layers: Sequence[Any], final_norm: Any, pack_weight: WeightPacker
    ) -> Any:
        """Return the `StackWeights` of a stack.

        Args:
            embedding: the embedding.
            layers: the layers, which differ in nothing but their weights.
            final_norm: the norm that they end with.
            pack_weight: the form of each weight.
        """
        types, first, table = self._types, layers[0], np.ascontiguousarray(embedding.table)
        heads, residual = first.attention.heads, first.around_attention
        positions = np.asarray(embedding.added(np.arange(self.max_length)), np.float32)
        return types.StackWeights(
            table,
            np.broadcast_to(positions, (self.max_length, table.shape[1])).copy(),
            _rotation_table(first.attention.rotate, self.max_length, heads.key_dim),
            types.AttentionWeights(
                self._stack_linear_weights(pack_weight, (layer.attention.query_key_value for layer in layers)),
                self._stack_linear_weights(pack_weight, (layer.attention.output for layer in layers)),
                self._stack_norm_weights(layer.around_attention.norm for layer in layers),
            ),
            types.FeedForwardWeights(
                self._stack_linear_weights(pack_weight, (layer.feed_forward.inner for layer in layers)),
                self._stack_linear_weights(pack_weight, (layer.feed_forward.outer for layer in layers)),
                self._stack_norm_weights(layer.around_feed_forward.norm for layer in layers),
            ),
            self._stack_norm_weights([final_norm if isinstance(final_norm, LayerNorm) else residual.norm]),
            types.StackSettings(
                (heads.num_heads, heads.num_kv_heads, heads.key_dim, heads.value_dim),
                float(embedding.scale),
                residual.norm.eps,
                isinstance(residual, PreNorm),
                ACTIVATION_NUMBERS[first.feed_forward.activation],
                False,
            ),
        )

    def _stack_linear_weights(self, pack_weight: WeightPacker, linears: Iterable[Linear]) -> Any:
        """The `LinearWeights` of a linear layer in each layer, each weight arranged."""
        pairs = [(pack_weight(each.weight), np.broadcast_to(each.bias, len(each.weight))) for each in linears]
        weights, biases = zip(*pairs, strict=True)
        return self._types.LinearWeights(np.stack(weights), np.stack(biases))

    def _stack_norm_weights(self, norms: Iterable[LayerNorm]) -> Any:
        """The `NormWeights` of a norm in each layer."""
        gains, biases = zip(*((norm.gain, norm.bias) for norm in norms), strict=True)
        return self._types.NormWeights(np.stack(gains), np.stack(biases))


def _rotation_table(rotary: Any, max_length: int, key_dim: int) -> Array:
    """The cosines and sines that turn queries and keys (M, K / 2, 2); (M, 0, 2) if they are not turned."""
    if not isinstance(rotary, Rotary):
        return np.empty((max_length, 0, 2), np.float32)
    pairs = np.arange(0, key_dim, 2, dtype=np.float32)
    angle = np.arange(max_length)[:, None] * np.power(rotary.base, pairs / -key_dim, dtype=np.float32)
    angle = angle.astype(np.float32)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
