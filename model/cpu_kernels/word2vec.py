"""Word vectors as word2vec learns them: stochastic gradient descent that takes a step after each prediction.

A prediction has an input h, the word w_0 that is to be predicted, and noise words w_1 .. w_k. Its loss (Mikolov et al.
2013b, eq. 4) and the step, in which all v' on the right are those before it:

    loss = - log s(v'_0 . h) - sum over i of log s(- v'_i . h),   s(x) = 1 / (1 + exp(-x))
    g_i  = rate ([i = 0] - s(v'_i . h))
    e    = sum over i of g_i v'_i,    v'_i <- v'_i + g_i h

    skip-gram   h = v of a word predicts each of its neighbors, from left to right;    v <- v + e after each of them
    CBOW        h = mean of v of a word's neighbors predicts the word;    v <- v + e of each neighbor

CBOW's step is that of word2vec: in the gradient e would be divided by the number of neighbors.

Draws are splitmix64 (Steele et al. 2014): words are dropped and windows shrink by hash(key of the text, kind of draw,
place of the word in it), and from such a hash a stream begins that gives the noise words of the word's predictions.
Legend: N tokens · B texts · D width · V vocabulary · k noise words.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from tfm.model.cpu_kernels.jit import compile_function, helper_jit, inline_jit
from tfm.model.cpu_kernels.prefetch import prefetch

SUBSAMPLING_STREAM, WINDOW_STREAM, NOISE_STREAM = 0, 1, 2
"""The kinds of draws."""
MAX_DRAWS_PER_NOISE_WORD = 1 << 20
"""The most draws of one noise word, which only a vocabulary with almost all weight on one word needs."""
ROWS_PER_MULTIPLICATION = 3
"""Rows that are multiplied side by side."""
CACHE_LINE_FLOATS = 16
"""float32 numbers that come into the cache at once."""
SPLITMIX_INCREMENT, SPLITMIX_FIRST_FACTOR, SPLITMIX_SECOND_FACTOR = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
UINT64_ONE, UINT64_HALF_BITS, LOW_HALF_MASK = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


@inline_jit
def mix_bits(bits):  # type: ignore[no-untyped-def]
    """Spread 64 bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * SPLITMIX_FIRST_FACTOR
    bits = (bits ^ (bits >> np.uint64(27))) * SPLITMIX_SECOND_FACTOR
    return bits ^ (bits >> np.uint64(31))


@inline_jit
def hash_pair(key, number):  # type: ignore[no-untyped-def]
    """Return 64 bits of a key with a number."""
    return mix_bits(key + (np.uint64(number) + UINT64_ONE) * SPLITMIX_INCREMENT)


def fill_alias_table(shares, table):  # type: ignore[no-untyped-def]
    """Prepare draws of a word in constant time (Walker 1977; Vose 1991).

    One of V columns is drawn, then its own word with probability bar / 2^32, else its other word.

    Args:
        shares: (V,) the probability of each word, overwritten.
        table: (V, 2), written: bar, and the other word.
    """
    size = len(shares)
    small, large = np.empty(size, np.int64), np.empty(size, np.int64)
    num_small = num_large = 0
    for word in range(size):
        shares[word] *= size
        table[word, 0], table[word, 1] = LOW_HALF_MASK, word
        if shares[word] < 1.0:
            small[num_small] = word
            num_small += 1
        else:
            large[num_large] = word
            num_large += 1
    while num_small > 0 and num_large > 0:
        num_small, donor = num_small - 1, large[num_large - 1]
        word = small[num_small]
        table[word, 0], table[word, 1] = min(math.ceil(shares[word] * 4294967296.0), 4294967295.0), donor
        shares[donor] -= 1.0 - shares[word]
        if shares[donor] < 1.0:
            num_large -= 1
            small[num_small] = donor
            num_small += 1


@helper_jit
def list_kept_words(ids, key, keep_probs, words, positions):  # type: ignore[no-untyped-def]
    """List the words of a text (n,) that are kept, and their places in it; return their number."""
    text_key, count = hash_pair(key, SUBSAMPLING_STREAM), 0
    for position in range(len(ids)):
        if (hash_pair(text_key, position) >> np.uint64(11)) * 2.0**-53 < keep_probs[ids[position]]:
            words[count], positions[count] = ids[position], position
            count += 1
    return count


@helper_jit
def draw_window_size(key, position, window, shrink):  # type: ignore[no-untyped-def]
    """Return how far the window of a word reaches."""
    if not shrink:
        return window
    return 1 + np.int64(hash_pair(hash_pair(key, WINDOW_STREAM), position) % np.uint64(window))


@helper_jit
def draw_noise_words(target_and_noise_words, alias_table, outputs, state):  # type: ignore[no-untyped-def]
    """Draw noise words behind the target word, none of them that word; return the state of the stream. The rows of
    `outputs` (V, D) of all these words are fetched into the cache.
    """
    size, dim = np.uint64(len(alias_table)), outputs.shape[1]
    rows = outputs.reshape(-1)
    for i in range(len(target_and_noise_words)):
        word = target_and_noise_words[0]
        for _ in range(MAX_DRAWS_PER_NOISE_WORD if i > 0 else 0):
            state += SPLITMIX_INCREMENT
            bits = mix_bits(state)
            column = np.int64(((bits >> UINT64_HALF_BITS) * size) >> UINT64_HALF_BITS)
            word = column if (bits & LOW_HALF_MASK) < alias_table[column, 0] else np.int64(alias_table[column, 1])
            if word != target_and_noise_words[0]:
                break
        target_and_noise_words[i] = word
        for d in range(0, dim, CACHE_LINE_FLOATS):
            prefetch(rows, word * dim + d)
    return state


@helper_jit
def negative_sampling_step(hidden, outputs, target_and_noise_words, learning_rate, scores, error):  # type: ignore[no-untyped-def]
    """Take a step on one prediction; return its loss.

    Args:
        hidden: (D,) h.
        outputs: (V, D) all v', changed.
        target_and_noise_words: (k + 1,) the words w_0 .. w_k.
        learning_rate: the learning rate.
        scores: (k + ROWS_PER_MULTIPLICATION,), overwritten.
        error: (D,), written: e.
    """
    dim, last = len(hidden), len(target_and_noise_words) - 1
    zero, one = hidden.dtype.type(0), hidden.dtype.type(1)
    for i in range(0, last + 1, ROWS_PER_MULTIPLICATION):
        x, y, z = (
            outputs[target_and_noise_words[i]],
            outputs[target_and_noise_words[min(i + 1, last)]],
            outputs[target_and_noise_words[min(i + 2, last)]],
        )
        of_x = of_y = of_z = zero
        for d in range(dim):
            of_x += x[d] * hidden[d]
            of_y += y[d] * hidden[d]
            of_z += z[d] * hidden[d]
        scores[i], scores[i + 1], scores[i + 2] = of_x, of_y, of_z
    positive, product = 0.0, 1.0  # the loss is the sum of log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))
    for i in range(last + 1):
        x = scores[i] if i > 0 else -scores[0]
        small = math.exp(-abs(x))
        positive, product = positive + max(x, zero), product * (1.0 + small)
        share = (one if x >= 0 else small) / (one + small)
        scores[i] = -learning_rate * share if i > 0 else learning_rate * share
    scores[last + 1 :] = zero
    error[:] = zero
    for i in range(0, last + 1, ROWS_PER_MULTIPLICATION):
        x, y, z = (
            outputs[target_and_noise_words[i]],
            outputs[target_and_noise_words[min(i + 1, last)]],
            outputs[target_and_noise_words[min(i + 2, last)]],
        )
        for d in range(dim):
            error[d] += scores[i] * x[d] + scores[i + 1] * y[d] + scores[i + 2] * z[d]
    for i in range(last + 1):
        x, g = outputs[target_and_noise_words[i]], scores[i]
        for d in range(dim):
            x[d] += g * hidden[d]
    return positive + math.log(product)


def train_skip_gram(  # type: ignore[no-untyped-def]
    ids, lengths, keys, inputs, outputs, keep_probs, alias_table, window, shrink, negatives, learning_rate
):
    """Take a step for each neighbor of each word of some texts; return the sum of the losses and their number.

    Args:
        ids: (N,) the tokens of all texts.
        lengths: (B,) tokens of each text.
        keys: (B,) of the draws for each text.
        inputs: (V, D) all v, changed.
        outputs: (V, D) all v', changed.
        keep_probs: (V,) the probability that a word is kept; 0 for what is no word.
        alias_table: (V, 2) the alias table of noise words.
        window: largest reach of a window.
        shrink: whether each word's window is drawn from 1 to that.
        negatives: k.
        learning_rate: the learning rate.
    """
    longest, dim = lengths.max(), inputs.shape[1]
    words, positions = np.empty(longest, np.int64), np.empty(longest, np.int64)
    target_ids = np.empty((min(2 * window, longest), negatives + 1), np.int64)
    scores, error = np.empty(negatives + ROWS_PER_MULTIPLICATION, inputs.dtype), np.empty(dim, inputs.dtype)
    total, count, begin = 0.0, 0, 0
    for text in range(len(lengths)):
        key, begin = keys[text], begin + lengths[text]
        num_words = list_kept_words(ids[begin - lengths[text] : begin], key, keep_probs, words, positions)
        for i in range(num_words):
            reach = draw_window_size(key, positions[i], window, shrink)
            first, last = max(i - reach, 0), min(i + reach, num_words - 1)
            state = hash_pair(hash_pair(key, NOISE_STREAM), positions[i])
            for j in range(last - first):
                target_ids[j, 0] = words[first + j + (first + j >= i)]
                state = draw_noise_words(target_ids[j], alias_table, outputs, state)
            hidden = inputs[words[i]]
            for j in range(last - first):
                total += negative_sampling_step(hidden, outputs, target_ids[j], learning_rate, scores, error)
                for d in range(dim):
                    hidden[d] += error[d]
            count += last - first
    return total, count


def train_cbow(ids, lengths, keys, inputs, outputs, keep_probs, alias_table, window, shrink, negatives, learning_rate):  # type: ignore[no-untyped-def]
    """Take a step for each word of some texts that has neighbors; return the sum of the losses and their number.

    Args:
        ids: (N,) the tokens of all texts.
        lengths: (B,) tokens of each text.
        keys: (B,) of the draws for each text.
        inputs: (V, D) all v, changed.
        outputs: (V, D) all v', changed.
        keep_probs: (V,) the probability that a word is kept; 0 for what is no word.
        alias_table: (V, 2) the alias table of noise words.
        window: largest reach of a window.
        shrink: whether each word's window is drawn from 1 to that.
        negatives: k.
        learning_rate: the learning rate.
    """
    longest, dim = lengths.max(), inputs.shape[1]
    words, positions = np.empty(longest, np.int64), np.empty(longest, np.int64)
    target_ids = np.empty((longest, negatives + 1), np.int64)
    scores, error = np.empty(negatives + ROWS_PER_MULTIPLICATION, inputs.dtype), np.empty(dim, inputs.dtype)
    hidden = np.empty(dim, inputs.dtype)
    total, count, begin = 0.0, 0, 0
    for text in range(len(lengths)):
        key, begin = keys[text], begin + lengths[text]
        num_words = list_kept_words(ids[begin - lengths[text] : begin], key, keep_probs, words, positions)
        if num_words < 2:
            continue
        for i in range(num_words):
            target_ids[i, 0] = words[i]
            draw_noise_words(target_ids[i], alias_table, outputs, hash_pair(hash_pair(key, NOISE_STREAM), positions[i]))
        for i in range(num_words):
            reach = draw_window_size(key, positions[i], window, shrink)
            first, last = max(i - reach, 0), min(i + reach, num_words - 1)
            part = inputs.dtype.type(1 / (last - first))
            hidden[:] = 0
            for j in range(first, last + 1):
                neighbor = inputs[words[j]]
                for d in range(dim if j != i else 0):
                    hidden[d] += part * neighbor[d]
            total += negative_sampling_step(hidden, outputs, target_ids[i], learning_rate, scores, error)
            for j in range(first, last + 1):
                neighbor = inputs[words[j]]
                for d in range(dim if j != i else 0):
                    neighbor[d] += error[d]
        count += num_words
    return total, count


_TRAINING_LOOPS = {"skip_gram": train_skip_gram, "cbow": train_cbow}
_LOOP_SIGNATURE = (
    "Tuple((f8, i8))(i4[::1], i8[::1], u8[::1], {0}[:,::1], {0}[:,::1], f8[::1], u4[:,::1], i8, b1, i8, {0})"
)


@cache
def get_training_kernel(architecture: str, kind: str) -> Any:
    """The loop of a network, "skip_gram" or "cbow", for vectors of a type: "f4" or "f8"."""
    return compile_function(_LOOP_SIGNATURE.format(kind))(_TRAINING_LOOPS[architecture])


@cache
def get_alias_table_kernel() -> Any:
    """`fill_alias_table`, compiled."""
    return compile_function("void(f8[::1], u4[:,::1])")(fill_alias_table)
