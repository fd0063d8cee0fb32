"""Texts of a decoder-only model: when a compiled loop (`cpu_kernels/text_generation.py`) writes them, and its weights.

Legend: N texts · T pieces of a text, the begin token first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.eligibility import (
    COMPILED_LOOP_ELIGIBILITY,
    EMBEDDING_ELIGIBILITY,
    are_all_eligible,
    is_cpu_eval_fp32,
    is_plain_stack,
)
from tfm.model.fused.loop_weights import as_array, make_stack_weights, num_weights
from tfm.model.fused.weight_cache import WeightCache, cached_weights
from tfm.model.layers.linear import Linear
from tfm.model.transformer.decoder_masks import CAUSAL_DECODER_MASK
from tfm.model.transformer.decoder_only import DecoderOnly

LANES, UNROLL_FACTOR = 16, 4
"""Widths of layers are multiples of the one, and outputs of the other."""
MAX_WEIGHTS_FOR_COMPILED_GENERATION = 1 << 24
"""The number of weights above which several threads read them faster than the one of the loop."""


@dataclass(frozen=True)
class TokenSamplingSettings:
    """The choice of the next piece: drawn by a uniform number at a temperature, from all pieces, the `top_k` best, or
    the best that have the probability `top_p` together; with `top_k` of 1 it is the likeliest.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def num_best(self, vocab: int) -> int:
        """The number of the best pieces to draw from; 0 for all, in the order of their ids."""
        return 0 if self.top_k is self.top_p is None else min(self.top_k or vocab, vocab)


class CompiledGenerationBatch:
    """Some texts that begin with the same number of pieces, as the loop writes them.

    Args:
        weights: the weights of the model.
        pieces: (N, T) the pieces that are given.
        capacity: maximum number of pieces that are read.
        pad_bos_eos_ids: padding, begin and end token.
    """

    def __init__(
        self,
        weights: "_LanguageModelWeights",
        pieces: Any,
        capacity: int,
        pad_bos_eos_ids: tuple[int, int, int],
    ) -> None:
        self._weights, self._pad_bos_eos_ids = weights, pad_bos_eos_ids
        self._num_read, self._num_given = 0, pieces.shape[1]
        self._pieces = np.zeros((len(pieces), capacity + 1), np.int64)
        self._pieces[:, : pieces.shape[1]] = pieces
        heads = weights.decoder.settings.head_shapes
        shape = len(weights.decoder.attention.projection.bias), len(pieces), heads[1], capacity
        self._keys = np.empty((*shape, heads[2]), np.float32)
        self._values = np.empty((*shape, heads[3]), np.float32)

    def __len__(self) -> int:
        """N."""
        return len(self._pieces)

    @property
    def num_read(self) -> int:
        """The number of pieces that have been read or, before the first call, will be before a new one comes."""
        return int(max(self._num_read, self._num_given - 1))

    def extend_texts(
        self, uniform: Any, sampling: TokenSamplingSettings, *, shortest: int, longest: int
    ) -> tuple[Any, Any]:
        """Append pieces to each text.

        Args:
            uniform: (N, count), the numbers that decide, one a piece.
            sampling: how they decide.
            shortest: minimum number of new pieces before the end token.
            longest: maximum number of new pieces; behind them nothing but the end token comes.

        Returns:
            The pieces (N, count), and their log-probabilities.
        """
        from tfm.model.cpu_kernels import text_generation

        log_probs, first = np.empty(uniform.shape, np.float32), self.num_read + 1
        assert first + uniform.shape[1] <= self._pieces.shape[1], "the loop would write behind its arrays"
        limits = self._num_read, self._num_given, shortest, longest
        text_generation.continue_texts(
            self._weights.decoder,
            self._weights.output,
            self._keys,
            self._values,
            self._pieces,
            self._pad_bos_eos_ids,
            limits,
            np.ascontiguousarray(uniform),
            sampling.num_best(len(self._weights.decoder.table)),
            (sampling.temperature, 1.0 if sampling.top_p is None else sampling.top_p),
            log_probs,
        )
        self._num_read = first - 1 + uniform.shape[1]
        return self._pieces[:, first : first + uniform.shape[1]], log_probs

    def select(self, rows: Any) -> None:
        """Keep some of the texts."""
        self._pieces = self._pieces[rows]
        self._keys = np.ascontiguousarray(self._keys[:, rows])
        self._values = np.ascontiguousarray(self._values[:, rows])


class _LanguageModelWeights:
    """The weights of a model as the loop reads them."""

    def __init__(self, model: DecoderOnly) -> None:
        layers: Any = model.layers
        self.decoder = make_stack_weights(model.embedding, layers, model.norm, model.max_length)
        output = as_array(model.output.weight)
        self.output = np.ascontiguousarray(np.pad(output, ((0, -len(output) % UNROLL_FACTOR), (0, 0))))


_weight_caches: "WeakKeyDictionary[nn.Module, WeightCache[_LanguageModelWeights]]" = WeakKeyDictionary()


def make_compiled_generation_batch(
    model: object, pieces: Sequence[Sequence[int]] | Any, max_length: int, pad_bos_eos_ids: tuple[int, int, int]
) -> CompiledGenerationBatch | None:
    """Return texts that begin with these pieces (N, T), for the loop; None if the loop does not apply.

    Args:
        model: the model, whose weights are taken as they are now.
        pieces: (N, T), the begin token first.
        max_length: maximum number of pieces that are read.
        pad_bos_eos_ids: padding, begin and end token.

    Raises:
        IndexError: a piece is none of the vocabulary.
    """
    if type(model) is not DecoderOnly or model.mask != CAUSAL_DECODER_MASK or not dispatch.are_kernels_enabled():
        return None
    if getattr(model.output, "inference_dtype", None) not in (None, torch.float32) or max_length > model.max_length:
        return None
    weights = cached_weights(
        _weight_caches, model, lambda model: _LanguageModelWeights(model) if _is_supported(model) else None
    )
    if weights is None:
        return None
    ids = np.asarray(pieces, np.int64)
    if ids.max() >= len(weights.decoder.table):  # the loop does not look whether a row is there
        raise IndexError(f"piece {ids.max()} of a vocabulary of {len(weights.decoder.table)}")
    return CompiledGenerationBatch(weights, ids, max_length, pad_bos_eos_ids)


def _is_supported(model: DecoderOnly) -> bool:
    """Return whether a model is in eval mode, in fp32, and of the parts and widths that the loop knows."""
    layers: Any = model.layers
    return (
        is_cpu_eval_fp32(model)
        and not any(each.is_inference() for each in model.parameters())  # these do not tell when they change
        and are_all_eligible([model.embedding], EMBEDDING_ELIGIBILITY)
        and is_plain_stack(model.layers, model.norm, COMPILED_LOOP_ELIGIBILITY)
        and type(model.narrow) is nn.Identity
        and type(model.output) is Linear
        and model.output.bias is None
        and all(size % LANES == 0 for part in layers.modules() if type(part) is Linear for size in part.weight.shape)
        and num_weights(model.layers) + num_weights(model.output) < MAX_WEIGHTS_FOR_COMPILED_GENERATION
    )
