"""Texts of a decoder-only language model, piece by piece, in a compiled loop over plain arrays.

`model/fused/text_generation.py` gives it the weights of a model. A text does not depend on those beside it: its sums
are added up in the same order in any number of texts.

Legend: L layers · N texts · T pieces of a text · S slots of the cache · D width · H heads · G heads of keys and values
· K width of a head's queries and keys · V width of its values, or the vocabulary.
"""

import math
from typing import Any

import numpy as np
from numba import types

from tfm.model.cpu_kernels.decode_attention import attend
from tfm.model.cpu_kernels.jit import UNROLL_FACTOR, compile_function, helper_jit, inline_jit
from tfm.model.cpu_kernels.softmax import BLOCK_SIZE, ZERO, log_sum_exp
from tfm.model.cpu_kernels.transformer_layers import (
    FLOAT32_2D,
    FLOAT32_5D,
    FLOAT_TYPE,
    INT_TYPE,
    SPECIAL_IDS_TYPE,
    STACK_TYPE,
    activate,
    add_rows,
    embed_ids,
    post_norm,
    pre_norm,
    rotate_heads,
)
from tfm.model.cpu_kernels.vectors import LANES, load, splat, store_hsums

LENGTH_LIMITS_TYPE = types.UniTuple(INT_TYPE, 4)
CONTINUE_TEXTS_SIGNATURE: Any = (
    *(
        STACK_TYPE,
        FLOAT32_2D,
        FLOAT32_5D,
        FLOAT32_5D,
        types.Array(types.int64, 2, "C"),
        SPECIAL_IDS_TYPE,
        LENGTH_LIMITS_TYPE,
    ),
    *(types.Array(types.float64, 2, "C"), INT_TYPE, types.UniTuple(FLOAT_TYPE, 2), types.Array(types.float32, 2, "C")),
)


@inline_jit
def _multiply_add(sum_, weight, i, rows, j):  # type: ignore[no-untyped-def]
    """Return a vector + the products of LANES numbers of a weight from place i on, and of rows from place j on."""
    return sum_ + load(weight, i) * load(rows, j)


@helper_jit
def _matmul(weight, first, bias, rows, result):  # type: ignore[no-untyped-def]
    """Set result = W x + b of each row, each sum in the same order however many rows there are.

    Args:
        weight: an array that holds W (out, in) from place `first` on; `in` is a multiple of LANES.
        first: place of W.
        bias: b (out,).
        rows: (N, in).
        result: (N, out), written; `out` is a multiple of UNROLL_FACTOR.
    """
    (num_rows, num_outputs), num_inputs = result.shape, rows.shape[1]
    unrolled_end, sums = num_rows // UNROLL_FACTOR * UNROLL_FACTOR, np.empty(UNROLL_FACTOR, np.float32)
    for o in range(num_outputs):
        w = first + o * num_inputs
        for n in range(0, unrolled_end, UNROLL_FACTOR):
            r = n * num_inputs
            y0 = y1 = y2 = y3 = splat(ZERO)
            for i in range(0, num_inputs, LANES):
                y0 = _multiply_add(y0, weight, w + i, rows, r + i)
                y1 = _multiply_add(y1, weight, w + i, rows, r + num_inputs + i)
                y2 = _multiply_add(y2, weight, w + i, rows, r + 2 * num_inputs + i)
                y3 = _multiply_add(y3, weight, w + i, rows, r + 3 * num_inputs + i)
            store_hsums(sums, 0, y0, y1, y2, y3)
            for k in range(UNROLL_FACTOR):
                result[n + k, o] = sums[k] + bias[o]
    for n in range(unrolled_end, num_rows):
        r = n * num_inputs
        for o in range(0, num_outputs, UNROLL_FACTOR):
            w = first + o * num_inputs
            y0 = y1 = y2 = y3 = splat(ZERO)
            for i in range(0, num_inputs, LANES):
                y0 = _multiply_add(y0, weight, w + i, rows, r + i)
                y1 = _multiply_add(y1, weight, w + num_inputs + i, rows, r + i)
                y2 = _multiply_add(y2, weight, w + 2 * num_inputs + i, rows, r + i)
                y3 = _multiply_add(y3, weight, w + 3 * num_inputs + i, rows, r + i)
            store_hsums(sums, 0, y0, y1, y2, y3)
            for k in range(UNROLL_FACTOR):
                result[n, o + k] = sums[k] + bias[o + k]


@helper_jit
def _apply_linear(linears, layer, rows):  # type: ignore[no-untyped-def]
    """W x + b of each row: (N, in) -> (N, out)."""
    _, num_outputs, num_inputs = linears.weight.shape
    result = np.empty((len(rows), num_outputs), np.float32)
    _matmul(linears.weight, layer * num_outputs * num_inputs, linears.bias[layer], rows, result)
    return result


@helper_jit
def _attend_to_text(settings, attention, cos_sin, layer, x, key, value, slots, key_indices, counts):  # type: ignore[no-untyped-def]
    """Put the keys and values of rows x (N, D) into slots (N, 1) of key (N, G, S, K) and value, and attend from each
    row to those of its text; return x + the output, normed if norms stand after.
    """
    (heads, groups, key_dim, value_dim), rows = settings.head_shapes, len(x)
    projected = _apply_linear(attention.projection, layer, pre_norm(settings, attention.norm, layer, x))
    rotate_heads(projected, cos_sin, heads + groups)
    mixed, scale = np.empty((rows, 1, heads, value_dim), np.float32), np.float32(1.0 / math.sqrt(key_dim))
    attend(projected.reshape((rows, 1, projected.shape[1])), key, value, slots, key_indices, counts, scale, mixed)
    added = _apply_linear(attention.output, layer, mixed.reshape((rows, heads * value_dim)))
    return post_norm(settings, attention.norm, layer, add_rows(x, added))


@helper_jit
def _feed_forward(settings, feed_forward, layer, x):  # type: ignore[no-untyped-def]
    """Return x + W2 f(W1 x + b1) + b2 of each row (N, D), normed if norms stand after; f: the activation."""
    hidden = _apply_linear(feed_forward.inner, layer, pre_norm(settings, feed_forward.norm, layer, x))
    activate(hidden, settings.activation)
    return post_norm(settings, feed_forward.norm, layer, add_rows(x, _apply_linear(feed_forward.outer, layer, hidden)))


@helper_jit
def _sample_token(log_probs, uniform, temperature, cumulative_weights):  # type: ignore[no-untyped-def]
    """Return the piece on which a uniform number falls, where pieces lie side by side by their probabilities.

    Args:
        log_probs: (V,), -inf for pieces that may not come.
        uniform: number in [0, 1).
        temperature: T.
        cumulative_weights: (V,) float64, written.
    """
    largest, total = np.float64(log_probs.max()), 0.0
    for v in range(len(log_probs)):
        total += math.exp((np.float64(log_probs[v]) - largest) / temperature)
        cumulative_weights[v] = total
    threshold = min(uniform * total, np.nextafter(total, 0.0))
    for v in range(len(log_probs)):
        if cumulative_weights[v] > threshold:
            return v
    return len(log_probs) - 1


@helper_jit
def _sample_token_top_k_top_p(log_probs, uniform, num_best, temperature, top_p, cumulative_weights):  # type: ignore[no-untyped-def]
    """Return the piece on which a uniform number falls, where the best pieces lie side by side, best first.

    Args:
        log_probs: (V,), -inf for pieces that may not come.
        uniform: number in [0, 1).
        num_best: the number of pieces to draw from.
        temperature: T.
        top_p: probability of the pieces to draw from.
        cumulative_weights: (V,) float64, written.
    """
    order = np.argsort(-log_probs, kind="mergesort")[:num_best]  # among equals the lowest first
    largest, total_weight, top_p_weight = np.float64(log_probs[order[0]]), 0.0, 0.0
    for i in range(len(order)):
        total_weight += math.exp((np.float64(log_probs[order[i]]) - largest) / temperature)
        cumulative_weights[i] = total_weight
    for i in range(len(order)):
        weight = math.exp((np.float64(log_probs[order[i]]) - largest) / temperature)
        if cumulative_weights[i] - weight < top_p * total_weight:
            top_p_weight += weight
        cumulative_weights[i] = top_p_weight
    drawn_weight = min(uniform * top_p_weight, np.nextafter(top_p_weight, 0.0))
    for i in range(len(order)):
        if cumulative_weights[i] > drawn_weight:
            return order[i]
    return order[-1]


@compile_function(CONTINUE_TEXTS_SIGNATURE)
def continue_texts(  # type: ignore[no-untyped-def]
    decoder,
    output,
    keys,
    values,
    pieces,
    pad_bos_eos_ids,
    length_limits,
    uniform,
    num_best,
    temperature_top_p,
    log_probs_out,
):
    """Read the pieces of texts, and append pieces to them.

    Args:
        decoder: the weights of the stack.
        output: (V, D), the weight of the output layer, rows of zeros behind the vocabulary up to a multiple of
            UNROLL_FACTOR.
        keys: (L, N, G, S, K), written: the keys of the pieces that are read.
        values: (L, N, G, S, V), written: their values.
        pieces: (N, T), written: new pieces behind those that are given.
        pad_bos_eos_ids: padding, begin and end token; the first two never come.
        length_limits: the number of pieces that have been read; the number given, at least one more; how many new
            pieces must come before the end token can; and after how many nothing but the end token can come.
        uniform: (N, count), the numbers that decide, one for each piece to append now.
        num_best: how many of the best pieces are drawn from: 1, the likeliest; 0, all, in the order of their ids.
        temperature_top_p: temperature, and the probability of the pieces to draw from (top-p).
        log_probs_out: (N, count), written: the log-probabilities of the pieces.
    """
    settings, (padding, begin, end), (num_read, num_given, shortest, longest) = (
        decoder.settings,
        pad_bos_eos_ids,
        length_limits,
    )
    temperature, top_p = temperature_top_p
    (num_texts, count), layers, capacity = uniform.shape, len(keys), keys.shape[3]
    vocab, width = len(decoder.table), len(output)
    logits, no_bias = np.empty((num_texts, width), np.float32), np.zeros(width, np.float32)
    maxima, sums = np.empty((vocab // BLOCK_SIZE + 1, LANES), np.float32), np.empty(vocab, np.float64)
    slots, tokens = np.empty((num_texts, 1), np.int64), np.empty(num_texts, np.int64)
    key_indices, counts = (
        np.zeros((num_texts, 1, capacity + UNROLL_FACTOR), np.uint64),
        np.empty((num_texts, 1), np.int64),
    )
    pairs = decoder.cos_sin.shape[1]
    cos_sin = np.empty((num_texts, pairs, 2), np.float32)
    for n in range(num_texts):
        for s in range(capacity):
            key_indices[n, 0, s] = s
    num_new = max(num_read + 1 - num_given, 0)  # pieces that were appended before
    first = num_given - 1 + num_new
    for position in range(num_read, first + count):
        x = np.empty((num_texts, decoder.table.shape[1]), np.float32)
        for n in range(num_texts):
            tokens[n], slots[n, 0], counts[n, 0] = pieces[n, position], position, position + 1
            x[n] = embed_ids(decoder.table, decoder.positions, settings.embedding_scale, tokens[n : n + 1], position)[0]
            for i in range(pairs):
                cos_sin[n, i, 0], cos_sin[n, i, 1] = decoder.cos_sin[position, i, 0], decoder.cos_sin[position, i, 1]
        for layer in range(layers):
            x = _attend_to_text(
                settings, decoder.attention, cos_sin, layer, x, keys[layer], values[layer], slots, key_indices, counts
            )
            x = _feed_forward(settings, decoder.feed_forward, layer, x)
        if position < first:  # the next piece is given
            continue
        _matmul(output, 0, no_bias, pre_norm(settings, decoder.final_norm, 0, x), logits)
        step = position - first
        for n in range(num_texts):
            row = logits[n, :vocab]
            largest, rest = log_sum_exp(logits, n * width, vocab, maxima)
            for v in range(vocab):
                row[v] = np.float32(np.float64(row[v]) - np.float64(largest) - rest)
            end_log_prob = row[end]
            row[padding] = row[begin] = -np.inf
            if num_new + step < shortest:
                row[end] = -np.inf
            if num_new + step >= longest:
                row[:] = -np.inf
                row[end] = end_log_prob
            if num_best == 1:
                token = row.argmax()
            elif num_best == 0:
                token = _sample_token(row, uniform[n, step], temperature, sums)
            else:
                token = _sample_token_top_k_top_p(row, uniform[n, step], num_best, temperature, top_p, sums)
            log_probs_out[n, step], pieces[n, position + 1] = row[token], token
