"""Dispatch to the compiled loops of `library.py`: when they apply, and how tensors are passed to them.

They are only used within `use_compiled_kernels`. Each function returns None, or False, if they do not apply: outside
of it, if gradients are needed, on a device other than a CPU, and in a type other than fp32. The equation in torch then
does the same.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from tfm.model.masks import Mask

Lists = tuple[Tensor, Tensor]
Candidates = tuple[Tensor, Tensor, Tensor]
"""Values, beams and tokens (B, k) of what a beam may go on with, best first."""

LIBRARY = "tfm.model.cpu_kernels.library"
LOGIT_ROWS_PER_CALL, ROW_MULTIPLE = 32, 8
"""Of so many rows logits are computed at once: few, so that they are in the cache when candidates are looked for; and a
multiple of ROW_MULTIPLE, since a product is prepared for each number of rows."""

_loops: Any = None
_lists_of: WeakKeyDictionary[Mask, dict[tuple[int, int], Lists]] = WeakKeyDictionary()


@contextmanager
def use_compiled_kernels(wanted: bool) -> Iterator[None]:
    """Within, the compiled loops are used, if that is wanted and numba is installed (extra: fast).

    Their first use in a process takes half a second, and the first of an installation compiles for some more.
    """
    global _loops
    before, _loops = _loops, _load() if wanted else None
    try:
        yield
    finally:
        _loops = before


def _load() -> Any:
    """The module of the loops; None without numba, or where what it is made of cannot be loaded."""
    if sys.modules.get(LIBRARY) is None:
        try:
            # Ctrl-C reaches the main thread alone: numba, interrupted while it is imported, fails at each later import
            with ThreadPoolExecutor(1) as other:
                other.submit(import_module, LIBRARY).result()
        except (ImportError, OSError):
            return None
    return import_module(LIBRARY)


def is_enabled() -> bool:
    """Whether compiled loops are used here."""
    return _loops is not None and not torch.is_grad_enabled()


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask, scale: float) -> Tensor | None:
    """softmax(Q K^T * scale + mask) V: query (B, H, T, K), key (B, G, S, K), value (B, G, S, V) -> (B, H, T, V)."""
    if not mask.is_explicit_only or not _is_supported(query):
        return None
    batch, heads, num_queries, _ = query.shape
    mixed = query.new_empty(batch, num_queries, heads, value.shape[3])
    heads_of_keys, none = (full_cache_view(key), full_cache_view(value)), torch.empty(batch, 0, dtype=torch.int64)
    arrays = _as_rows(query), *heads_of_keys, none, *allowed_keys(mask, batch, key.shape[2])
    _loops.attend(*map(Tensor.numpy, arrays), scale, mixed.numpy())
    return mixed.transpose(1, 2)


def allowed_keys(mask: Mask, batch: int, num_keys: int) -> Lists:
    """Which keys the queries of each sentence see (B, W, ..), and how many (B, W): listed once for all layers."""
    kept = _lists_of.setdefault(mask, {})
    if (batch, num_keys) not in kept:
        allowed = mask.allowed
        if allowed is None:
            allowed = torch.ones(batch, 1, 1, num_keys, dtype=torch.bool)
        allowed = allowed.expand(batch, -1, -1, -1).squeeze(1).contiguous()
        where = torch.zeros(*allowed.shape[:2], num_keys + _loops.UNROLL, dtype=torch.uint64)
        counts = torch.empty(allowed.shape[:2], dtype=torch.int64)
        _loops.list_allowed(allowed.numpy(), where.numpy(), counts.numpy())
        kept[batch, num_keys] = where, counts
    return kept[batch, num_keys]


def layer_norm(rows: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor | None:
    """(x - mean) / sqrt(var + eps) * gain + bias of each row x of (N, D)."""
    if not _is_supported(rows) or rows.dim() != 2:
        return None
    normed = torch.empty_like(rows, memory_format=torch.contiguous_format)
    _loops.layer_norm(rows.contiguous().numpy(), gain.numpy(), bias.numpy(), eps, normed.numpy())
    return normed


def log_softmax(logits: Tensor) -> bool:
    """Whether logits (N, V) have become log-probabilities, in place."""
    if not _is_supported(logits) or not logits.is_contiguous():
        return False
    _loops.log_softmax(logits.numpy())
    return True


def write(keys: Tensor, values: Tensor, key: Tensor, value: Tensor, slots: Tensor) -> bool:
    """Whether key (B, G, W, K) and value (B, G, W, V) are in their slots (B, W) of keys (B, G, S, K) and values."""
    if not _is_supported(key):
        return False
    for all_, new in ((keys, key), (values, value)):
        _loops.write(all_.numpy(), _as_rows(new).numpy(), slots.contiguous().numpy())
    return True


def take_slots(descent: Tensor, positions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """The slots (B, W) that the next rows take, and descent (B, W, S) and positions (B, S) with them."""
    if not is_enabled() or descent.device.type != "cpu":
        return None
    batch, width, slots = descent.shape
    own = positions.new_empty(batch, width)
    grown, places = descent.new_empty(batch, width, slots + width), positions.new_empty(batch, slots + width)
    before = descent.contiguous(), positions.contiguous(), lengths.contiguous()
    used = _loops.take_slots(*map(Tensor.numpy, (*before, own, grown, places)))
    return own, grown[..., :used], places[:, :used]


def best_of_logits(
    logits: Callable[[Tensor], Tensor], sums: Tensor, beam: int, *, end: int, never: tuple[int, ...]
) -> Candidates | None:
    """The 2 `beam` largest of sums (B, W) + log-softmax(logits (B W, V)) of each sentence, but for what cannot count.

    logits: computes those of some rows (N,). The `beam` best of all and the `beam` best that are not the `end` token
    are there, in the order of `pipeline/decoding/search/top_k.py`; the rest may lack. What is `never` to come counts in
    the softmax, and is left out.
    """
    if not is_enabled() or sums.device.type != "cpu":
        return None
    sums, rows, place = sums.contiguous(), torch.zeros(LOGIT_ROWS_PER_CALL, dtype=torch.int64), 0
    values = sums.new_full((len(sums), 2 * beam), float("-inf"))
    found = values, torch.zeros_like(values, dtype=torch.int64), torch.zeros_like(values, dtype=torch.int64)
    sums_array, of_rows, of_found = sums.numpy(), rows.numpy(), [each.numpy() for each in found]
    of_never = np.array(never, np.int64)
    while True:
        count, place = _loops.next_rows(place, sums_array, of_found[0], of_found[2], beam, end, of_rows)
        if count == 0:
            return found
        of_rows[count:] = of_rows[count - 1]
        chunk_logits = logits(rows[: count + -count % ROW_MULTIPLE]).contiguous()
        if chunk_logits.dtype is torch.bfloat16:
            _loops.best_of_low_logits(bits(chunk_logits), of_rows[:count], of_never, sums_array, *of_found)
        elif chunk_logits.dtype is torch.float32:
            _loops.best_of_logits(chunk_logits.numpy(), of_rows[:count], of_never, sums_array, *of_found)
        else:
            return None
        del chunk_logits  # freed before the next ones are computed


def bits(low: Tensor) -> Any:
    """Numbers of bf16 as the 16 bits that they are, as an array on the same memory."""
    return low.view(torch.uint16).numpy()


def as_array(numbers: Tensor) -> Any:
    """Numbers of fp32 as an array, of bf16 as one of their bits."""
    return bits(numbers) if numbers.dtype is torch.bfloat16 else numbers.numpy()


def _is_supported(given: Tensor) -> bool:
    """Whether the loops are for this tensor; what is given beside it is of the same type and device."""
    return is_enabled() and given.dtype is torch.float32 and given.device.type == "cpu"


def _as_rows(heads: Tensor) -> Tensor:
    """(B, H, T, K) -> (B, T, H K), contiguous."""
    return heads.transpose(1, 2).flatten(2).contiguous()


def full_cache_view(heads: Tensor) -> Tensor:
    """Keys or values (B, G, S, K), contiguous; of a part of a cache, with all the slots that it has."""
    batch, groups, _, width = heads.shape
    room = heads.stride(1) // width if width else 0
    whole = batch, groups, room, width
    if room >= heads.shape[2] and heads.stride() == (groups * room * width, room * width, width, 1):
        return heads.as_strided(whole, heads.stride())
    return heads.contiguous()
