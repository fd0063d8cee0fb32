"""Greedy search of a single sentence: when a compiled loop (`cpu_kernels/greedy_search.py`) can do it, and its weights.

A step of one row is a thousand small operations in torch, and most of the time is call overhead. The loop supports the
parts of most Transformers; for other models `make_greedy_search` returns None, and decoding goes step by step.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from tfm.model.attention.positions import NoPositionEmbedding, SinusoidalPositions
from tfm.model.attention.relative_positions import Rotary
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.eligibility import EMBEDDING_PARTS, are_known, is_cpu_eval_fp32, is_plain_stack
from tfm.model.layers.derived_weights import DerivedWeights
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import LayerNorm
from tfm.model.layers.residual import PreNorm
from tfm.model.layout import Layout
from tfm.model.transformer.decoder_masks import CAUSAL
from tfm.model.transformer.encoder_decoder import EncoderDecoder

Search = Callable[[Sequence[int], int, int], tuple[list[int], float]]
"""Source ids, the fewest pieces before the end token, the most -> ids, and the sum of their log-probabilities. Both ids
with their end token."""
MAX_FLOPS_FOR_LOOP = 50_000_000
"""The number of operations above which torch's kernels are faster, however long it takes to call them: in reading a
long source.
"""
MAX_WEIGHTS_FOR_SINGLE_THREAD = 1 << 24
"""The number of weights above which several threads read them faster than the one of the loop."""


def make_greedy_search(model: object, special: tuple[int, int, int]) -> Search | None:
    """Return the function that searches greedily with this model as it is now; None where the loop does not apply.

    special: padding, begin and end token.
    """
    if type(model) is not EncoderDecoder or model.mask != CAUSAL or not dispatch.is_enabled():
        return None
    if getattr(model.output, "inference_dtype", None) not in (None, torch.float32):
        return None
    laid_out = _weight_caches.get(model)
    if laid_out is None or not laid_out.is_unchanged():
        laid_out = _weight_caches[model] = _WeightCache(model)
    if laid_out.has_hooks():
        del _weight_caches[model]  # a hook may hold the model, which would never be freed
        return None
    weights = laid_out.current_weights(model)
    return None if weights is None else partial(weights.search, model, special)


class _WeightCache:
    """The weights of a model as the loop reads them, if it does, for as long as the model stays as it is.

    The cache is asked before every sentence: all tensors to compare are gathered once. The model itself is not held.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        modules = list(model.modules())
        self._held = modules[1:]  # so that no new part takes the identity of an old one
        self._parts = [each._modules for each in modules if each._modules]
        self._hooks = [hooks for each in modules for hooks in (each._forward_hooks, each._forward_pre_hooks)]
        both: list[Any] = [tensors for each in modules for tensors in (each._parameters, each._buffers)]
        self._tensors: list[dict[str, Tensor | None]] = [tensors for tensors in both if tensors]
        self._had = self._part_ids()
        self._weights: DerivedWeights[_Weights | None] = DerivedWeights()

    def is_unchanged(self) -> bool:
        return self._part_ids() == self._had

    def has_hooks(self) -> bool:
        return any(self._hooks)

    def current_weights(self, model: EncoderDecoder) -> "_Weights | None":
        """Return the weights of the model; None where the loop does not apply."""
        tensors = [tensor for tensors in self._tensors for tensor in tensors.values() if tensor is not None]
        return self._weights.get_or_make(
            tensors, lambda: _Weights(model) if _is_supported(model) else None, model.training
        )

    def _part_ids(self) -> list[int]:
        return [id(part) for parts in self._parts for part in parts.values()]


_weight_caches: WeakKeyDictionary[EncoderDecoder, _WeightCache] = WeakKeyDictionary()


class _Weights:
    """The weights of a model as the loop reads them."""

    def __init__(self, model: EncoderDecoder) -> None:
        encoder: Any = model.encoder
        decoder: Any = model.decoder
        crosses = [layer.cross_attention for layer in decoder]
        kernel = _load_kernels()
        self._num_encoder_weights = _num_weights(encoder) + sum(_num_weights(cross.key_value) for cross in crosses)
        self._encoder = _make_stack(model.source_embedding, encoder, model.encoder_norm, model.max_length)
        self._decoder = _make_stack(model.target_embedding, decoder, model.decoder_norm, model.max_length)
        self._memory_key_value = _stack_linears(cross.key_value for cross in crosses)
        self._cross_attention = kernel.Attention(
            _stack_linears(cross.query for cross in crosses),
            _stack_linears(cross.output for cross in crosses),
            _stack_norms(layer.around_cross_attention.norm for layer in decoder),
        )
        self._output = _as_array(model.output.weight)

    def search(
        self, model: EncoderDecoder, special: tuple[int, int, int], source: Sequence[int], shortest: int, longest: int
    ) -> tuple[list[int], float]:
        """A `Search`, with the model that these weights are of, and of these special tokens."""
        if max(source) >= len(self._encoder.table):
            raise IndexError(f"piece {max(source)} of a vocabulary of {len(self._encoder.table)}")
        kernel, found, ids = _load_kernels(), np.empty(longest + 1, np.int64), np.array(source, np.int64)
        if len(ids) * self._num_encoder_weights > MAX_FLOPS_FOR_LOOP:
            keys, values = _encode_memory(model, ids)
        else:
            keys, values = kernel.encode_source(
                self._encoder, self._memory_key_value, self._decoder.settings.heads, ids
            )
        count, log_prob = kernel.search_greedily(
            self._decoder, self._cross_attention, self._output, keys, values, special, shortest, longest, found
        )
        return found[:count].tolist(), log_prob


def _load_kernels() -> Any:
    from tfm.model.cpu_kernels import greedy_search

    return greedy_search


def _make_stack(embedding: Any, layers: Any, last: nn.Module, max_length: int) -> Any:
    kernel, first = _load_kernels(), layers[0]
    table, heads, residual = _as_array(embedding.table.weight), first.attention.heads, first.around_attention
    return kernel.Stack(
        table,
        _position_table(embedding.positions, max_length, table.shape[1]),
        _rotation_table(first.attention.positions, max_length, heads.key_dim),
        kernel.Attention(
            _stack_linears(layer.attention.query_key_value for layer in layers),
            _stack_linears(layer.attention.output for layer in layers),
            _stack_norms(layer.around_attention.norm for layer in layers),
        ),
        kernel.FeedForward(
            _stack_linears(layer.feed_forward.inner for layer in layers),
            _stack_linears(layer.feed_forward.outer for layer in layers),
            _stack_norms(layer.around_feed_forward.norm for layer in layers),
        ),
        _stack_norms([last if isinstance(last, LayerNorm) else residual.norm]),
        kernel.Settings(
            (heads.num_heads, heads.num_kv_heads, heads.key_dim, heads.value_dim),
            float(embedding.scale),
            residual.norm.eps,
            isinstance(residual, PreNorm),
        ),
    )


def _stack_linears(linears: Iterable[Any]) -> Any:
    return _load_kernels().Linears(*_stack_weights(linears))


def _stack_norms(norms: Iterable[Any]) -> Any:
    return _load_kernels().Norms(*_stack_weights(norms))


def _num_weights(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


def _encode_memory(model: EncoderDecoder, source: Any) -> tuple[Any, Any]:
    """Return the decoder's memory of a source (S,), as the model itself reads it: (L, 1, G, S, K), (L, 1, G, S, V)."""
    memory = model.start(torch.from_numpy(source), Layout.from_lengths(torch.tensor([len(source)]))).memory
    keys, values = zip(*memory.keys_values, strict=True)
    return torch.stack(keys).numpy(), torch.stack(values).numpy()


def _as_array(tensor: Any) -> Any:
    return tensor.detach().contiguous().numpy()


def _stack_weights(modules: Iterable[Any]) -> tuple[Any, Any]:
    """The weights (L, ..) and biases (L, ..) of some modules."""
    weights, biases = zip(*((module.weight.detach(), module.bias.detach()) for module in modules), strict=True)
    return torch.stack(weights).numpy(), torch.stack(biases).numpy()


def _position_table(positions: nn.Module, max_length: int, dim: int) -> Any:
    """Return the table of positions that is added to the input (M, D)."""
    if isinstance(positions, NoPositionEmbedding):
        return np.zeros((max_length, dim), np.float32)
    table: Any = positions.table
    return _as_array(table if isinstance(positions, SinusoidalPositions) else table.weight)


def _rotation_table(positions: Any, max_length: int, key_dim: int) -> Any:
    """Return the cosines and sines that turn queries and keys (M, K / 2, 2); (M, 0, 2) where they are not turned."""
    if not isinstance(positions, Rotary):
        return np.empty((max_length, 0, 2), np.float32)
    return torch.view_as_real(positions.rotations(torch.empty(key_dim), torch.arange(max_length))).numpy()


def _is_supported(model: EncoderDecoder) -> bool:
    """Return whether a model is in eval mode, in fp32, and of the parts that the loop knows."""
    embeddings: list[Any] = [model.source_embedding, model.target_embedding]
    return (
        is_cpu_eval_fp32(model)
        and not any(each.is_inference() for each in model.parameters())  # these do not tell when they change
        and are_known(embeddings, EMBEDDING_PARTS)
        and is_plain_stack(model.encoder, model.encoder_norm)
        and is_plain_stack(model.decoder, model.decoder_norm)
        and type(model.narrow) is nn.Identity
        and type(model.output) is Linear
        and model.output.bias is None
        and (
            torch.get_num_threads() == 1
            or _num_weights(model.decoder) + _num_weights(model.output) < MAX_WEIGHTS_FOR_SINGLE_THREAD
        )
    )
