"""Log-probabilities of logits, or directly the best candidates of a beam.

Legend: N rows · B sentences · W hypotheses of each · V vocabulary.
"""

import numpy as np

from tfm.model.cpu_kernels.jit import compile_function, helper_jit, inline_jit
from tfm.model.cpu_kernels.softmax import BLOCK_SIZE, NEG_INF, ZERO, log_sum_exp
from tfm.model.cpu_kernels.vectors import LANES, any_at_least, hmax, load, load_partial, load_scalar, splat, vmax


@inline_jit
def row_normalizer(logits, offset, vocab, maxima):  # type: ignore[no-untyped-def]
    """Return log(sum of e^x) over `vocab` logits x from place `offset` on, and their maxima as `log_sum_exp` keeps
    them.
    """
    largest, rest = log_sum_exp(logits, offset, vocab, maxima)
    return np.float32(largest + rest)


@compile_function("void(f4[:,::1])")
def log_softmax(logits):  # type: ignore[no-untyped-def]
    """Turn logits (N, V) into log-probabilities, in place."""
    vocab = logits.shape[1]
    maxima = np.empty((vocab // BLOCK_SIZE + 1, LANES), np.float32)
    for n in range(len(logits)):
        normalizer = row_normalizer(logits, n * vocab, vocab, maxima)
        for v in range(vocab):
            logits[n, v] -= normalizer


@inline_jit
def insert_candidate(values, beams, tokens, value, beam, token):  # type: ignore[no-untyped-def]
    """Put a candidate where it belongs among the best ones, if it does."""
    rank = len(values)
    while rank > 0 and (
        value > values[rank - 1]
        or (
            value == values[rank - 1]
            and value > -np.inf
            and (beam < beams[rank - 1] or (beam == beams[rank - 1] and token < tokens[rank - 1]))
        )
    ):
        rank -= 1
    if rank == len(values):
        return
    for i in range(len(values) - 1, rank, -1):
        values[i], beams[i], tokens[i] = values[i - 1], beams[i - 1], tokens[i - 1]
    values[rank], beams[rank], tokens[rank] = value, beam, token


@helper_jit
def _logit_threshold(value, log_prob_sum, normalizer):  # type: ignore[no-untyped-def]
    """A logit x that is smaller has sum + (x - normalizer) < value, also as rounded to float32."""
    difference = value - log_prob_sum
    return np.float32(normalizer + difference - 1e-6 * (abs(normalizer) + abs(difference)))


@inline_jit
def _min_lane_maximum(maxima, vocab):  # type: ignore[no-untyped-def]
    """Return a bound that at least LANES logits reach: the smallest of the largest of each lane."""
    best = load(maxima, 0)
    for block in range(BLOCK_SIZE, vocab, BLOCK_SIZE):
        best = vmax(best, load(maxima, block // BLOCK_SIZE * LANES))
    return -hmax(splat(ZERO) - best)


@helper_jit
def topk_of_row(logits, n, vocab, banned_ids, log_prob_sum, w, values, beams, tokens, maxima):  # type: ignore[no-untyped-def]
    """Put the largest of sum + log-softmax(logits of row n), of hypothesis w, into values, beams, tokens (k,).

    Only blocks, and in them vectors, are looked at whose largest logits are needed.
    """
    first, k = n * vocab, len(values)
    normalizer = row_normalizer(logits, first, vocab, maxima)
    threshold = _logit_threshold(values[k - 1], log_prob_sum, normalizer)
    if values[k - 1] == -np.inf and k + len(banned_ids) <= LANES:
        lane_bound = _min_lane_maximum(maxima, vocab)
        threshold = _logit_threshold(log_prob_sum + (lane_bound - normalizer), log_prob_sum, normalizer)
    for block in range(0, vocab, BLOCK_SIZE):
        if not any_at_least(load(maxima, block // BLOCK_SIZE * LANES), threshold):
            continue
        for v in range(block, min(block + BLOCK_SIZE, vocab), LANES):
            if not any_at_least(load_partial(logits, first + v, vocab - v, NEG_INF), threshold):
                continue
            for token in range(v, min(v + LANES, vocab)):
                value = log_prob_sum + (load_scalar(logits, first + token) - normalizer)
                if value >= values[k - 1] and not (banned_ids == token).any():
                    insert_candidate(values, beams, tokens, value, w, token)
                    threshold = max(threshold, _logit_threshold(values[k - 1], log_prob_sum, normalizer))


@compile_function("UniTuple(i8, 2)(i8, f8[:,::1], f8[:,::1], i8[:,::1], i8, i8, i8[::1])")
def list_unpruned_hypotheses(start, log_probs, values, tokens, beam, eos_id, out_rows):  # type: ignore[no-untyped-def]
    """List the hypotheses that may still add to the candidates of `topk_of_logits`, in the order of their rank.

    Hypotheses of rank 0 in their sentence come first. No log-probability is above 0, so a hypothesis adds nothing if
    its sum is not above the bound of the beam: the value of the `beam`-th candidate that is not the end token.

    Args:
        start: place in the order of all B W hypotheses from which to go on; 0 at first.
        log_probs: (B, W), the log-probability of each hypothesis.
        values: (B, k), the values of the candidates so far.
        tokens: (B, k), their tokens.
        beam: number of hypotheses that go on.
        eos_id: the end token.
        out_rows: (N,), written: indices of hypotheses among the B W.

    Returns:
        The number of rows written, and the place from which to go on.
    """
    (batch, width), count = log_probs.shape, 0
    while start < batch * width and count < len(out_rows):
        b, w = start % batch, start // batch
        num_unfinished, i = 0, -1
        while num_unfinished < beam:
            i += 1
            num_unfinished += tokens[b, i] != eos_id
        if log_probs[b, w] > values[b, i]:
            out_rows[count] = b * width + w
            count += 1
        start += 1
    return count, start


def _topk_candidates(logits, rows, banned_ids, log_prob_sums, values, beams, tokens):  # type: ignore[no-untyped-def]
    """Put the largest of sums (B, W) + log-softmax(logits (N, V)) of each sentence into values, beams, tokens (B, k).

    rows (N,): the hypothesis among the B W to which each row of logits belongs. Values, beams and tokens held already
    stay where they are larger. Best first; among equals lowest beam, then lowest token. Value -inf where there are
    fewer. A piece in `banned_ids` counts in the softmax, and is left out.
    """
    width, vocab = log_prob_sums.shape[1], logits.shape[1]
    maxima = np.empty((vocab // BLOCK_SIZE + 1, LANES), np.float32)
    for n in range(len(rows)):
        b, w = rows[n] // width, rows[n] % width
        if log_prob_sums[b, w] > -np.inf:
            topk_of_row(logits, n, vocab, banned_ids, log_prob_sums[b, w], w, values[b], beams[b], tokens[b], maxima)


_TOPK_SIGNATURE = "i8[::1], i8[::1], f8[:,::1], f8[:,::1], i8[:,::1], i8[:,::1])"
topk_of_logits = compile_function(f"void(f4[:,::1], {_TOPK_SIGNATURE}")(_topk_candidates)
topk_of_bf16_logits = compile_function(f"void(u2[:,::1], {_TOPK_SIGNATURE}")(_topk_candidates)
"""`topk_of_logits` of bf16."""
