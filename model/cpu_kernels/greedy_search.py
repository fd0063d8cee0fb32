"""Greedy search of one sentence, from source ids to target ids, in compiled loops over plain arrays.

`model/fused/greedy_search.py` gives them the weights of a model.

Legend: L layers · N rows · S source pieces · T most target pieces · D width · F feed-forward width · H heads · G heads
of keys and values · K width of a head's queries and keys · V width of its values, or the vocabulary · M most positions.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from tfm.model.cpu_kernels.decode_attention import attend, store_row
from tfm.model.cpu_kernels.jit import UNROLL_FACTOR, compile_function, helper_jit
from tfm.model.cpu_kernels.layer_norm import layer_norm
from tfm.model.cpu_kernels.rotary import rotate_heads
from tfm.model.cpu_kernels.softmax import BLOCK_SIZE, log_sum_exp
from tfm.model.cpu_kernels.vectors import LANES

Array = Any


class Linears(NamedTuple):
    """y = W x + b of each layer: weight (L, out, in), bias (L, out)."""

    weight: Array
    bias: Array


class Norms(NamedTuple):
    """(x - mean) / sqrt(var + eps) * g + b of each layer: gain and bias (L, D)."""

    gain: Array
    bias: Array


class Attention(NamedTuple):
    """projection D -> H K, and in self-attention + G K + G V; output H V -> D; norm: that of its residual."""

    projection: Linears
    output: Linears
    norm: Norms


class FeedForward(NamedTuple):
    """inner D -> F; outer F -> D; norm: that of its residual."""

    inner: Linears
    outer: Linears
    norm: Norms


class Settings(NamedTuple):
    """heads: H, G, K, V. scale: of embeddings. is_pre_norm: whether norms stand before sublayers, or after."""

    heads: tuple[int, int, int, int]
    scale: float
    eps: float
    is_pre_norm: bool


class Stack(NamedTuple):
    """An encoder, or a decoder but for its cross-attention.

    table (V, D), positions (M, D): what is looked up and added. turns (M, K / 2, 2): how queries and keys of a position
    are turned, see `rotary.py`. final_norm: that the stack ends with, if pre-norm.
    """

    table: Array
    positions: Array
    turns: Array
    attention: Attention
    feed_forward: FeedForward
    final_norm: Norms
    settings: Settings


F2, F3, F5 = (types.Array(types.float32, dims, "C") for dims in (2, 3, 5))
IDS_TYPE, INT_TYPE, REAL_TYPE = types.Array(types.int64, 1, "C"), types.int64, types.float64
HEADS_TYPE, SPECIAL_TYPE = types.UniTuple(INT_TYPE, 4), types.UniTuple(INT_TYPE, 3)
LINEARS_TYPE, NORMS_TYPE = types.NamedTuple([F3, F2], Linears), types.NamedUniTuple(F2, 2, Norms)
ATTENTION_TYPE, FEED_FORWARD_TYPE = (
    types.NamedTuple([LINEARS_TYPE, LINEARS_TYPE, NORMS_TYPE], each) for each in (Attention, FeedForward)
)
SETTINGS_TYPE = types.NamedTuple([HEADS_TYPE, REAL_TYPE, REAL_TYPE, types.boolean], Settings)
STACK_TYPE = types.NamedTuple([F2, F2, F3, ATTENTION_TYPE, FEED_FORWARD_TYPE, NORMS_TYPE, SETTINGS_TYPE], Stack)
ENCODE_SIGNATURE: Any = (STACK_TYPE, LINEARS_TYPE, HEADS_TYPE, IDS_TYPE)
GREEDY_SIGNATURE: Any = (STACK_TYPE, ATTENTION_TYPE, F2, F5, F5, SPECIAL_TYPE, INT_TYPE, INT_TYPE, IDS_TYPE)


@helper_jit
def _apply_linear(linears, layer, x):  # type: ignore[no-untyped-def]
    """W x + b of each row: (N, in) -> (N, out)."""
    weight, bias = linears.weight[layer], linears.bias[layer]
    y, whole = np.empty((len(x), len(bias)), np.float32), len(x) // UNROLL_FACTOR * UNROLL_FACTOR
    for o in range(len(bias)):
        for n in range(0, whole, UNROLL_FACTOR):
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


@helper_jit
def _apply_norm(settings, norms, layer, x):  # type: ignore[no-untyped-def]
    """Layer norm of each row (N, D)."""
    y = np.empty_like(x)
    layer_norm(x, norms.gain[layer], norms.bias[layer], np.float32(settings.eps), y)
    return y


@helper_jit
def _pre_norm(settings, norms, layer, x):  # type: ignore[no-untyped-def]
    """Return the input of a sublayer, or the output of the stack: norm(x), or x."""
    return _apply_norm(settings, norms, layer, x) if settings.is_pre_norm else x


@helper_jit
def _post_norm(settings, norms, layer, x):  # type: ignore[no-untyped-def]
    """Return the output of a residual: x, or norm(x)."""
    return x if settings.is_pre_norm else _apply_norm(settings, norms, layer, x)


@helper_jit
def _add_rows(x, added):  # type: ignore[no-untyped-def]
    """Return x + added, rows (N, D)."""
    y, (rows, width) = np.empty_like(x), x.shape
    for n in range(rows):
        for i in range(width):
            y[n, i] = x[n, i] + added[n, i]
    return y


@helper_jit
def _embed_ids(table, positions, scale, ids, first):  # type: ignore[no-untyped-def]
    """Return embedding * scale + position, of rows from position `first` on: ids (N,) -> (N, D)."""
    rows, width, x = len(ids), table.shape[1], np.empty((len(ids), table.shape[1]), np.float32)
    for n in range(rows):
        for i in range(width):
            x[n, i] = table[ids[n], i] * np.float32(scale) + positions[first + n, i]
    return x


@helper_jit
def _empty_caches(layers, heads, room):  # type: ignore[no-untyped-def]
    """Return keys (L, 1, G, room, K) and values (L, 1, G, room, V), to be filled."""
    _, groups, key_dim, value_dim = heads
    keys = np.empty((layers, 1, groups, room, key_dim), np.float32)
    return keys, np.empty((layers, 1, groups, room, value_dim), np.float32)


@helper_jit
def _first_slots(count, room):  # type: ignore[no-untyped-def]
    """The first `count` of `room` slots, as `list_allowed` lists them for one sentence whose queries see the same."""
    where, counts = np.zeros((1, 1, room + UNROLL_FACTOR), np.uint64), np.empty((1, 1), np.int64)
    for s in range(count):
        where[0, 0, s] = s
    counts[0, 0] = count
    return where, counts


@helper_jit
def _attention(settings, attention, layer, x, projected, key, value, slots, seen):  # type: ignore[no-untyped-def]
    """Return x + W softmax(q K^T / sqrt(K)) V, normed if norms stand after.

    projected (N, H K or more): queries, and where there are slots (1, N) the keys and values that go there.
    """
    (heads, _, key_dim, value_dim), rows = settings.heads, len(x)
    mixed = np.empty((1, rows, heads, value_dim), np.float32)
    query, scale = projected.reshape((1, rows, projected.shape[1])), np.float32(1.0 / math.sqrt(key_dim))
    attend(query, key, value, slots, seen[0], seen[1], scale, mixed)
    added = _apply_linear(attention.output, layer, mixed.reshape((rows, heads * value_dim)))
    return _post_norm(settings, attention.norm, layer, _add_rows(x, added))


@helper_jit
def _self_attention(settings, attention, turns, layer, x, key, value, slots, seen):  # type: ignore[no-untyped-def]
    """Put the keys and values of rows x (N, D) into slots (1, N) of key (1, G, S, K) and value, and attend to those
    that are seen. turns (N, K / 2, 2): those of their positions.
    """
    projected = _apply_linear(attention.projection, layer, _pre_norm(settings, attention.norm, layer, x))
    rotate_heads(projected, turns, settings.heads[0] + settings.heads[1])
    return _attention(settings, attention, layer, x, projected, key, value, slots, seen)


@helper_jit
def _cross_attention(settings, attention, layer, x, key, value, seen):  # type: ignore[no-untyped-def]
    """Attend from rows x (N, D) to the memory's key (1, G, S, K) and value (1, G, S, V)."""
    query = _apply_linear(attention.projection, layer, _pre_norm(settings, attention.norm, layer, x))
    return _attention(settings, attention, layer, x, query, key, value, np.empty((1, 0), np.int64), seen)


@helper_jit
def _feed_forward(settings, feed_forward, layer, x):  # type: ignore[no-untyped-def]
    """Return x + W2 max(0, W1 x + b1) + b2 of each row (N, D), normed if norms stand after."""
    hidden = _apply_linear(feed_forward.inner, layer, _pre_norm(settings, feed_forward.norm, layer, x))
    for n in range(len(hidden)):
        for i in range(hidden.shape[1]):
            hidden[n, i] = max(hidden[n, i], np.float32(0.0))
    return _post_norm(
        settings, feed_forward.norm, layer, _add_rows(x, _apply_linear(feed_forward.outer, layer, hidden))
    )


@compile_function(ENCODE_SIGNATURE)
def encode_source(encoder, key_value, heads, source):  # type: ignore[no-untyped-def]
    """Return the memory of a source for a decoder of these heads.

    Args:
        encoder: the weights of the encoder.
        key_value: the decoder's projections of the memory, D -> G K + G V.
        heads: numbers and widths of the decoder's heads: H, G, K, V.
        source: ids (S,).

    Returns:
        Keys (L, 1, G, S, K) and values (L, 1, G, S, V).
    """
    settings, rows = encoder.settings, len(source)
    x = _embed_ids(encoder.table, encoder.positions, settings.scale, source, 0)
    own_keys, own_values = _empty_caches(1, settings.heads, rows)  # of one layer after the other
    seen, slots, turns = _first_slots(rows, rows), np.empty((1, rows), np.int64), encoder.turns[:rows]
    for n in range(rows):
        slots[0, n] = n
    for layer in range(len(encoder.feed_forward.inner.bias)):
        x = _self_attention(settings, encoder.attention, turns, layer, x, own_keys[0], own_values[0], slots, seen)
        x = _feed_forward(settings, encoder.feed_forward, layer, x)
    x = _pre_norm(settings, encoder.final_norm, 0, x)
    (_, groups, key_dim, _), (keys, values) = heads, _empty_caches(len(key_value.bias), heads, rows)
    for layer in range(len(keys)):
        both = _apply_linear(key_value, layer, x)
        for n in range(rows):
            store_row(keys[layer], 0, n, both[n], 0)
            store_row(values[layer], 0, n, both[n], groups * key_dim)
    return keys, values


@compile_function(GREEDY_SIGNATURE)
def search_greedily(decoder, cross, output, memory_keys, memory_values, special, shortest, longest, ids):  # type: ignore[no-untyped-def]
    """Append the likeliest piece until it is the end token, and write the pieces to `ids`.

    Args:
        decoder: the weights of the decoder.
        cross: the weights of its cross-attention.
        output: (V, D), the weight of the output layer.
        memory_keys: (L, 1, G, S, K).
        memory_values: (L, 1, G, S, V).
        special: padding, begin and end token; the first two never come.
        shortest: number of pieces before which the end token cannot come.
        longest: number of pieces after which nothing but the end token can come.
        ids: (longest + 1,), written.

    Returns:
        The number of pieces, and the sum of their log-probabilities.
    """
    settings, (padding, begin, end) = decoder.settings, special
    layers, vocab, dim, room = len(memory_keys), len(output), output.shape[1], longest + 1
    keys, values = _empty_caches(layers, settings.heads, room)
    memory_seen, seen = _first_slots(memory_keys.shape[3], memory_keys.shape[3]), _first_slots(0, room)
    slots, logits = np.empty((1, 1), np.int64), np.empty(vocab, np.float32)
    last, log_prob, maxima = np.empty(1, np.int64), 0.0, np.empty((vocab // BLOCK_SIZE + 1, LANES), np.float32)
    last[0] = begin
    for t in range(longest + 1):
        x = _embed_ids(decoder.table, decoder.positions, settings.scale, last, t)
        slots[0, 0] = seen[0][0, 0, t] = t
        seen[1][0, 0], turns = t + 1, decoder.turns[t : t + 1]
        for layer in range(layers):
            x = _self_attention(settings, decoder.attention, turns, layer, x, keys[layer], values[layer], slots, seen)
            x = _cross_attention(settings, cross, layer, x, memory_keys[layer], memory_values[layer], memory_seen)
            x = _feed_forward(settings, decoder.feed_forward, layer, x)
        x = _pre_norm(settings, decoder.final_norm, 0, x)
        best, token = np.float32(-np.inf), end
        for v in range(vocab):
            logit = np.float32(0.0)
            for i in range(dim):
                logit += output[v, i] * x[0, i]
            logits[v] = logit
            if logit > best and v != padding and v != begin and (v != end or t >= shortest):
                best, token = logit, v
        if t >= longest:
            token = end
        largest, rest = log_sum_exp(logits, 0, vocab, maxima)
        log_prob += np.float64(logits[token]) - np.float64(largest) - rest
        ids[t] = last[0] = token
        if token == end:
            break
    return t + 1, log_prob
