"""One sentence from its ids to those that greedy search finds, by compiled loops over plain arrays: see `alone.py`.

Legend: L layers · N rows · S source pieces · T pieces so far · D width · F feed-forward width · H heads · G heads of
keys and values · K width of a head's queries and keys · V width of its values, or the vocabulary · M most positions.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types

from tfm.model.cpu_kernels.jit import REORDERED, compiled, exp

Array = Any


class Maps(NamedTuple):
    """y = W x + b of each layer: weight (L, out, in), bias (L, out)."""

    weight: Array
    bias: Array


class Norms(NamedTuple):
    """(x - mean) / sqrt(var + eps) * g + b of each layer: gain and shift (L, D)."""

    gain: Array
    shift: Array


class Attention(NamedTuple):
    """projection D -> H K, and in self-attention + G K + G V; mixed H V -> D; around: the norm of its residual."""

    projection: Maps
    mixed: Maps
    around: Norms


class FeedForward(NamedTuple):
    """inner D -> F; outer F -> D; around: the norm of its residual."""

    inner: Maps
    outer: Maps
    around: Norms


class How(NamedTuple):
    """heads: H, G, K, V. scale: of embeddings. is_before: whether norms stand before sublayers, or after."""

    heads: tuple[int, int, int, int]
    scale: float
    eps: float
    is_before: bool


class Stack(NamedTuple):
    """An encoder, or a decoder but for its cross-attention.

    table (V, D), positions (M, D): what is looked up and added. last: the norm it ends with, where norms stand before.
    """

    table: Array
    positions: Array
    attention: Attention
    feed_forward: FeedForward
    last: Norms
    how: How


F2, F3 = types.Array(types.float32, 2, "C"), types.Array(types.float32, 3, "C")
IDS, INT, REAL = types.Array(types.int64, 1, "C"), types.int64, types.float64
HEADS, SPECIAL = types.UniTuple(INT, 4), types.UniTuple(INT, 3)
MAPS, NORMS = types.NamedTuple([F3, F2], Maps), types.NamedUniTuple(F2, 2, Norms)
ATTENTION, FEED_FORWARD = (types.NamedTuple([MAPS, MAPS, NORMS], each) for each in (Attention, FeedForward))
HOW = types.NamedTuple([HEADS, REAL, REAL, types.boolean], How)
STACK = types.NamedTuple([F2, F2, ATTENTION, FEED_FORWARD, NORMS, HOW], Stack)
ENCODE: Any = (STACK, MAPS, HEADS, IDS)
GREEDY: Any = (STACK, ATTENTION, F2, F3, F3, SPECIAL, INT, INT, IDS)
AT_ONCE = 4

helper = njit(fastmath=REORDERED, error_model="numpy")


@helper
def _product(maps, layer, x):  # type: ignore[no-untyped-def]
    """W x + b of each row: (N, in) -> (N, out)."""
    weight, bias = maps.weight[layer], maps.bias[layer]
    y, whole = np.empty((len(x), len(bias)), np.float32), len(x) // AT_ONCE * AT_ONCE
    for o in range(len(bias)):
        for n in range(0, whole, AT_ONCE):
            y0 = y1 = y2 = y3 = np.float32(0.0)
            for i in range(weight.shape[1]):
                w = weight[o, i]
                y0 += w * x[n, i]
                y1 += w * x[n + 1, i]
                y2 += w * x[n + 2, i]
                y3 += w * x[n + 3, i]
            y[n, o], y[n + 1, o], y[n + 2, o], y[n + 3, o] = y0 + bias[o], y1 + bias[o], y2 + bias[o], y3 + bias[o]
        for n in range(whole, len(x)):
            total = np.float32(0.0)
            for i in range(weight.shape[1]):
                total += weight[o, i] * x[n, i]
            y[n, o] = total + bias[o]
    return y


@helper
def _normed(norms, layer, eps, x):  # type: ignore[no-untyped-def]
    """(x - mean) / sqrt(var + eps) * g + b of each row (N, D)."""
    gain, shift, y, (rows, width) = norms.gain[layer], norms.shift[layer], np.empty_like(x), x.shape
    for n in range(rows):
        mean = variance = np.float32(0.0)
        for i in range(width):
            mean += x[n, i]
        mean /= np.float32(width)
        for i in range(width):
            variance += (x[n, i] - mean) * (x[n, i] - mean)
        share = np.float32(1.0 / math.sqrt(variance / width + eps))
        for i in range(width):
            y[n, i] = (x[n, i] - mean) * share * gain[i] + shift[i]
    return y


@helper
def _entering(how, norms, layer, x):  # type: ignore[no-untyped-def]
    """What enters a sublayer, or leaves the stack: norm(x), or x."""
    return _normed(norms, layer, how.eps, x) if how.is_before else x


@helper
def _leaving(how, norms, layer, x):  # type: ignore[no-untyped-def]
    """What leaves a residual: x, or norm(x)."""
    return x if how.is_before else _normed(norms, layer, how.eps, x)


@helper
def _sum(x, added):  # type: ignore[no-untyped-def]
    """x + added, rows (N, D)."""
    y, (rows, width) = np.empty_like(x), x.shape
    for n in range(rows):
        for i in range(width):
            y[n, i] = x[n, i] + added[n, i]
    return y


@helper
def _attend(heads, query, key, value, count):  # type: ignore[no-untyped-def]
    """softmax(q K^T / sqrt(K)) V of each row of queries (N, >= H K), over the first `count` keys (T, G K) and values
    (T, G V) -> (N, H V)."""
    number, groups, width, value_width = heads
    mixed, weights = np.zeros((len(query), number * value_width), np.float32), np.empty(number * count, np.float32)
    scale = np.float32(1.0 / math.sqrt(width))
    for n in range(len(query)):
        for h in range(number):
            q, k, largest = h * width, h * groups // number * width, np.float32(-np.inf)
            for s in range(count):
                total = np.float32(0.0)
                for i in range(width):
                    total += query[n, q + i] * key[s, k + i]
                weights[h * count + s] = total * scale
                largest = max(largest, total * scale)
            for s in range(h * count, (h + 1) * count):
                weights[s] -= largest
        for s in range(number * count):
            weights[s] = exp(weights[s])
        for h in range(number):
            m, v, total = h * value_width, h * groups // number * value_width, np.float32(0.0)
            for s in range(h * count, (h + 1) * count):
                total += weights[s]
            for s in range(count):
                share = weights[h * count + s] / total
                for i in range(value_width):
                    mixed[n, m + i] += share * value[s, v + i]
    return mixed


@helper
def _embed(table, positions, scale, ids, first):  # type: ignore[no-untyped-def]
    """embedding * scale + position, of rows from position `first` on: ids (N,) -> (N, D)."""
    rows, width, x = len(ids), table.shape[1], np.empty((len(ids), table.shape[1]), np.float32)
    for n in range(rows):
        for i in range(width):
            x[n, i] = table[ids[n], i] * np.float32(scale) + positions[first + n, i]
    return x


@helper
def _keep(projected, begin, cache, first):  # type: ignore[no-untyped-def]
    """Put the keys or values in columns `begin`, .. of rows (N, ..) into places `first`, .. of a cache (T, G K)."""
    for n in range(len(projected)):
        for i in range(cache.shape[1]):
            cache[first + n, i] = projected[n, begin + i]


@helper
def _attention(how, attention, layer, x, query, key, value, count):  # type: ignore[no-untyped-def]
    """x + W softmax(q K^T / sqrt(K)) V, normed if norms stand after."""
    mixed = _attend(how.heads, query, key, value, count)
    return _leaving(how, attention.around, layer, _sum(x, _product(attention.mixed, layer, mixed)))


@helper
def _self_attention(how, attention, layer, x, first, key, value):  # type: ignore[no-untyped-def]
    """Rows x (N, D) attend to one another and to the `first` rows before, whose keys (T, G K) and values are kept."""
    number, groups, width, _ = how.heads
    projected = _product(attention.projection, layer, _entering(how, attention.around, layer, x))
    _keep(projected, number * width, key, first)
    _keep(projected, (number + groups) * width, value, first)
    return _attention(how, attention, layer, x, projected, key, value, first + len(x))


@helper
def _memory_attention(how, attention, layer, x, key, value):  # type: ignore[no-untyped-def]
    """Rows x (N, D) attend to the memory's keys (S, G K) and values (S, G V)."""
    query = _product(attention.projection, layer, _entering(how, attention.around, layer, x))
    return _attention(how, attention, layer, x, query, key, value, len(key))


@helper
def _feed_forward(how, feed_forward, layer, x):  # type: ignore[no-untyped-def]
    """x + W2 max(0, W1 x + b1) + b2 of each row (N, D), normed if norms stand after."""
    hidden = _product(feed_forward.inner, layer, _entering(how, feed_forward.around, layer, x))
    for n in range(len(hidden)):
        for i in range(hidden.shape[1]):
            hidden[n, i] = max(hidden[n, i], np.float32(0.0))
    return _leaving(how, feed_forward.around, layer, _sum(x, _product(feed_forward.outer, layer, hidden)))


@compiled(ENCODE)
def encode(encoder, key_value, heads, source):  # type: ignore[no-untyped-def]
    """Source ids (S,) -> keys (L, S, G K) and values (L, S, G V) of the memory, in a decoder of these heads.

    key_value: their maps, of the encoder's D.
    """
    how, rows, layers = encoder.how, len(source), len(key_value.bias)
    (_, groups, width, value_width), (_, its_groups, its_width, its_value_width) = how.heads, heads
    x = _embed(encoder.table, encoder.positions, how.scale, source, 0)
    key, value = np.empty((rows, groups * width), np.float32), np.empty((rows, groups * value_width), np.float32)
    for layer in range(len(encoder.feed_forward.inner.bias)):
        x = _self_attention(how, encoder.attention, layer, x, 0, key, value)
        x = _feed_forward(how, encoder.feed_forward, layer, x)
    x = _entering(how, encoder.last, 0, x)
    keys = np.empty((layers, rows, its_groups * its_width), np.float32)
    values = np.empty((layers, rows, its_groups * its_value_width), np.float32)
    for layer in range(layers):
        both = _product(key_value, layer, x)
        _keep(both, 0, keys[layer], 0)
        _keep(both, its_groups * its_width, values[layer], 0)
    return keys, values


@compiled(GREEDY)
def greedy(decoder, memory, output, memory_keys, memory_values, special, shortest, longest, ids):  # type: ignore[no-untyped-def]
    """The likeliest piece, then the likeliest after it, until the end token -> how many, the sum of log-probabilities.

    They are written to ids (longest + 1,). output (V, D). special: padding, begin and end token; the first two never
    come, the last not before `shortest` pieces, and nothing else after `longest`.
    """
    how, (padding, begin, end), (_, groups, width, value_width) = decoder.how, special, decoder.how.heads
    layers, vocab, dim = len(memory_keys), len(output), output.shape[1]
    keys = np.empty((layers, longest + 1, groups * width), np.float32)
    values = np.empty((layers, longest + 1, groups * value_width), np.float32)
    logits, last, log_prob = np.empty(vocab, np.float32), np.empty(1, np.int64), 0.0
    last[0] = begin
    for t in range(longest + 1):
        x = _embed(decoder.table, decoder.positions, how.scale, last, t)
        for layer in range(layers):
            x = _self_attention(how, decoder.attention, layer, x, t, keys[layer], values[layer])
            x = _memory_attention(how, memory, layer, x, memory_keys[layer], memory_values[layer])
            x = _feed_forward(how, decoder.feed_forward, layer, x)
        x = _entering(how, decoder.last, 0, x)
        best, largest, token = np.float32(-np.inf), np.float32(-np.inf), end
        for v in range(vocab):
            logit = np.float32(0.0)
            for i in range(dim):
                logit += output[v, i] * x[0, i]
            logits[v], largest = logit, max(largest, logit)
            if logit > best and v != padding and v != begin and (v != end or t >= shortest):
                best, token = logit, v
        if t >= longest:
            token = end
        total = np.float32(0.0)
        for v in range(vocab):
            total += exp(logits[v] - largest)
        log_prob += np.float64(logits[token]) - np.float64(largest) - math.log(total)
        ids[t] = last[0] = token
        if token == end:
            break
    return t + 1, log_prob
