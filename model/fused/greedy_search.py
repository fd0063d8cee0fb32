"""Greedy search, sentence by sentence: when compiled loops (`cpu_kernels/greedy_search.py`) do it, and their weights.

A step of one row is a thousand small operations in torch, and most of the time is call overhead. The loops support the
parts of most Transformers; for other models `make_greedy_search` returns None, and decoding goes step by step.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from tfm.model.attention.kv_cache import LayerKVCache
from tfm.model.attention.memory import Memory
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.eligibility import (
    COMPILED_LOOP_ELIGIBILITY,
    EMBEDDING_ELIGIBILITY,
    are_all_eligible,
    is_cpu_eval_fp32,
    is_plain_stack,
)
from tfm.model.fused.loop_weights import (
    as_array,
    load_layer_types,
    make_stack_weights,
    num_weights,
    stack_linears,
    stack_norms,
)
from tfm.model.fused.panels import pack_panels
from tfm.model.fused.weight_cache import WeightCache, cached_weights
from tfm.model.layers.linear import Linear
from tfm.model.layout import Layout
from tfm.model.transformer.decoder_masks import CAUSAL_DECODER_MASK
from tfm.model.transformer.decoder_state import TransformerState
from tfm.model.transformer.encoder_decoder import EncoderDecoder

GreedySearch = Callable[[Sequence[Sequence[int]], Sequence[tuple[int, int]], Any], list[tuple[list[int], float]]]
"""Sources, the fewest and the most pieces of each before the end token, the `Shortlist` of pieces that may come (None:
all) -> the ids of each, and the sum of their log-probabilities. All ids with their end token."""
SourceEncoder = Callable[[Sequence[int]], TransformerState]
"""Source ids, end token included -> the state before the first step, of one row."""
MAX_FLOPS_FOR_COMPILED_SEARCH = 50_000_000
"""The number of operations above which torch's kernels are faster, however long it takes to call them: in reading a
long source.
"""
MAX_WEIGHTS_FOR_SINGLE_THREAD = 1 << 24
"""The number of weights above which several threads read them faster than the one of the loop."""
NO_SHORTLIST = np.empty((0, 0), np.int32), np.empty(0, np.int32)


def make_greedy_search(model: object, pad_bos_eos_ids: tuple[int, int, int]) -> GreedySearch | None:
    """Return the function that searches greedily with this model as it is now; None if the loop does not apply.

    pad_bos_eos_ids: padding, begin and end token.
    """
    if type(model) is not EncoderDecoder or model.mask != CAUSAL_DECODER_MASK or not dispatch.are_kernels_enabled():
        return None
    if getattr(model.output, "inference_dtype", None) not in (None, torch.float32):
        return None
    weights = _get_search_weights(model)
    return None if weights is None else partial(weights.search, model, pad_bos_eos_ids)


def make_source_encoder(model: object) -> SourceEncoder | None:
    """Return the function that reads a source by itself with this model as it is now: the state of `start`, sooner.

    None if the loop does not apply.
    """
    if type(model) is not EncoderDecoder or model.mask != CAUSAL_DECODER_MASK or not dispatch.are_kernels_enabled():
        return None
    weights = _get_search_weights(model)
    return None if weights is None else partial(_encode_to_decoder_state, weights, model)


def _encode_to_decoder_state(
    weights: "_SearchWeights", model: EncoderDecoder, source: Sequence[int]
) -> TransformerState:
    keys, values = (torch.from_numpy(each) for each in weights.encode(model, source))
    return TransformerState(
        caches=tuple(LayerKVCache() for _ in keys),
        memory=Memory(tuple(zip(keys, values, strict=True))),
        lengths=torch.zeros(1, dtype=torch.long),
        positions=torch.zeros(1, 0, dtype=torch.long),
    )


def _get_search_weights(model: EncoderDecoder) -> "_SearchWeights | None":
    return cached_weights(_weight_caches, model, lambda model: _SearchWeights(model) if _is_supported(model) else None)


_weight_caches: "WeakKeyDictionary[nn.Module, WeightCache[_SearchWeights]]" = WeakKeyDictionary()


class _SearchWeights:
    """The weights of a model as the loop reads them."""

    def __init__(self, model: EncoderDecoder) -> None:
        encoder: Any = model.encoder
        decoder: Any = model.decoder
        crosses = [layer.cross_attention for layer in decoder]
        self._num_encoder_weights = num_weights(encoder) + sum(num_weights(cross.key_value) for cross in crosses)
        self._encoder = make_stack_weights(
            model.source_embedding, encoder, model.encoder_norm, model.max_length, pack_panels
        )
        self._decoder = make_stack_weights(model.target_embedding, decoder, model.decoder_norm, model.max_length)
        self._memory_key_value = stack_linears((cross.key_value for cross in crosses), pack_panels)
        self._cross_attention = load_layer_types().AttentionWeights(
            stack_linears(cross.query for cross in crosses),
            stack_linears(cross.output for cross in crosses),
            stack_norms(layer.around_cross_attention.norm for layer in decoder),
        )
        self._output = as_array(model.output.weight)

    def search(
        self,
        model: EncoderDecoder,
        pad_bos_eos_ids: tuple[int, int, int],
        sources: Sequence[Sequence[int]],
        length_limits: Sequence[tuple[int, int]],
        shortlist: Any = None,
    ) -> list[tuple[list[int], float]]:
        """A `GreedySearch`, with the model that these weights are of, and of these special tokens."""
        hypotheses: dict[int, tuple[list[int], float]] = {}
        short_rows = [n for n, source in enumerate(sources) if self._is_read_by_loop(source)]
        texts = [sources[n] for n in short_rows]
        if texts:
            limits = [length_limits[n] for n in short_rows]
            hypotheses |= zip(short_rows, self._search_short(pad_bos_eos_ids, texts, limits, shortlist), strict=True)
        for n in set(range(len(sources))).difference(short_rows):
            candidates = np.arange(len(self._output)) if shortlist is None else shortlist.candidates(sources[n])
            output = self._output if shortlist is None else self._output[candidates]
            weights = self._decoder, self._cross_attention, output, candidates
            memory, (shortest, longest) = self.encode(model, sources[n]), length_limits[n]
            ids = np.empty(longest + 1, np.int64)
            loop = _load_kernels().search_greedily
            count, log_prob = loop(*weights, *memory, pad_bos_eos_ids, shortest, longest, ids)
            hypotheses[n] = ids[:count].tolist(), log_prob
        return [hypotheses[n] for n in range(len(sources))]

    def _search_short(
        self,
        pad_bos_eos_ids: tuple[int, int, int],
        sources: Sequence[Sequence[int]],
        length_limits: Sequence[tuple[int, int]],
        shortlist: Any,
    ) -> list[tuple[list[int], float]]:
        """A `GreedySearch` of sources that the loop reads: one call for all of them."""
        ids = np.fromiter(chain.from_iterable(sources), np.int64)
        self._check_pieces(ids)
        limits = np.array(length_limits, np.int64)
        results = np.empty((len(sources), limits[:, 1].max() + 1), np.int64)
        counts, log_probs = np.empty(len(sources), np.int64), np.empty(len(sources))
        _load_kernels().search_texts_greedily(
            *(self._encoder, self._memory_key_value, self._decoder, self._cross_attention, self._output),
            NO_SHORTLIST if shortlist is None else (shortlist.by_source, shortlist.always),
            *(ids, np.cumsum([len(source) for source in sources]), pad_bos_eos_ids, limits),
            *(results, counts, log_probs),
        )
        return [
            (row[:count].tolist(), log_prob)
            for row, count, log_prob in zip(results, counts.tolist(), log_probs.tolist(), strict=True)
        ]

    def encode(self, model: EncoderDecoder, source: Sequence[int]) -> tuple[Any, Any]:
        """Return the decoder's memory of a source: keys (L, 1, G, S, K) and values (L, 1, G, S, V)."""
        ids = np.array(source, np.int64)
        self._check_pieces(ids)
        if not self._is_read_by_loop(source):
            return _encode_memory(model, ids)
        encode = _load_kernels().encode_source
        return encode(self._encoder, self._memory_key_value, self._decoder.settings.head_shapes, ids)  # type: ignore[no-any-return]

    def _is_read_by_loop(self, source: Sequence[int]) -> bool:
        return len(source) * self._num_encoder_weights <= MAX_FLOPS_FOR_COMPILED_SEARCH

    def _check_pieces(self, ids: Any) -> None:
        if ids.max() >= len(self._encoder.table):  # the loop does not look whether a row is there
            raise IndexError(f"piece {ids.max()} of a vocabulary of {len(self._encoder.table)}")


def _load_kernels() -> Any:
    from tfm.model.cpu_kernels import greedy_search

    return greedy_search


def _encode_memory(model: EncoderDecoder, source: Any) -> tuple[Any, Any]:
    """Return the decoder's memory of a source (S,), as the model itself reads it: (L, 1, G, S, K), (L, 1, G, S, V)."""
    memory = model.start(torch.from_numpy(source), Layout.from_lengths(torch.tensor([len(source)]))).memory
    keys, values = zip(*memory.keys_values, strict=True)
    return torch.stack(keys).numpy(), torch.stack(values).numpy()


def _is_supported(model: EncoderDecoder) -> bool:
    """Return whether a model is in eval mode, in fp32, and of the parts that the loop knows."""
    embeddings: list[Any] = [model.source_embedding, model.target_embedding]
    return (
        is_cpu_eval_fp32(model)
        and not any(each.is_inference() for each in model.parameters())  # these do not tell when they change
        and are_all_eligible(embeddings, EMBEDDING_ELIGIBILITY)
        and is_plain_stack(model.encoder, model.encoder_norm, COMPILED_LOOP_ELIGIBILITY)
        and is_plain_stack(model.decoder, model.decoder_norm, COMPILED_LOOP_ELIGIBILITY)
        and type(model.narrow) is nn.Identity
        and type(model.output) is Linear
        and model.output.bias is None
        and (
            torch.get_num_threads() == 1
            or num_weights(model.decoder) + num_weights(model.output) < MAX_WEIGHTS_FOR_SINGLE_THREAD
        )
    )
