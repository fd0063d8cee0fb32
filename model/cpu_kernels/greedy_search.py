"""Greedy search, one sentence after another, from source ids to target ids, in compiled loops over plain arrays.

`model/fused/greedy_search.py` gives them the weights of a model.

Legend: L layers · N rows, or sentences · S source pieces · T most target pieces · D width · H heads · G heads of keys
and values · K width of a head's queries and keys · V width of its values, or the vocabulary.
"""

import math
from typing import Any

import numpy as np
from numba import types

from tfm.model.cpu_kernels.decode_attention import attend, store_cache_row
from tfm.model.cpu_kernels.jit import UNROLL_FACTOR, compile_function, helper_jit
from tfm.model.cpu_kernels.softmax import BLOCK_SIZE, ZERO, exp, log_sum_exp
from tfm.model.cpu_kernels.transformer_layers import (
    ATTENTION_TYPE,
    FLOAT32_2D,
    FLOAT32_5D,
    HEADS_TYPE,
    IDS_TYPE,
    INT_TYPE,
    PANELS_STACK_TYPE,
    PANELS_TYPE,
    SPECIAL_IDS_TYPE,
    STACK_TYPE,
    activate,
    add_rows,
    apply_linear,
    embed_ids,
    post_norm,
    pre_norm,
    rotate_heads,
)
from tfm.model.cpu_kernels.vectors import LANES, load_partial, splat, store_partial, vmax

ENCODE_SIGNATURE: Any = (PANELS_STACK_TYPE, PANELS_TYPE, HEADS_TYPE, IDS_TYPE)
GREEDY_SIGNATURE: Any = (
    STACK_TYPE,
    ATTENTION_TYPE,
    FLOAT32_2D,
    IDS_TYPE,
    FLOAT32_5D,
    FLOAT32_5D,
    SPECIAL_IDS_TYPE,
    INT_TYPE,
    INT_TYPE,
    IDS_TYPE,
)
IDS_2D_TYPE, SHORTLIST_TABLE_TYPE, SHORTLIST_IDS_TYPE, REALS_TYPE = (
    types.Array(kind, dims, "C")
    for kind, dims in ((types.int64, 2), (types.int32, 2), (types.int32, 1), (types.float64, 1))
)
SEARCH_TEXTS_SIGNATURE: Any = (
    *(PANELS_STACK_TYPE, PANELS_TYPE, STACK_TYPE, ATTENTION_TYPE, FLOAT32_2D),
    types.Tuple([SHORTLIST_TABLE_TYPE, SHORTLIST_IDS_TYPE]),
    *(IDS_TYPE, IDS_TYPE, SPECIAL_IDS_TYPE, IDS_2D_TYPE, IDS_2D_TYPE, IDS_TYPE, REALS_TYPE),
)


@helper_jit
def allocate_caches(layers, heads, capacity):  # type: ignore[no-untyped-def]
    """Return keys (L, 1, G, room, K) and values (L, 1, G, room, V), to be filled."""
    _, groups, key_dim, value_dim = heads
    keys = np.empty((layers, 1, groups, capacity, key_dim), np.float32)
    return keys, np.empty((layers, 1, groups, capacity, value_dim), np.float32)


@helper_jit
def list_first_slots(num_slots, capacity):  # type: ignore[no-untyped-def]
    """The first `num_slots` of `capacity` slots, listed as by `list_allowed_keys` for one sentence of equal queries."""
    slot_indices, counts = np.zeros((1, 1, capacity + UNROLL_FACTOR), np.uint64), np.empty((1, 1), np.int64)
    for s in range(num_slots):
        slot_indices[0, 0, s] = s
    counts[0, 0] = num_slots
    return slot_indices, counts


@helper_jit
def _attend_and_project(settings, attention, layer, x, projected, key, value, slots, attended_keys):  # type: ignore[no-untyped-def]
    """Return x + W softmax(q K^T / sqrt(K)) V, normed if norms stand after.

    projected (N, H K or more): queries, and where there are slots (1, N) the keys and values that go there.
    """
    (heads, _, key_dim, value_dim), rows = settings.head_shapes, len(x)
    mixed = np.empty((1, rows, heads, value_dim), np.float32)
    query, scale = projected.reshape((1, rows, projected.shape[1])), np.float32(1.0 / math.sqrt(key_dim))
    attend(query, key, value, slots, attended_keys[0], attended_keys[1], scale, mixed)
    added = apply_linear(attention.output, layer, mixed.reshape((rows, heads * value_dim)))
    return post_norm(settings, attention.norm, layer, add_rows(x, added))


@helper_jit
def apply_self_attention(settings, attention, cos_sin, layer, x, key, value, slots, attended_keys):  # type: ignore[no-untyped-def]
    """Put the keys and values of rows x (N, D) into slots (1, N) of key (1, G, S, K) and value, and attend to those
    that are seen. cos_sin (N, K / 2, 2): those of their positions.
    """
    projected = apply_linear(attention.projection, layer, pre_norm(settings, attention.norm, layer, x))
    rotate_heads(projected, cos_sin, settings.head_shapes[0] + settings.head_shapes[1])
    return _attend_and_project(settings, attention, layer, x, projected, key, value, slots, attended_keys)


@helper_jit
def apply_cross_attention(settings, attention, layer, x, key, value, attended_keys):  # type: ignore[no-untyped-def]
    """Attend from rows x (N, D) to the memory's key (1, G, S, K) and value (1, G, S, V)."""
    query = apply_linear(attention.projection, layer, pre_norm(settings, attention.norm, layer, x))
    return _attend_and_project(
        settings, attention, layer, x, query, key, value, np.empty((1, 0), np.int64), attended_keys
    )


@helper_jit
def apply_ssru(settings, mixing, layer, x, cell):  # type: ignore[no-untyped-def]
    """Return x + relu(c') of one row x (1, D), normed if norms stand after; cell (D,) is c and becomes c'.

    f = sigmoid(W_f x + b_f)   c' = f * c + (1 - f) * W x   (Kim et al. 2019, section 3.1)
    """
    gates = apply_linear(mixing.projection, layer, pre_norm(settings, mixing.norm, layer, x))
    added, dim, one = np.empty_like(x), x.shape[1], splat(np.float32(1.0))
    for i in range(0, dim, LANES):
        count = dim - i
        # e^80 is finite, and 1 / (1 + e^80) nearer to 0 than fp32 can add to anything
        exponent = vmax(load_partial(gates, i, count, ZERO), splat(np.float32(-80.0)))
        forget = one / (one + exp(splat(ZERO) - exponent))
        mixed = forget * load_partial(cell, i, count, ZERO)
        mixed = mixed + (one - forget) * load_partial(gates, dim + i, count, ZERO)
        store_partial(cell, i, count, mixed)
        store_partial(added, i, count, vmax(mixed, splat(ZERO)))
    return post_norm(settings, mixing.norm, layer, add_rows(x, added))


@helper_jit
def apply_feed_forward(settings, feed_forward, layer, x):  # type: ignore[no-untyped-def]
    """Return x + W2 f(W1 x + b1) + b2 of each row (N, D), normed if norms stand after; f: the activation."""
    hidden = apply_linear(feed_forward.inner, layer, pre_norm(settings, feed_forward.norm, layer, x))
    activate(hidden, settings.activation)
    return post_norm(settings, feed_forward.norm, layer, add_rows(x, apply_linear(feed_forward.outer, layer, hidden)))


@compile_function(ENCODE_SIGNATURE)
def encode_source(encoder, key_value, heads, source):  # type: ignore[no-untyped-def]
    """Return the memory of a source for a decoder of these heads. Weights are in panels (`transformer_layers.py`).

    Args:
        encoder: the weights of the encoder.
        key_value: the decoder's projections of the memory, D -> G K + G V.
        heads: numbers and widths of the decoder's heads: H, G, K, V.
        source: ids (S,).

    Returns:
        Keys (L, 1, G, S, K) and values (L, 1, G, S, V).
    """
    settings, rows = encoder.settings, len(source)
    x = embed_ids(encoder.table, encoder.positions, settings.embedding_scale, source, 0)
    own_keys, own_values = allocate_caches(1, settings.head_shapes, rows)  # of one layer after the other
    allowed_slots, slots, cos_sin = list_first_slots(rows, rows), np.empty((1, rows), np.int64), encoder.cos_sin[:rows]
    for n in range(rows):
        slots[0, n] = n
    for layer in range(len(encoder.feed_forward.inner.bias)):
        x = apply_self_attention(
            settings, encoder.attention, cos_sin, layer, x, own_keys[0], own_values[0], slots, allowed_slots
        )
        x = apply_feed_forward(settings, encoder.feed_forward, layer, x)
    x = pre_norm(settings, encoder.final_norm, 0, x)
    (_, groups, key_dim, _), (keys, values) = heads, allocate_caches(len(key_value.bias), heads, rows)
    for layer in range(len(keys)):
        keys_values = apply_linear(key_value, layer, x)
        for n in range(rows):
            store_cache_row(keys[layer], 0, n, keys_values[n], 0)
            store_cache_row(values[layer], 0, n, keys_values[n], groups * key_dim)
    return keys, values


@compile_function(GREEDY_SIGNATURE)
def search_greedily(  # type: ignore[no-untyped-def]
    decoder, cross_attention, output, candidates, memory_keys, memory_values, pad_bos_eos_ids, shortest, longest, ids
):
    """Append the likeliest candidate until it is the end token, and write the pieces to `ids`.

    Args:
        decoder: the weights of the decoder.
        cross_attention: the weights of its cross-attention.
        output: (V, D), the weight of the output layer, of the candidates alone.
        candidates: (V,) the pieces that may come, ascending; the end token is one of them.
        memory_keys: (L, 1, G, S, K).
        memory_values: (L, 1, G, S, V).
        pad_bos_eos_ids: padding, begin and end token; the first two never come.
        shortest: number of pieces before which the end token cannot come.
        longest: number of pieces after which nothing but the end token can come.
        ids: (longest + 1,), written.

    Returns:
        The number of pieces, and the sum of their log-probabilities.
    """
    settings, (padding, begin, end) = decoder.settings, pad_bos_eos_ids
    layers, vocab, dim, room = len(memory_keys), len(output), output.shape[1], longest + 1
    keys, values = allocate_caches(layers, settings.head_shapes, 0 if settings.has_ssru else room)
    cells = np.zeros((layers, dim), np.float32)
    memory_slots, allowed_slots = (
        list_first_slots(memory_keys.shape[3], memory_keys.shape[3]),
        list_first_slots(0, room),
    )
    slots, logits = np.empty((1, 1), np.int64), np.empty(vocab, np.float32)
    last, log_prob, maxima = np.empty(1, np.int64), 0.0, np.empty((vocab // BLOCK_SIZE + 1, LANES), np.float32)
    last[0], end_index = begin, np.searchsorted(candidates, end)
    for t in range(longest + 1):
        x = embed_ids(decoder.table, decoder.positions, settings.embedding_scale, last, t)
        slots[0, 0] = allowed_slots[0][0, 0, t] = t
        allowed_slots[1][0, 0], cos_sin = t + 1, decoder.cos_sin[t : t + 1]
        for layer in range(layers):
            if settings.has_ssru:
                x = apply_ssru(settings, decoder.attention, layer, x, cells[layer])
            else:
                x = apply_self_attention(
                    settings, decoder.attention, cos_sin, layer, x, keys[layer], values[layer], slots, allowed_slots
                )
            x = apply_cross_attention(
                settings, cross_attention, layer, x, memory_keys[layer], memory_values[layer], memory_slots
            )
            x = apply_feed_forward(settings, decoder.feed_forward, layer, x)
        x = pre_norm(settings, decoder.final_norm, 0, x)
        best, token_index = np.float32(-np.inf), end_index
        for v in range(vocab):
            logit = np.float32(0.0)
            for i in range(dim):
                logit += output[v, i] * x[0, i]
            logits[v] = logit
            piece = candidates[v]
            if logit > best and piece != padding and piece != begin and (piece != end or t >= shortest):
                best, token_index = logit, v
        if t >= longest:
            token_index = end_index
        largest, rest = log_sum_exp(logits, 0, vocab, maxima)
        log_prob += np.float64(logits[token_index]) - np.float64(largest) - rest
        ids[t] = last[0] = candidates[token_index]
        if token_index == end_index:
            break
    return t + 1, log_prob


@helper_jit
def _list_candidates(is_allowed, shortlist, source):  # type: ignore[no-untyped-def]
    """Return the ids, ascending, by which the translation of a source may go on (`Shortlist.candidates`).

    is_allowed: (V,), all false, and so again afterwards.
    """
    by_source, always = shortlist
    count = 0
    for id in always:
        count += not is_allowed[id]
        is_allowed[id] = True
    for piece in source:
        for id in by_source[piece]:
            if id >= 0:
                count += not is_allowed[id]
                is_allowed[id] = True
    candidates, n = np.empty(count, np.int64), 0
    for id in range(len(is_allowed)):
        if is_allowed[id]:
            candidates[n] = id
            n += 1
            is_allowed[id] = False
    return candidates


@helper_jit
def _select_rows(table, ids):  # type: ignore[no-untyped-def]
    """Return the rows (N, D) of some ids."""
    rows, dim = np.empty((len(ids), table.shape[1]), np.float32), table.shape[1]
    for n in range(len(ids)):
        for i in range(dim):
            rows[n, i] = table[ids[n], i]
    return rows


@compile_function(SEARCH_TEXTS_SIGNATURE)
def search_texts_greedily(  # type: ignore[no-untyped-def]
    encoder,
    key_value,
    decoder,
    cross_attention,
    output,
    shortlist,
    sources,
    source_ends,
    pad_bos_eos_ids,
    length_limits,
    ids,
    counts,
    log_probs,
):
    """Search greedily for the translation of each source: `encode_source` and `search_greedily`, in one call for all.

    Args:
        encoder: the weights of the encoder.
        key_value: the decoder's projections of the memory, D -> G K + G V.
        decoder: the weights of the decoder.
        cross_attention: the weights of its cross-attention.
        output: (V, D), the weight of the output layer.
        shortlist: (S, K) pieces of the target by those of the source, -1 behind the last, and the pieces that may come
            in each sentence; if there are none of these, all may.
        sources: ids of the sources, one after another, end tokens included.
        source_ends: (N,), where each ends among them.
        pad_bos_eos_ids: padding, begin and end token; the first two never come.
        length_limits: (N, 2), numbers of pieces of each: before which the end token cannot come, after which nothing
            but it can.
        ids: (N, T + 1), written: the pieces.
        counts: (N,), written: their numbers.
        log_probs: (N,), written: the sums of their log-probabilities.
    """
    has_shortlist, vocab, first = len(shortlist[1]) > 0, len(output), 0
    is_allowed, all_pieces = np.zeros(vocab, np.bool_), np.arange(vocab)
    for n in range(len(counts)):
        source = sources[first : source_ends[n]]
        first = source_ends[n]
        keys, values = encode_source(encoder, key_value, decoder.settings.head_shapes, source)
        candidates = _list_candidates(is_allowed, shortlist, source) if has_shortlist else all_pieces
        rows = _select_rows(output, candidates) if has_shortlist else output
        shortest, longest = length_limits[n]
        counts[n], log_probs[n] = search_greedily(
            decoder, cross_attention, rows, candidates, keys, values, pad_bos_eos_ids, shortest, longest, ids[n]
        )
