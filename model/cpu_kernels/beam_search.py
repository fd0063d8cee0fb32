"""Beam search of one sentence in compiled loops over plain arrays, some steps at a time.

It is the search of `pipeline/decoding/search/beam.py`. The rows of a step are the hypotheses of this sentence alone, so
that no other sentence can change them. Weights are in panels (`transformer_layers.py`).

Legend: L layers · W hypotheses · T most pieces of a hypothesis, end token included · S source pieces · D width · G
heads of keys and values · K width of a head's keys · V width of its values, or the vocabulary.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types

from tfm.model.cpu_kernels.greedy_search import (
    apply_cross_attention,
    apply_feed_forward,
    apply_self_attention,
    list_first_slots,
)
from tfm.model.cpu_kernels.jit import compile_function, helper_jit
from tfm.model.cpu_kernels.log_softmax_topk import insert_candidate, row_normalizer, topk_of_row
from tfm.model.cpu_kernels.softmax import BLOCK_SIZE
from tfm.model.cpu_kernels.transformer_layers import (
    FLOAT32_5D,
    IDS_TYPE,
    INT_TYPE,
    PANELS_ATTENTION_TYPE,
    PANELS_STACK_TYPE,
    PANELS_TYPE,
    SPECIAL_IDS_TYPE,
    Array,
    apply_linear,
    pre_norm,
)
from tfm.model.cpu_kernels.vectors import LANES


class BeamState(NamedTuple):
    """The hypotheses of a sentence.

    keys (L, 1, G, W T, K), values (L, 1, G, W T, V): of all pieces; hypothesis w has slot t W + w at step t. slots (1,
    W, T + UNROLL_FACTOR): those that each hypothesis attends to. tokens, parents (T, W): the piece that each has got
    at a step, and the hypothesis before that which it continues. sums (W,): log-probabilities. end_steps, end_parents,
    end_sums (W T,): the step of an end token, the hypothesis that it ends, its log-probability. best (N,): the best
    scores of these. progress: the number of steps, the number of ends, and 1 when the search is done.
    """

    keys: Array
    values: Array
    slots: Array
    tokens: Array
    parents: Array
    sums: Array
    end_steps: Array
    end_parents: Array
    end_sums: Array
    best: Array
    progress: Array


IDS_2D, SLOTS_TYPE, REALS_TYPE = (
    types.Array(kind, dims, "C") for kind, dims in ((types.int64, 2), (types.uint64, 3), (types.float64, 1))
)
BEAM_STATE_TYPE = types.NamedTuple(
    [
        *(FLOAT32_5D, FLOAT32_5D, SLOTS_TYPE, IDS_2D, IDS_2D, REALS_TYPE),
        *(IDS_TYPE, IDS_TYPE, REALS_TYPE, REALS_TYPE, IDS_TYPE),
    ],
    BeamState,
)
BEAM_SIGNATURE: Any = (
    *(PANELS_STACK_TYPE, PANELS_ATTENTION_TYPE, PANELS_TYPE, FLOAT32_5D, FLOAT32_5D),
    *(SPECIAL_IDS_TYPE, INT_TYPE, INT_TYPE, REALS_TYPE, BEAM_STATE_TYPE, INT_TYPE),
)


@helper_jit
def _embed_beam(decoder, tokens, t):  # type: ignore[no-untyped-def]
    """Return embedding * scale + position of pieces (W,), all at position t, and cosines and sines of that position."""
    table, (_, pairs, _) = decoder.table, decoder.cos_sin.shape
    x, cos_sin = np.empty((len(tokens), table.shape[1]), np.float32), np.empty((len(tokens), pairs, 2), np.float32)
    for n in range(len(tokens)):
        cos_sin[n] = decoder.cos_sin[t]
        for i in range(table.shape[1]):
            x[n, i] = table[tokens[n], i] * np.float32(decoder.settings.embedding_scale) + decoder.positions[t, i]
    return x, cos_sin


@helper_jit
def _find_best_continuations(logits, log_prob_sums, count, pad_bos_eos_ids, must_end, may_end):  # type: ignore[no-untyped-def]
    """Return values, hypotheses and pieces (2 W,) of the best continuations of the first `count` hypotheses."""
    vocab, (padding, begin, end), k = logits.shape[1], pad_bos_eos_ids, 2 * len(log_prob_sums)
    values, beams, tokens = np.full(k, -np.inf), np.zeros(k, np.int64), np.zeros(k, np.int64)
    maxima = np.empty((vocab // BLOCK_SIZE + 1, LANES), np.float32)
    forbidden = np.array([padding, begin, padding if may_end else end])
    for w in range(count):
        if must_end:
            normalizer = row_normalizer(logits, w * vocab, vocab, maxima)
            insert_candidate(values, beams, tokens, log_prob_sums[w] + (logits[w, end] - normalizer), w, end)
        elif log_prob_sums[w] > -np.inf:
            topk_of_row(logits, w, vocab, forbidden, log_prob_sums[w], w, values, beams, tokens, maxima)
    return values, beams, tokens


@helper_jit
def _record_finished_hypothesis(state, t, parent, log_prob_sum, score):  # type: ignore[no-untyped-def]
    """Keep a hypothesis that ends at step t."""
    number = state.progress[1]
    state.end_steps[number], state.end_parents[number], state.end_sums[number] = t, parent, log_prob_sum
    state.progress[1] = number + 1
    rank = len(state.best)
    while rank > 0 and score > state.best[rank - 1]:
        rank -= 1
    for i in range(len(state.best) - 1, rank, -1):
        state.best[i] = state.best[i - 1]
    if rank < len(state.best):
        state.best[rank] = score


@helper_jit
def _extend_unfinished_hypotheses(state, t, candidates, eos_id):  # type: ignore[no-untyped-def]
    """Let the best continuations that do not end go on: their pieces, sums and slots."""
    (values, beams, tokens), width, count = candidates, len(state.sums), 0
    old_slots = state.slots.copy()
    for i in range(len(values)):
        if count < width and not (tokens[i] == eos_id and values[i] > -np.inf):
            state.tokens[t, count], state.parents[t, count], state.sums[count] = tokens[i], beams[i], values[i]
            state.slots[0, count, : t + 1] = old_slots[0, beams[i], : t + 1]
            count += 1


@compile_function(BEAM_SIGNATURE)
def extend_beam(  # type: ignore[no-untyped-def]
    decoder,
    cross_attention,
    output,
    memory_keys,
    memory_values,
    pad_bos_eos_ids,
    shortest,
    longest,
    length_norms,
    state,
    max_steps,
):
    """Extend the hypotheses of a sentence by some pieces, or until the best ones are found.

    Args:
        decoder: the weights of the decoder.
        cross_attention: the weights of its cross-attention.
        output: the weight of the output layer, as that of one layer.
        memory_keys: (L, 1, G, S, K).
        memory_values: (L, 1, G, S, V).
        pad_bos_eos_ids: padding, begin and end token; the first two never come.
        shortest: number of pieces before which the end token cannot come.
        longest: number of pieces after which nothing but the end token can come.
        length_norms: (T + 1,), the length norm by the number of pieces, end token included.
        state: the hypotheses, changed.
        max_steps: the most steps.
    """
    settings, (_, begin, end), width = decoder.settings, pad_bos_eos_ids, len(state.sums)
    memory_slots, counts = (
        list_first_slots(memory_keys.shape[3], memory_keys.shape[3]),
        np.empty((1, width), np.int64),
    )
    first = np.full(1, begin)
    for t in range(state.progress[0], state.progress[0] + max_steps):
        rows = 1 if t == 0 else width  # at first there is one hypothesis
        x, cos_sin = _embed_beam(decoder, first if t == 0 else state.tokens[t - 1], t)
        new_slots = np.empty((1, rows), np.int64)
        for w in range(rows):
            new_slots[0, w] = state.slots[0, w, t] = t * width + w
            counts[0, w] = t + 1
        allowed_slots = state.slots, counts
        for layer in range(len(memory_keys)):
            cache = state.keys[layer], state.values[layer]
            x = apply_self_attention(
                settings, decoder.attention, cos_sin, layer, x, cache[0], cache[1], new_slots, allowed_slots
            )
            x = apply_cross_attention(
                settings, cross_attention, layer, x, memory_keys[layer], memory_values[layer], memory_slots
            )
            x = apply_feed_forward(settings, decoder.feed_forward, layer, x)
        logits = apply_linear(output, 0, pre_norm(settings, decoder.final_norm, 0, x))
        candidates = _find_best_continuations(logits, state.sums, rows, pad_bos_eos_ids, t >= longest, t >= shortest)
        values, beams, tokens = candidates
        for i in range(width):
            if tokens[i] == end and values[i] > -np.inf:
                _record_finished_hypothesis(state, t, beams[i], values[i], values[i] / length_norms[t + 1])
        _extend_unfinished_hypotheses(state, t, candidates, end)
        state.progress[0] = t + 1
        leading, rival = state.sums[0], state.best[-1]
        cannot_improve = leading / length_norms[longest + 1] < rival
        has_enough = state.progress[1] >= width and leading / length_norms[t + 1] <= rival
        if cannot_improve or has_enough or not leading > -np.inf:
            state.progress[2] = 1
            break
