"""Dispatch to the compiled loops of `library.py`: when they apply, and how tensors are passed to them.

The loops are only used within `use_compiled_kernels`. Each function returns None, or False, if they do not apply:
outside of it, if gradients are needed, on a device other than a CPU, and in a type other than fp32. The equation in
torch then does the same.
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

AttendedKeys = tuple[Tensor, Tensor]
Candidates = tuple[Tensor, Tensor, Tensor]
"""Values, beams and tokens (B, k) of the candidates that may continue a beam, best first."""

LIBRARY_MODULE = "tfm.model.cpu_kernels.library"
LOGIT_ROWS_PER_CALL, ROW_MULTIPLE = 32, 8
"""The number of rows whose logits are computed at once: few, so that they are in the cache when candidates are looked
for; and a multiple of ROW_MULTIPLE, since a product is prepared for each number of rows.
"""

_library: Any = None
_key_lists: WeakKeyDictionary[Mask, dict[tuple[int, int], AttendedKeys]] = WeakKeyDictionary()


@contextmanager
def use_compiled_kernels(enabled: bool) -> Iterator[None]:
    """Use the compiled loops while the body runs, if `enabled` and numba is installed (extra: fast).

    The first use of the loops in a process takes half a second, and the first of an installation compiles for some
    more.
    """
    global _library
    previous, _library = _library, load_kernel_module(LIBRARY_MODULE) if enabled else None
    try:
        yield
    finally:
        _library = previous


def load_kernel_module(name: str) -> Any:
    """The module of loops of this name; None without numba, or where its libraries cannot be loaded."""
    if sys.modules.get(name) is None:
        try:
            # Ctrl-C reaches the main thread alone: numba, interrupted while it is imported, fails at each later import
            with ThreadPoolExecutor(1) as executor:
                executor.submit(import_module, name).result()
        except (ImportError, OSError):
            return None
    return import_module(name)


def are_kernels_enabled() -> bool:
    """Return whether compiled loops are used here."""
    return _library is not None and not torch.is_grad_enabled()


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask, scale: float) -> Tensor | None:
    """Return softmax(Q K^T * scale + mask) V; None if the loop does not apply.

    Args:
        query: (B, H, T, K).
        key: (B, G, S, K).
        value: (B, G, S, V).
        mask: the keys that each query may attend to.
        scale: factor of the logits.

    Returns:
        The output (B, H, T, V), or None.
    """
    if not mask.needs_explicit_attention or not _is_supported(query):
        return None
    batch, heads, num_queries, _ = query.shape
    output = query.new_empty(batch, num_queries, heads, value.shape[3])
    full_cache, no_slots = (view_full_cache(key), view_full_cache(value)), torch.empty(batch, 0, dtype=torch.int64)
    arrays = _merge_heads(query), *full_cache, no_slots, *allowed_keys(mask, batch, key.shape[2])
    _library.attend(*map(Tensor.numpy, arrays), scale, output.numpy())
    return output.transpose(1, 2)


def allowed_keys(mask: Mask, batch: int, num_keys: int) -> AttendedKeys:
    """List the keys that each query may attend to (B, W, ..), and their numbers (B, W), once for all layers.

    Args:
        mask: the mask of a decoding step, for which the lists are kept.
        batch: B.
        num_keys: S.
    """
    lists_of_mask = _key_lists.setdefault(mask, {})
    if (batch, num_keys) not in lists_of_mask:
        allowed = mask.allowed
        if allowed is None:
            allowed = torch.ones(batch, 1, 1, num_keys, dtype=torch.bool)
        allowed = allowed.expand(batch, -1, -1, -1).squeeze(1).contiguous()
        key_indices = torch.zeros(*allowed.shape[:2], num_keys + _library.UNROLL_FACTOR, dtype=torch.uint64)
        counts = torch.empty(allowed.shape[:2], dtype=torch.int64)
        _library.list_allowed_keys(allowed.numpy(), key_indices.numpy(), counts.numpy())
        lists_of_mask[batch, num_keys] = key_indices, counts
    return lists_of_mask[batch, num_keys]


def layer_norm(rows: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor | None:
    """Return (x - mean) / sqrt(var + eps) * gain + bias of each row x; None if the loop does not apply.

    Args:
        rows: (N, D).
        gain: (D,).
        bias: (D,).
        eps: added to the variance.
    """
    if not _is_supported(rows) or rows.dim() != 2:
        return None
    normed = torch.empty_like(rows, memory_format=torch.contiguous_format)
    _library.layer_norm(rows.contiguous().numpy(), gain.numpy(), bias.numpy(), eps, normed.numpy())
    return normed


def try_log_softmax_in_place(logits: Tensor) -> bool:
    """Return whether logits (N, V) have become log-probabilities, in place."""
    if not _is_supported(logits) or not logits.is_contiguous():
        return False
    _library.log_softmax(logits.numpy())
    return True


def try_write_slots(keys: Tensor, values: Tensor, key: Tensor, value: Tensor, slots: Tensor) -> bool:
    """Write new keys and values into their slots; return whether the loop applied.

    Args:
        keys: the cache (B, G, S, K), written.
        values: the cache (B, G, S, V), written.
        key: new keys (B, G, W, K).
        value: new values (B, G, W, V).
        slots: (B, W).
    """
    if not _is_supported(key):
        return False
    for cache, new in ((keys, key), (values, value)):
        _library.write_slots(cache.numpy(), _merge_heads(new).numpy(), slots.contiguous().numpy())
    return True


def allocate_slots(
    ancestor_mask: Tensor, slot_positions: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the slots that the next rows take; None if the loop does not apply.

    Args:
        ancestor_mask: (B, W, S), true where a row descends from a slot.
        slot_positions: (B, S), the position of each slot's row.
        lengths: (B,), the positions of the next rows.

    Returns:
        The slots (B, W), and `ancestor_mask` (B, W, S') and `slot_positions` (B, S') with the next rows; or None.
    """
    if not are_kernels_enabled() or ancestor_mask.device.type != "cpu":
        return None
    batch, width, slots = ancestor_mask.shape
    new_slots = slot_positions.new_empty(batch, width)
    new_ancestor_mask, new_slot_positions = (
        ancestor_mask.new_empty(batch, width, slots + width),
        slot_positions.new_empty(batch, slots + width),
    )
    inputs = ancestor_mask.contiguous(), slot_positions.contiguous(), lengths.contiguous()
    num_used = _library.allocate_slots(*map(Tensor.numpy, (*inputs, new_slots, new_ancestor_mask, new_slot_positions)))
    return new_slots, new_ancestor_mask[..., :num_used], new_slot_positions[:, :num_used]


def topk_of_logits(
    logits: Callable[[Tensor], Tensor], log_prob_sums: Tensor, beam: int, *, eos_id: int, banned_ids: tuple[int, ...]
) -> Candidates | None:
    """Return the 2 `beam` largest of sums (B, W) + log-softmax(logits (B W, V)) of each sentence, without pieces in
    `banned_ids`.

    The `beam` best of all and the `beam` best that are not the `eos_id` token are there, in the order of
    `pipeline/decoding/search/top_k.py`; the rest may lack.

    Args:
        logits: (rows (N,)) -> their logits (N, V).
        log_prob_sums: (B, W), the log-probability of each hypothesis.
        beam: number of hypotheses that go on.
        eos_id: the end token.
        banned_ids: pieces that cannot come next: they count in the softmax, and are left out of the result.

    Returns:
        The values, hypotheses and tokens of the candidates, (B, 2 `beam`) each; None if the loop does not apply.
    """
    if not are_kernels_enabled() or log_prob_sums.device.type != "cpu":
        return None
    log_prob_sums, rows, start = log_prob_sums.contiguous(), torch.zeros(LOGIT_ROWS_PER_CALL, dtype=torch.int64), 0
    values = log_prob_sums.new_full((len(log_prob_sums), 2 * beam), float("-inf"))
    candidates = values, torch.zeros_like(values, dtype=torch.int64), torch.zeros_like(values, dtype=torch.int64)
    sums_array, rows_array, candidate_arrays = (
        log_prob_sums.numpy(),
        rows.numpy(),
        [each.numpy() for each in candidates],
    )
    banned_array = np.array(banned_ids, np.int64)
    while True:
        count, start = _library.list_unpruned_hypotheses(
            start, sums_array, candidate_arrays[0], candidate_arrays[2], beam, eos_id, rows_array
        )
        if count == 0:
            return candidates
        rows_array[count:] = rows_array[count - 1]
        chunk_logits = logits(rows[: count + -count % ROW_MULTIPLE]).contiguous()
        if chunk_logits.dtype is torch.bfloat16:
            _library.topk_of_bf16_logits(
                view_bf16_as_uint16(chunk_logits), rows_array[:count], banned_array, sums_array, *candidate_arrays
            )
        elif chunk_logits.dtype is torch.float32:
            _library.topk_of_logits(
                chunk_logits.numpy(), rows_array[:count], banned_array, sums_array, *candidate_arrays
            )
        else:
            return None
        del chunk_logits  # freed before the next ones are computed


def view_bf16_as_uint16(bf16_tensor: Tensor) -> Any:
    """Return numbers of bf16 as their 16 bits, an array on the same memory."""
    return bf16_tensor.view(torch.uint16).numpy()


def as_array(numbers: Tensor) -> Any:
    """Return numbers of fp32 as an array, of bf16 as an array of their bits."""
    return view_bf16_as_uint16(numbers) if numbers.dtype is torch.bfloat16 else numbers.numpy()


def _is_supported(tensor: Tensor) -> bool:
    """Return whether the loops are for this tensor; the other arguments are of the same type and device."""
    return are_kernels_enabled() and tensor.dtype is torch.float32 and tensor.device.type == "cpu"


def _merge_heads(heads: Tensor) -> Tensor:
    """Concatenate the heads of (B, H, T, K): (B, T, H K), contiguous."""
    return heads.transpose(1, 2).flatten(2).contiguous()


def view_full_cache(heads: Tensor) -> Tensor:
    """Return keys or values (B, G, S, K), contiguous; of a part of a cache, with all the slots that it has."""
    batch, groups, _, width = heads.shape
    room = heads.stride(1) // width if width else 0
    full_shape = batch, groups, room, width
    if room >= heads.shape[2] and heads.stride() == (groups * room * width, room * width, width, 1):
        return heads.as_strided(full_shape, heads.stride())
    return heads.contiguous()
