"""Attention of a decoding step: each hypothesis has one query, and attends to some slots of its sentence.

Legend: B sentences · W hypotheses of each, or queries · H heads · G heads of keys and values · S keys · K width of a
head's queries and keys · V width of its values.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tfm.model.cpu_kernels.jit import UNROLL_FACTOR, compile_function, inline_jit
from tfm.model.cpu_kernels.softmax import NEG_INF, ZERO, exp
from tfm.model.cpu_kernels.vectors import (
    LANES,
    hmax,
    hsum,
    load,
    load_partial,
    load_scalar,
    splat,
    store,
    store_hsums,
    store_partial,
    vmax,
)

CACHE_LINE_BYTES = 64  # bytes of a cache line


@intrinsic
def _prefetch(_, array, offset):  # type: ignore[no-untyped-def]
    """Prefetch the cache line that holds this place of an array, counted as if the array had one dimension."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        key_indices = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        builder.call(prefetch, [key_indices, number(0), number(3), number(1)])  # to read; into all caches; data
        return context.get_dummy_value()

    return types.void(array, offset), codegen


@inline_jit
def _prefetch_slot(rows, sentence, slot):  # type: ignore[no-untyped-def]
    """Prefetch a slot of a sentence, of keys or values (B, G, S, K)."""
    _, groups, slots, width = rows.shape
    for g in range(groups):
        first = ((sentence * groups + g) * slots + slot) * width
        for offset in range(first, first + width, CACHE_LINE_BYTES // rows.itemsize):
            _prefetch(rows, offset)


@inline_jit
def _prefetch_chunk(key, value, key_indices, counts, sentence, w, width):  # type: ignore[no-untyped-def]
    """Prefetch the w-th of `width` shares of the keys that the queries of a sentence may attend to, as
    `list_allowed_keys` has listed them.

    A share consists of the keys that one query may attend to and the one before it may not; if all may attend to the
    same keys, of a part of them.
    """
    m = w % len(counts)
    size = counts[m] if len(counts) == width else (counts[m] + width - 1) // width
    first = 0 if len(counts) == width else w * size
    for i in range(first, min(first + size, counts[m])):
        if m == 0 or key_indices[m, i] != key_indices[m - 1, i]:
            _prefetch_slot(key, sentence, np.int64(key_indices[m, i]))
            _prefetch_slot(value, sentence, np.int64(key_indices[m, i]))


@compile_function("void(b1[:,:,::1], u8[:,:,::1], i8[:,::1])")
def list_allowed_keys(allowed, key_indices, counts):  # type: ignore[no-untyped-def]
    """List the keys that each query may attend to.

    Args:
        allowed: (B, W, S), true where a query may attend to a key.
        key_indices: (B, W, S + UNROLL_FACTOR), written: the indices of these keys, then the first ones again.
        counts: (B, W), written: the number of keys of each query.
    """
    batch, width, num_keys = allowed.shape
    for b in range(batch):
        for w in range(width):
            row, indices = allowed[b, w], key_indices[b, w]
            count = 0
            for s in range(num_keys):
                indices[count] = s
                count += row[s]
            counts[b, w] = count
            for i in range(count, count + UNROLL_FACTOR - 1):
                indices[i] = indices[0]


@inline_jit
def store_cache_row(cache, sentence, slot, row, offset):  # type: ignore[no-untyped-def]
    """Write a row of keys or values into a slot of a sentence.

    Args:
        cache: (B, G, S, K), written.
        sentence: index of the sentence.
        slot: index of the slot.
        row: the G K numbers to write, from column `offset` on.
        offset: the first column of `row` to write.
    """
    _, groups, slots, width = cache.shape
    for g in range(groups):
        cache_offset = ((sentence * groups + g) * slots + slot) * width
        for k in range(0, width, LANES):
            store_partial(
                cache, cache_offset + k, width - k, load_partial(row, offset + g * width + k, width - k, ZERO)
            )


@inline_jit
def _add_products(x, a, i, b, j, count):  # type: ignore[no-untyped-def]
    """Return x + the products of the first `count` numbers, at most 2 LANES, of a from place i on and b from place
    j on.
    """
    x = x + load_partial(a, i, count, ZERO) * load_partial(b, j, count, ZERO)
    return x + load_partial(a, i + LANES, count - LANES, ZERO) * load_partial(b, j + LANES, count - LANES, ZERO)


@inline_jit
def _score_keys(query, q, key, offset, key_indices, list_offset, count, key_dim, scores, s):  # type: ignore[no-untyped-def]
    """Set the scores (count,), from place s on: the query from place q on times each listed key of those from `offset`
    on.
    """
    for i in range(0, count, UNROLL_FACTOR):
        k0 = (offset + np.int64(load_scalar(key_indices, list_offset + i))) * key_dim
        k1 = (offset + np.int64(load_scalar(key_indices, list_offset + i + 1))) * key_dim
        k2 = (offset + np.int64(load_scalar(key_indices, list_offset + i + 2))) * key_dim
        k3 = (offset + np.int64(load_scalar(key_indices, list_offset + i + 3))) * key_dim
        x0 = x1 = x2 = x3 = splat(ZERO)
        for k in range(0, key_dim, 2 * LANES):
            x0 = _add_products(x0, query, q + k, key, k0 + k, key_dim - k)
            x1 = _add_products(x1, query, q + k, key, k1 + k, key_dim - k)
            x2 = _add_products(x2, query, q + k, key, k2 + k, key_dim - k)
            x3 = _add_products(x3, query, q + k, key, k3 + k, key_dim - k)
        store_hsums(scores, s + i, x0, x1, x2, x3)
    store(scores, s + count, splat(NEG_INF))


@inline_jit
def _softmax(scores, s, count, scale):  # type: ignore[no-untyped-def]
    """Turn scores x (count,), from place s on, into e^(scale (x - largest)), with zeros behind them; return 1 / their
    sum.
    """
    best = splat(NEG_INF)
    for i in range(s, s + count, LANES):
        best = vmax(best, load(scores, i))
    max_score, sums = splat(hmax(best)), splat(ZERO)
    for i in range(s, s + count, LANES):
        weights = exp((load(scores, i) - max_score) * splat(scale))
        store(scores, i, weights)
        sums = sums + weights
    return np.float32(1.0) / hsum(sums) if count > 0 else ZERO


@inline_jit
def _sum_weighted_values(value, offset, key_indices, list_offset, count, value_dim, weights, s, scale, output, v):  # type: ignore[no-untyped-def]
    """Set the output, from place v on, to scale * the sum of the listed values from `offset` on, each weighted."""
    for part in range(0, value_dim, 2 * LANES):
        num_left = value_dim - part
        acc_low = acc_high = splat(ZERO)
        for i in range(count):
            weight = splat(load_scalar(weights, s + i))
            value_offset = (offset + np.int64(load_scalar(key_indices, list_offset + i))) * value_dim + part
            acc_low = acc_low + weight * load_partial(value, value_offset, num_left, ZERO)
            acc_high = acc_high + weight * load_partial(value, value_offset + LANES, num_left - LANES, ZERO)
        store_partial(output, v + part, num_left, acc_low * splat(scale))
        store_partial(output, v + part + LANES, num_left - LANES, acc_high * splat(scale))


def _attend(query, key, value, slots, key_indices, counts, scale, output):  # type: ignore[no-untyped-def]
    """Set output = softmax(query key^T * scale) value, over the keys that `list_allowed_keys` has listed.

    Args:
        query: (B, W, H K or more), behind the queries the new keys and values, if `slots` names slots.
        key: (B, G, S, K).
        value: (B, G, S, V).
        slots: (B, W), the slots into which the new keys and values are written first; (B, 0) for none.
        key_indices: (B, W, ..), or (B, 1, ..) if they are the same for all queries of a sentence.
        counts: (B, W) or (B, 1), the number of keys of each query.
        scale: factor of the logits.
        output: (B, W, H, V), written.
    """
    (batch, width, heads, value_dim), key_dim = output.shape, key.shape[3]
    sharing, num_lists = heads // key.shape[1], counts.shape[1]
    groups, num_keys, query_dim, row_stride = key.shape[1], key.shape[2], query.shape[2], key_indices.shape[2] + LANES
    weights, shares = np.empty(width * heads * row_stride, np.float32), np.empty(width * heads, np.float32)
    for b in range(batch):
        for w in range(slots.shape[1]):
            store_cache_row(key, b, slots[b, w], query[b, w], heads * key_dim)
            store_cache_row(value, b, slots[b, w], query[b, w], (heads + groups) * key_dim)
        for w in range(width):
            m = w % num_lists
            if b + 1 < batch:
                _prefetch_chunk(key, value, key_indices[b + 1], counts[b + 1], b + 1, w, width)
            list_start, count = (b * num_lists + m) * key_indices.shape[2], load_scalar(counts, b * num_lists + m)
            for h in range(heads):
                first, q = (b * groups + h // sharing) * num_keys, (b * width + w) * query_dim + h * key_dim
                _score_keys(
                    query, q, key, first, key_indices, list_start, count, key_dim, weights, (w * heads + h) * row_stride
                )
        for row in range(width * heads):
            shares[row] = _softmax(
                weights, row * row_stride, load_scalar(counts, b * num_lists + row // heads % num_lists), scale
            )
        for w in range(width):
            m = w % num_lists
            list_start, count = (b * num_lists + m) * key_indices.shape[2], load_scalar(counts, b * num_lists + m)
            for h in range(heads):
                first, row = (b * groups + h // sharing) * num_keys, w * heads + h
                v = (b * width * heads + row) * value_dim
                _sum_weighted_values(
                    value,
                    first,
                    key_indices,
                    list_start,
                    count,
                    value_dim,
                    weights,
                    row * row_stride,
                    shares[row],
                    output,
                    v,
                )


_ATTEND_SIGNATURE = (
    "void({0}[:,:,::1], {0}[:,:,:,::1], {0}[:,:,:,::1], i8[:,::1], u8[:,:,::1], i8[:,::1], f4, {0}[:,:,:,::1])"
)
attend = compile_function(_ATTEND_SIGNATURE.format("f4"))(_attend)
attend_bf16 = compile_function(_ATTEND_SIGNATURE.format("u2"))(_attend)
"""`attend` in fp32 of arrays in bf16."""


@compile_function("void(f4[:,:,:,::1], f4[:,:,::1], i8[:,::1])")
def write_slots(cache, rows, slots):  # type: ignore[no-untyped-def]
    """Put rows into their slots of a cache.

    Args:
        cache: (B, G, S, K), written.
        rows: (B, W, G K).
        slots: (B, W).
    """
    batch, width = slots.shape
    for b in range(batch):
        for w in range(width):
            store_cache_row(cache, b, slots[b, w], rows[b, w], 0)


@compile_function("i8(b1[:,:,::1], i8[:,::1], i8[::1], i8[:,::1], b1[:,:,::1], i8[:,::1])")
def allocate_slots(ancestor_mask, slot_positions, lengths, new_slots, new_ancestor_mask, new_slot_positions):  # type: ignore[no-untyped-def]
    """Find the lowest free slots of each sentence for its next rows. A slot is free where no row descends from it.

    Args:
        ancestor_mask: (B, W, S), true where a row descends from a slot.
        slot_positions: (B, S), the position of each slot's row.
        lengths: (B,), the positions of the next rows.
        new_slots: (B, W), written: the slots of the next rows.
        new_ancestor_mask: (B, W, S + W), written: `ancestor_mask` with the next rows.
        new_slot_positions: (B, S + W), written: `slot_positions` with the next rows.

    Returns:
        The number of slots in use after that.
    """
    batch, width, slots = ancestor_mask.shape
    num_slots = 0
    for b in range(batch):
        num_taken = 0
        for s in range(slots + width):
            is_free = True
            for w in range(width):
                new_ancestor_mask[b, w, s] = s < slots and ancestor_mask[b, w, s]
                is_free = is_free and not new_ancestor_mask[b, w, s]
            new_slot_positions[b, s] = slot_positions[b, s] if s < slots else 0
            if is_free and num_taken < width:
                new_slots[b, num_taken], new_ancestor_mask[b, num_taken, s], new_slot_positions[b, s] = (
                    s,
                    True,
                    lengths[b],
                )
                num_taken += 1
                is_free = False
            if not is_free:
                num_slots = max(num_slots, s + 1)
    return num_slots
