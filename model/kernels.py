"""Loops of a decoding step that torch does slowly where there are few queries a sentence, compiled by numba.

Each has its equation in torch (`mix.py`, `output.py`, `cache.py`, `pipeline/decoding/candidates.py`), which takes its
place where numba is not installed; a test holds the two equal. A row is worked out from that row alone, in one order
whatever is beside it.

Legend: B sentences · W hypotheses of each, or queries · H heads · G heads of keys and values · S keys · K width of a
head's queries and keys · V width of its values, or the vocabulary.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
REORDERED = {"reassoc", "contract", "nsz", "arcp"}  # sums in the order that suits vectors; no number is ruled out
LANES = 64
CHUNKS = 16
AT_ONCE = 4
LINE = 16  # numbers that come from memory together


def compiled(signature: Any) -> Callable[[F], F]:
    """Compile for these types now, or take what an earlier process has compiled, where it could be kept."""

    def compile_or_load(function: F) -> F:
        options: dict[str, Any] = {"fastmath": REORDERED, "error_model": "numpy", "nogil": True}
        try:
            kernel: F = njit(signature, cache=True, **options)(function)
        except (OSError, RuntimeError):  # there is no folder to keep it in, or no room
            kernel = njit(signature, **options)(function)
        return kernel

    return compile_or_load


@njit(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    """e^x of a float32 by Cephes' polynomial, to 2 units in the last place: unlike libm's it is done 16 at a time."""
    x = max(x, np.float32(-87.0))
    power = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    rest = x - power * np.float32(0.693359375)
    rest = rest - power * np.float32(-2.12194440e-4)
    sum_ = np.float32(1.9875691500e-4)
    sum_ = sum_ * rest + np.float32(1.3981999507e-3)
    sum_ = sum_ * rest + np.float32(8.3334519073e-3)
    sum_ = sum_ * rest + np.float32(4.1665795894e-2)
    sum_ = sum_ * rest + np.float32(1.6666665459e-1)
    sum_ = sum_ * rest + np.float32(5.0000001201e-1)
    two_to_power = np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (sum_ * rest * rest + rest + np.float32(1.0)) * two_to_power


@intrinsic
def _fetch(_, array, place):  # type: ignore[no-untyped-def]
    """Have the line of memory brought that holds this place of an array, counted as if it had one dimension: by the
    time it is read it is there."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        where = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        builder.call(prefetch, [where, number(0), number(3), number(1)])  # to read; into all caches; data
        return context.get_dummy_value()

    return types.void(array, place), generate


@njit(inline="always")
def _fetch_slot(rows, sentence, slot):  # type: ignore[no-untyped-def]
    """Have a slot of a sentence brought, of keys or values (B, G, S, K)."""
    _, groups, slots, width = rows.shape
    for g in range(groups):
        first = ((sentence * groups + g) * slots + slot) * width
        for place in range(first, first + width, LINE):
            _fetch(rows, place)


@njit(inline="always")
def _fetch_share(key, value, where, counts, sentence, w, width):  # type: ignore[no-untyped-def]
    """Have the w-th of `width` shares brought of what the queries of a sentence see, as `list_allowed` has listed it.

    A share is what one query sees and the one before it does not; where all see the same, a part of that.
    """
    m = w % len(counts)
    size = counts[m] if len(counts) == width else (counts[m] + width - 1) // width
    first = 0 if len(counts) == width else w * size
    for i in range(first, min(first + size, counts[m])):
        if m == 0 or where[m, i] != where[m - 1, i]:
            _fetch_slot(key, sentence, np.int64(where[m, i]))
            _fetch_slot(value, sentence, np.int64(where[m, i]))


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


@njit(inline="always")
def _store(cache, sentence, slot, row, first):  # type: ignore[no-untyped-def]
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
            _store(key, b, slots[b, w], query[b, w], heads * key_dim)
            _store(value, b, slots[b, w], query[b, w], (heads + key.shape[1]) * key_dim)
        for w in range(width):
            m = w % num_lists
            if b + 1 < batch:
                _fetch_share(key, value, where[b + 1], counts[b + 1], b + 1, w, width)
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
                weights[i] = _exp(weights[i])
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


@njit(inline="always")
def _normed(row, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """normed = (x - mean) / sqrt(var + eps) * gain + bias of a row x (D,)."""
    dim = len(row)
    total = np.float32(0.0)
    for d in range(dim):
        total += row[d]
    mean = total / np.float32(dim)
    squares = np.float32(0.0)
    for d in range(dim):
        squares += (row[d] - mean) * (row[d] - mean)
    scale = np.float32(1.0) / np.sqrt(squares / np.float32(dim) + eps)
    for d in range(dim):
        normed[d] = (row[d] - mean) * scale * gain[d] + bias[d]


@compiled("void(f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1])")
def layer_norm(rows, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """normed = (x - mean) / sqrt(var + eps) * gain + bias of each row x of (N, D)."""
    for n in range(len(rows)):
        _normed(rows[n], gain, bias, eps, normed[n])


@compiled("void(f4[:,::1], f4[:,::1], f4[::1], f4[::1], f4, f4[:,::1])")
def add_and_norm(rows, added, gain, bias, eps, normed):  # type: ignore[no-untyped-def]
    """rows += added, and normed = layer_norm(rows), of (N, D)."""
    num_rows, dim = rows.shape
    for n in range(num_rows):
        for d in range(dim):
            rows[n, d] += added[n, d]
        _normed(rows[n], gain, bias, eps, normed[n])


@njit(fastmath=REORDERED, error_model="numpy")
def _largest(row, lanes):  # type: ignore[no-untyped-def]
    """The largest number of a row, by way of one in each of LANES lanes, which are looked at side by side."""
    whole = len(row) // LANES * LANES
    lanes[:] = -np.inf
    for first in range(0, whole, LANES):
        some = row[first : first + LANES]
        for lane in range(LANES):
            lanes[lane] = some[lane] if some[lane] > lanes[lane] else lanes[lane]
    largest = np.float32(-np.inf)
    for lane in range(LANES):
        largest = max(largest, lanes[lane])
    for v in range(whole, len(row)):
        largest = max(largest, row[v])
    return largest


@njit(fastmath=REORDERED, error_model="numpy")
def _normaliser(row, largest):  # type: ignore[no-untyped-def]
    """The log of the sum of e^x over a row of logits, the largest of which is given."""
    total = np.float32(0.0)
    for v in range(len(row)):
        total += _exp(row[v] - largest)
    return np.float32(largest + math.log(total))


@compiled("void(f4[:,::1])")
def log_softmax(logits):  # type: ignore[no-untyped-def]
    """Logits (N, V) -> log-probabilities, in place."""
    lanes = np.empty(LANES, np.float32)
    for n in range(len(logits)):
        row = logits[n]
        normaliser = _normaliser(row, _largest(row, lanes))
        for v in range(len(row)):
            row[v] -= normaliser


@njit(inline="always")
def _insert(values, beams, tokens, value, beam, token):  # type: ignore[no-untyped-def]
    """Put a candidate where it belongs among the best ones, if it does."""
    place = len(values)
    while place > 0 and (
        value > values[place - 1]
        or (
            value == values[place - 1]
            and value > -np.inf
            and (beam < beams[place - 1] or (beam == beams[place - 1] and token < tokens[place - 1]))
        )
    ):
        place -= 1
    if place == len(values):
        return
    for i in range(len(values) - 1, place, -1):
        values[i], beams[i], tokens[i] = values[i - 1], beams[i - 1], tokens[i - 1]
    values[place], beams[place], tokens[place] = value, beam, token


@compiled("void(f4[:,:,::1], i8[::1], f8[:,::1], f8[:,::1], i8[:,::1], i8[:,::1])")
def best_of_logits(logits, never, sums, values, beams, tokens):  # type: ignore[no-untyped-def]
    """The largest of sums (B, W) + log-softmax(logits (B, W, V)) of each sentence into values, beams, tokens (B, k).

    Best first; among equals lowest beam, then lowest token. Value -inf where there are fewer. What is `never` to come
    counts in the softmax, and becomes -inf.
    A row is looked at by the largest of CHUNKS pieces, each so far from the next that all such sets lie side by side.
    """
    batch, width, vocab = logits.shape
    k = values.shape[1]
    num_sets = vocab // CHUNKS
    whole, step = CHUNKS * num_sets, max(1, num_sets)
    largest, lanes = np.empty(num_sets, np.float32), np.empty(LANES, np.float32)
    for b in range(batch):
        values[b] = -np.inf
        beams[b] = 0
        tokens[b] = 0
        for w in range(width):
            row, total = logits[b, w], sums[b, w]
            if not total > -np.inf:
                continue
            largest[:] = row[:num_sets]
            for first in range(num_sets, whole, step):
                chunk = row[first : first + num_sets]
                for j in range(num_sets):
                    largest[j] = chunk[j] if chunk[j] > largest[j] else largest[j]
            normaliser = _normaliser(row, max(_largest(largest, lanes), _largest(row[whole:], lanes)))
            for token in never:
                row[token] = -np.inf
            for j in range(num_sets):
                if total + (largest[j] - normaliser) >= values[b, k - 1]:
                    for token in range(j, whole, step):
                        value = total + (row[token] - normaliser)
                        if value >= values[b, k - 1]:
                            _insert(values[b], beams[b], tokens[b], value, w, token)
            for token in range(whole, vocab):
                value = total + (row[token] - normaliser)
                if value >= values[b, k - 1]:
                    _insert(values[b], beams[b], tokens[b], value, w, token)


@compiled("void(f4[:,:,:,::1], f4[:,:,::1], i8[:,::1])")
def write(cache, rows, slots):  # type: ignore[no-untyped-def]
    """Put rows (B, W, G K) into their slots (B, W) of a cache (B, G, S, K)."""
    batch, width = slots.shape
    for b in range(batch):
        for w in range(width):
            _store(cache, b, slots[b, w], rows[b, w], 0)
