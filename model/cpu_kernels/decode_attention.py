"""Attention of a decoding step: each hypothesis has one query, and attends to some slots of its sentence.

Legend: B sentences · W hypotheses of each, or queries · H heads · G heads of keys and values · S keys · K width of a
head's queries and keys · V width of its values.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tfm.model.cpu_kernels.jit import AT_ONCE, compiled, inlined
from tfm.model.cpu_kernels.softmax import exp

LINE = 16  # numbers of a cache line


@intrinsic
def _prefetch(_, array, place):  # type: ignore[no-untyped-def]
    """Prefetch the cache line that holds this place of an array, counted as if the array had one dimension."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        where = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        builder.call(prefetch, [where, number(0), number(3), number(1)])  # to read; into all caches; data
        return context.get_dummy_value()

    return types.void(array, place), generate


@inlined
def _prefetch_slot(rows, sentence, slot):  # type: ignore[no-untyped-def]
    """Prefetch a slot of a sentence, of keys or values (B, G, S, K)."""
    _, groups, slots, width = rows.shape
    for g in range(groups):
        first = ((sentence * groups + g) * slots + slot) * width
        for place in range(first, first + width, LINE):
            _prefetch(rows, place)


@inlined
def _prefetch_share(key, value, where, counts, sentence, w, width):  # type: ignore[no-untyped-def]
    """Prefetch the w-th of `width` shares of what the queries of a sentence see, as `list_allowed` has listed it.

    A share is what one query sees and the one before it does not; where all see the same, a part of that.
    """
    m = w % len(counts)
    size = counts[m] if len(counts) == width else (counts[m] + width - 1) // width
    first = 0 if len(counts) == width else w * size
    for i in range(first, min(first + size, counts[m])):
        if m == 0 or where[m, i] != where[m - 1, i]:
            _prefetch_slot(key, sentence, np.int64(where[m, i]))
            _prefetch_slot(value, sentence, np.int64(where[m, i]))


@compiled("void(b1[:,:,::1], u8[:,:,::1], i8[:,::1])")
def list_allowed(allowed, where, counts):  # type: ignore[no-untyped-def]
    """The keys that allowed (B, W, S) allows each query -> where (B, W, S + AT_ONCE), and how many: counts (B, W).

    Behind them stands the first of them again.
    """
    batch, width, num_keys = allowed.shape
    for b in range(batch):
        for w in range(width):
            row, places = allowed[b, w], where[b, w]
            count = 0
            for s in range(num_keys):
                places[count] = s
                count += row[s]
            counts[b, w] = count
            for i in range(count, count + AT_ONCE - 1):
                places[i] = places[0]


@inlined
def store(cache, sentence, slot, row, first):  # type: ignore[no-untyped-def]
    """Put what a row holds from column `first` on into a slot of a sentence, of a cache (B, G, S, K)."""
    _, groups, _, width = cache.shape
    for g in range(groups):
        for k in range(width):
            cache[sentence, g, slot, k] = row[first + g * width + k]


@compiled("void(f4[:,:,::1], f4[:,:,:,::1], f4[:,:,:,::1], i8[:,::1], u8[:,:,::1], i8[:,::1], f4, f4[:,:,:,::1])")
def attend(query, key, value, slots, where, counts, scale, mixed):  # type: ignore[no-untyped-def]
    """mixed = softmax(query key^T * scale) value, over the keys that `list_allowed` has listed.

    query (B, W, H K or more), key (B, G, S, K), value (B, G, S, V) -> mixed (B, W, H, V). where (B, W, ..), counts
    (B, W); or (B, 1, ..), (B, 1), where they are the same for all queries of a sentence.
    slots (B, W): where keys and values go first that stand behind the queries; (B, 0) where there are none.
    """
    (batch, width, heads, value_dim), key_dim = mixed.shape, key.shape[3]
    sharing, num_lists = heads // key.shape[1], counts.shape[1]
    weights = np.empty(heads * where.shape[2], np.float32)
    for b in range(batch):
        for w in range(slots.shape[1]):
            store(key, b, slots[b, w], query[b, w], heads * key_dim)
            store(value, b, slots[b, w], query[b, w], (heads + key.shape[1]) * key_dim)
        for w in range(width):
            m = w % num_lists
            if b + 1 < batch:
                _prefetch_share(key, value, where[b + 1], counts[b + 1], b + 1, w, width)
            count = counts[b, m]
            used = 0
            for h in range(heads):
                g, first = h // sharing, used
                largest = np.float32(-np.inf)
                for i in range(0, count, AT_ONCE):
                    s0, s1, s2, s3 = where[b, m, i], where[b, m, i + 1], where[b, m, i + 2], where[b, m, i + 3]
                    x0 = x1 = x2 = x3 = np.float32(0.0)
                    for k in range(key_dim):
                        q = query[b, w, h * key_dim + k]
                        x0 += q * key[b, g, s0, k]
                        x1 += q * key[b, g, s1, k]
                        x2 += q * key[b, g, s2, k]
                        x3 += q * key[b, g, s3, k]
                    x0, x1, x2, x3 = x0 * scale, x1 * scale, x2 * scale, x3 * scale
                    weights[used], weights[used + 1], weights[used + 2], weights[used + 3] = x0, x1, x2, x3
                    largest = max(largest, max(max(x0, x1), max(x2, x3)))
                    used += AT_ONCE
                for i in range(first, first + count):
                    weights[i] -= largest
                for i in range(first + count, used):
                    weights[i] = -np.inf
            for i in range(used):
                weights[i] = exp(weights[i])
            used = 0
            for h in range(heads):
                g = h // sharing
                total = np.float32(0.0)
                for i in range(used, used + count):
                    total += weights[i]
                share = np.float32(1.0) / total
                for v in range(value_dim):
                    mixed[b, w, h, v] = 0.0
                for i in range(0, count, AT_ONCE):
                    s0, s1, s2, s3 = where[b, m, i], where[b, m, i + 1], where[b, m, i + 2], where[b, m, i + 3]
                    p0, p1 = weights[used] * share, weights[used + 1] * share
                    p2, p3 = weights[used + 2] * share, weights[used + 3] * share
                    for v in range(value_dim):
                        mixed[b, w, h, v] += (
                            p0 * value[b, g, s0, v]
                            + p1 * value[b, g, s1, v]
                            + p2 * value[b, g, s2, v]
                            + p3 * value[b, g, s3, v]
                        )
                    used += AT_ONCE


@compiled("void(f4[:,:,:,::1], f4[:,:,::1], i8[:,::1])")
def write(cache, rows, slots):  # type: ignore[no-untyped-def]
    """Put rows (B, W, G K) into their slots (B, W) of a cache (B, G, S, K)."""
    batch, width = slots.shape
    for b in range(batch):
        for w in range(width):
            store(cache, b, slots[b, w], rows[b, w], 0)


@compiled("i8(b1[:,:,::1], i8[:,::1], i8[::1], i8[:,::1], b1[:,:,::1], i8[:,::1])")
def take_slots(descent, positions, lengths, own, grown, places):  # type: ignore[no-untyped-def]
    """The lowest free slots of each sentence for its next rows: own (B, W); how many slots are in use after that.

    descent (B, W, S), positions (B, S) -> with them grown (B, W, S + W) and places (B, S + W). lengths (B,): the
    positions of the next rows. A slot is free where no row descends from it.
    """
    batch, width, slots = descent.shape
    used = 0
    for b in range(batch):
        taken = 0
        for s in range(slots + width):
            is_free = True
            for w in range(width):
                grown[b, w, s] = s < slots and descent[b, w, s]
                is_free = is_free and not grown[b, w, s]
            places[b, s] = positions[b, s] if s < slots else 0
            if is_free and taken < width:
                own[b, taken], grown[b, taken, s], places[b, s] = s, True, lengths[b]
                taken += 1
                is_free = False
            if not is_free:
                used = max(used, s + 1)
    return used
