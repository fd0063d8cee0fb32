"""A decoding step with fewer calls, for decoders of common parts (`eligibility.py`).

torch computes the products with weights, the loops of `cpu_kernels/library.py` everything between them. The result
equals the step of `transformer/encoder_decoder.py`, `transformer/layers.py` and `attention/multi_head.py`, which a
test checks: there each part is called separately, and the calls take a twentieth of a small model's step of many
hypotheses, and most of one of few, as at the end of a search, when few sentences go on.

Legend: R hypotheses · N rows, R and some more · B sentences · W hypotheses of each · D width · H heads · G heads of
keys and values · K width of a head's queries and keys · V width of its values.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.attention.multi_head import HeadShapes
from tfm.model.attention.relative_positions import Rotary
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.eligibility import is_cpu_eval_fp32, is_plain_stack
from tfm.model.layers.linear import PADDED_ROW_MULTIPLE, Linear, linear_layers
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfLogits
from tfm.model.layers.residual import PreNorm
from tfm.model.layout import Layout
from tfm.model.masks import Mask
from tfm.model.transformer.decoder_masks import CAUSAL_DECODER_MASK
from tfm.model.transformer.decoder_state import TransformerState
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.model.transformer.token_mixing import RecurrentMixing

Array = Any
MatmulFunction = Callable[[Tensor], Tensor]


def fuse_if_supported(stepper: Any) -> Any:
    """The stepper, or one that does the same sooner, with the weights as they are now."""
    if type(stepper) is not EncoderDecoder or stepper.mask != CAUSAL_DECODER_MASK or not dispatch.are_kernels_enabled():
        return stepper
    fits = is_cpu_eval_fp32(stepper) and is_plain_stack(stepper.decoder, stepper.decoder_norm)
    return FusedDecoderStep(stepper) if fits else stepper


@dataclass(frozen=True)
class _NormWeights:
    gain: Array
    bias: Array
    eps: float

    @classmethod
    def from_module(cls, norm: Any) -> Self:
        return cls(norm.weight.detach().numpy(), norm.bias.detach().numpy(), norm.eps)


@dataclass(frozen=True)
class _FusedLayer:
    """A layer's products, and the norms that come after each of its three sublayers.

    mixing_input: queries, keys and values, or the gates of an SSRU. attention_output: None after an SSRU.
    """

    mixing_input: MatmulFunction
    attention_output: MatmulFunction | None
    ssru: RecurrentMixing | None
    cross_query: MatmulFunction
    cross_output: MatmulFunction
    inner: MatmulFunction
    outer: MatmulFunction
    norms: list[_NormWeights]

    @classmethod
    def from_layer(cls, layer: Any, norms: list[_NormWeights]) -> Self:
        mixing, cross, feed_forward = layer.attention, layer.cross_attention, layer.feed_forward
        ssru = mixing if isinstance(mixing, RecurrentMixing) else None
        first_matmul = (mixing.query_key_value if ssru is None else mixing.cells[0].input).make_matmul()
        mixing_output = mixing.output.make_matmul() if ssru is None else None
        cross_query, cross_output, feed_forward_outer = (
            each.make_matmul() for each in (cross.query, cross.output, feed_forward.outer)
        )
        return cls(
            first_matmul,
            mixing_output,
            ssru,
            cross_query,
            cross_output,
            feed_forward.inner.make_matmul("relu"),
            feed_forward_outer,
            norms,
        )


class FusedDecoderStep:
    """A `Stepper`: the model itself, but for its step."""

    def __init__(self, model: EncoderDecoder) -> None:
        from tfm.model.cpu_kernels import library

        loops: Any = library
        layers: list[Any] = list(model.decoder)
        residuals = [
            residual
            for layer in layers
            for residual in (layer.around_attention, layer.around_cross_attention, layer.around_feed_forward)
        ]
        self._is_pre_norm = isinstance(residuals[0], PreNorm)
        norms = [_NormWeights.from_module(residual.norm) for residual in residuals]
        self._first_norm = norms[0]
        if self._is_pre_norm:
            norms = [*norms[1:], _NormWeights.from_module(model.decoder_norm)]
        self._layers = [_FusedLayer.from_layer(layer, norms[3 * i : 3 * i + 3]) for i, layer in enumerate(layers)]
        self._model, self._heads, self._loops = model, layers[0].cross_attention.heads, loops
        self._positions = getattr(layers[0].attention, "positions", None)
        self._in_bf16 = all(linear.is_bf16 for layer in layers for linear in linear_layers(layer))
        output: Any = model.output
        self._logits_of_low = self._in_bf16 and type(model.narrow) is nn.Identity and type(output) is Linear
        can_precompute_logits = self._logits_of_low or (type(output) is Linear and not output.is_bf16)
        self._logits = output.make_matmul() if can_precompute_logits else output
        self.max_length, self.source_layout = model.max_length, model.source_layout

    def start(self, source: Tensor, layout: Layout) -> TransformerState:
        """Return the state of `EncoderDecoder.start`; in bf16 the memory stays as the products have given it."""
        state = self._model.start(source, layout)
        if not self._in_bf16:
            return state
        low = tuple((keys.bfloat16(), values.bfloat16()) for keys, values in state.memory.keys_values)
        return replace(state, memory=replace(state.memory, keys_values=low))

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[LogProbFn, TransformerState]:
        """The next token of every row (R,), as `EncoderDecoder.step`."""
        model = self._model
        embedded = model.target_embedding(tokens, state.row_positions)
        rows = F.pad(
            embedded, (0, 0, 0, -len(tokens) % PADDED_ROW_MULTIPLE)
        )  # a new tensor also where nothing is added
        state, slots = state.advance()
        normed = self._embed_first_input(rows)
        attention = _StepAttention(self._loops, self._heads, state, slots, normed, self._rotations(rows, slots))
        for layer, cache, keys_values in zip(self._layers, state.caches, state.memory.keys_values, strict=True):
            if layer.attention_output is None:
                added = _step_ssru(layer, normed, cache, slots)
            else:
                added = layer.attention_output(attention.self_attention(layer.mixing_input(normed), cache))
            rows, cross_input = self._add_and_norm(rows, added, layer.norms[0])
            mixed = attention.cross_attention(layer.cross_query(cross_input.to(normed.dtype)), keys_values)
            rows, normed = self._add_and_norm(rows, layer.cross_output(mixed), layer.norms[1])
            rows, normed = self._add_and_norm(rows, layer.outer(layer.inner(normed)), layer.norms[2])
        normed = normed[: len(tokens)]
        if not self._logits_of_low:
            normed = model.narrow(normed.float())
        return LogProbsOfLogits(lambda selection: self._logits(normed[selection]), normed, model.output), state

    def _rotations(self, rows: Tensor, slots: CacheSlots) -> Array | None:
        """Return the cosines and sines (R, K / 2, 2) by which queries and keys are rotated; None if they are not."""
        if not isinstance(self._positions, Rotary):
            return None
        like = rows.new_empty(self._heads.key_dim)
        return torch.view_as_real(self._positions.rotations(like, slots.new_positions.flatten())).numpy()

    def _embed_first_input(self, rows: Tensor) -> Tensor:
        """Return the input of the first sublayer (N, D)."""
        normed, norm = rows, self._first_norm
        if self._is_pre_norm:
            normed = torch.empty_like(rows)
            self._loops.layer_norm(rows.numpy(), norm.gain, norm.bias, norm.eps, normed.numpy())
        return normed.bfloat16() if self._in_bf16 else normed

    def _add_and_norm(self, rows: Tensor, added: Tensor, norm: _NormWeights) -> tuple[Tensor, Tensor]:
        """Return rows + added, normed if norms stand after sublayers; and the input of the next sublayer (N, D)."""
        normed, loops = torch.empty_like(added), self._loops
        add_and_norm = loops.add_and_norm_bf16 if added.dtype is torch.bfloat16 else loops.add_and_norm
        norm_arguments = norm.gain, norm.bias, norm.eps, self._is_pre_norm
        add_and_norm(rows.numpy(), dispatch.as_array(added), *norm_arguments, dispatch.as_array(normed))
        return rows, normed


def _step_ssru(layer: _FusedLayer, normed: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
    """Return the output (N, D) of a layer's SSRU, whose states stay in fp32; rows that fill up N are 0."""
    assert layer.ssru is not None
    gates = layer.mixing_input(normed)[: slots.new_slots.numel()].float()
    hidden = layer.ssru.step_from_gates(gates, cache, slots)
    return F.pad(hidden, (0, 0, 0, len(normed) - len(hidden)))


class _StepAttention:
    """Keys, values and slots to which the hypotheses of one step attend, in all layers; all outputs are written to the
    same memory.
    """

    def __init__(
        self,
        loops: Any,
        heads: HeadShapes,
        state: TransformerState,
        slots: CacheSlots,
        rows: Tensor,
        cos_sin: Array | None,
    ) -> None:
        self._cos_sin = cos_sin
        self._loops, self._heads, self._slots, self._own_slots = (
            loops,
            heads,
            slots,
            slots.new_slots.contiguous().numpy(),
        )
        batch = len(slots.new_slots)
        self._no_slots = np.empty((batch, 0), np.int64)
        self._target_keys = _list_allowed_keys_and_counts(slots.mask, batch, slots.positions.shape[1])
        self._memory_keys = _list_allowed_keys_and_counts(
            state.memory.mask, batch, state.memory.keys_values[0][0].shape[2]
        )
        types = {rows.dtype} if cos_sin is None else {rows.dtype, torch.float32}
        self._outputs = {
            dtype: rows.new_zeros(len(rows), heads.num_heads * heads.value_dim, dtype=dtype) for dtype in types
        }

    def self_attention(self, projected: Tensor, cache: LayerKVCache) -> Tensor:
        """Return the output (N, H V) of queries, keys and values (N, H K + G K + G V), the latter two written into the
        cache.

        Rotated keys are kept in fp32, since they are not rounded after the rotation.
        """
        heads, dtype = self._heads, projected.dtype
        if self._cos_sin is not None:
            projected = projected.float()
            self._loops.rotate_rows(projected.numpy(), self._cos_sin, heads.num_heads + heads.num_kv_heads)
        keys, values = cache.ensure_capacity(
            self._slots, heads.num_kv_heads, (heads.key_dim, heads.value_dim), projected
        )
        return self._attend(projected, keys, values, self._own_slots, self._target_keys).to(dtype)

    def cross_attention(self, query: Tensor, keys_values: tuple[Tensor, Tensor]) -> Tensor:
        """Return the output (N, H V) of queries (N, H K)."""
        keys, values = map(dispatch.view_full_cache, keys_values)
        return self._attend(query, keys, values, self._no_slots, self._memory_keys)

    def _attend(
        self, rows: Tensor, keys: Tensor, values: Tensor, new_slots: Array, attended_keys: tuple[Array, Array]
    ) -> Tensor:
        (batch, width), mixed = self._own_slots.shape, self._outputs[rows.dtype]
        query, scale = rows[: batch * width].view(batch, width, -1), self._heads.key_dim**-0.5
        by_sentence = mixed[: batch * width].view(batch, width, self._heads.num_heads, self._heads.value_dim)
        attend = self._loops.attend_bf16 if rows.dtype is torch.bfloat16 else self._loops.attend
        query, keys, values, by_sentence = map(dispatch.as_array, (query, keys, values, by_sentence))
        attend(query, keys, values, new_slots, *attended_keys, scale, by_sentence)
        return mixed


def _list_allowed_keys_and_counts(mask: Mask, batch: int, num_keys: int) -> tuple[Array, Array]:
    key_indices, counts = dispatch.allowed_keys(mask, batch, num_keys)
    return key_indices.numpy(), counts.numpy()
