"""Logits to log-probabilities, or directly to the best candidates of a beam.

Legend: N rows · B sentences · W hypotheses of each · V vocabulary.
"""

import numpy as np

from tfm.model.cpu_kernels.bf16 import widened
from tfm.model.cpu_kernels.jit import compiled, helper, inlined
from tfm.model.cpu_kernels.softmax import LANES, largest_of, log_sum_exp

CHUNKS = 16


@helper
def _normalizer(row, largest):  # type: ignore[no-untyped-def]
    """log(sum of e^x) over a row of logits x, the largest of which is given."""
    return np.float32(largest + log_sum_exp(row, largest))


@compiled("void(f4[:,::1])")
def log_softmax(logits):  # type: ignore[no-untyped-def]
    """Logits (N, V) -> log-probabilities, in place."""
    lanes = np.empty(LANES, np.float32)
    for n in range(len(logits)):
        row = logits[n]
        normalizer = _normalizer(row, largest_of(row, lanes))
        for v in range(len(row)):
            row[v] -= normalizer


@inlined
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


@helper
def _best_of_row(row, never, total, w, values, beams, tokens, largest, lanes):  # type: ignore[no-untyped-def]
    """Put the largest of total + log-softmax(row (V,)), of hypothesis w, into values, beams, tokens (k,).

    The row is looked at by the largest of CHUNKS pieces, each so far from the next that all such sets lie side by side;
    largest (V // CHUNKS,) and lanes (LANES,) are room.
    """
    vocab, k, num_sets = len(row), len(values), len(largest)
    whole, step = CHUNKS * num_sets, max(1, num_sets)
    largest[:] = row[:num_sets]
    for first in range(num_sets, whole, step):
        chunk = row[first : first + num_sets]
        for j in range(num_sets):
            largest[j] = chunk[j] if chunk[j] > largest[j] else largest[j]
    normalizer = _normalizer(row, max(largest_of(largest, lanes), largest_of(row[whole:], lanes)))
    for token in never:
        row[token] = -np.inf
    for j in range(num_sets):
        if total + (largest[j] - normalizer) >= values[k - 1]:
            for token in range(j, whole, step):
                value = total + (row[token] - normalizer)
                if value >= values[k - 1]:
                    _insert(values, beams, tokens, value, w, token)
    for token in range(whole, vocab):
        value = total + (row[token] - normalizer)
        if value >= values[k - 1]:
            _insert(values, beams, tokens, value, w, token)


@compiled("void(f4[:,::1], i8[::1], i8[::1], f8[:,::1], f8[:,::1], i8[:,::1], i8[:,::1])")
def best_of_logits(logits, rows, never, sums, values, beams, tokens):  # type: ignore[no-untyped-def]
    """Put the largest of sums (B, W) + log-softmax(logits (N, V)) of each sentence into values, beams, tokens (B, k).

    rows (N,): which hypothesis of the B W each row of logits is of. What values, beams, tokens hold already stays where
    it is larger. Best first; among equals lowest beam, then lowest token. Value -inf where there are fewer. What is
    `never` to come counts in the softmax, and becomes -inf.
    """
    width, largest, lanes = sums.shape[1], np.empty(logits.shape[1] // CHUNKS, np.float32), np.empty(LANES, np.float32)
    for n in range(len(rows)):
        b, w = rows[n] // width, rows[n] % width
        if sums[b, w] > -np.inf:
            _best_of_row(logits[n], never, sums[b, w], w, values[b], beams[b], tokens[b], largest, lanes)


@compiled("void(u2[:,::1], i8[::1], i8[::1], f8[:,::1], f8[:,::1], i8[:,::1], i8[:,::1])")
def best_of_low_logits(logits, rows, never, sums, values, beams, tokens):  # type: ignore[no-untyped-def]
    """`best_of_logits` of bf16."""
    width, largest, lanes = sums.shape[1], np.empty(logits.shape[1] // CHUNKS, np.float32), np.empty(LANES, np.float32)
    row = np.empty(logits.shape[1], np.float32)
    for n in range(len(rows)):
        b, w = rows[n] // width, rows[n] % width
        if sums[b, w] > -np.inf:
            for v in range(len(row)):
                row[v] = widened(logits[n, v])
            _best_of_row(row, never, sums[b, w], w, values[b], beams[b], tokens[b], largest, lanes)
