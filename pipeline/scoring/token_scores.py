"""Probabilities of the tokens of a text under a language model, read in windows no longer than the model reads.

log p(x_1 .. x_N) = sum over t of log p(x_t | the tokens of its window before x_t)

A window reads a start token and then its tokens. If windows overlap, each token counts in the first that holds it, and
the tokens that a later window repeats of an earlier one are context alone (as in Hugging Face's "Perplexity of
fixed-length models").
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tfm.data.arrays import Ints
from tfm.data.batching.batches import TextBatch, make_window_batch
from tfm.data.batching.buckets import length_sorted_batches
from tfm.data.dataset.split import Ids
from tfm.data.errors import format_count
from tfm.model.layout import Layout
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.decoding.teacher_forcing import MAX_BATCH_ROWS, token_log_probs
from tfm.pipeline.runtime.out_of_memory import raise_oom_as_data_error, too_large_message
from tfm.pipeline.runtime.progress import Reporter


@dataclass(frozen=True)
class ScoringWindows:
    """Windows of a running text.

    Args:
        starts: (W,) the index of each first token.
        lengths: (W,) the number of tokens.
        contexts: (W,) the number of first tokens that are context alone.
    """

    starts: Ints
    lengths: Ints
    contexts: Ints


@dataclass(frozen=True)
class TokenScores:
    """Log-probability of each token of a running text (N,), in nats, and whether no other is likelier in its place."""

    log_probs: NDArray[np.float64]
    right: NDArray[np.bool_]

    def log_probs_of_texts(self, texts: Ints) -> NDArray[np.float64]:
        """Return the log-probability of each text of those that lie end to end, of (T,) tokens, at least 1."""
        return np.add.reduceat(self.log_probs, np.cumsum(texts) - texts)


def make_windows(texts: Ints, window_length: int, stride: int) -> ScoringWindows:
    """Place windows over texts that lie end to end, so that every token is predicted once.

    A text's first window begins with it, each further one `stride` tokens after the one before, up to that which
    reaches the text's end. A token is therefore predicted from at least `longest - stride` tokens before it, or from
    all that its text has, however the text goes on.

    Args:
        texts: (T,) tokens of each text.
        window_length: the most tokens of a window.
        stride: tokens between the beginnings of windows.
    """
    counts = 1 + -(-np.maximum(texts - window_length, 0) // stride)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    begins, offsets = np.repeat(np.cumsum(texts) - texts, counts), stride * number
    lengths = np.minimum(np.repeat(texts, counts) - offsets, window_length)
    return ScoringWindows(begins + offsets, lengths, np.where(number > 0, window_length - stride, 0))


def token_scores(
    model: Any, text: Ids, windows: ScoringWindows, *, name: str, batch_tokens: int, reporter: Reporter
) -> TokenScores:
    """Score each token of a text (N,) under a decoder-only model in eval(), by windows that hold them all.

    Args:
        model: the network.
        text: (N,) ids.
        windows: of the text.
        name: of the text, for messages.
        batch_tokens: the most tokens of windows read at once, padding counted.
        reporter: shows progress.

    Raises:
        DataError: a batch does not fit in memory, or the model gives no numbers.
    """
    log_probs, right = np.full(len(text), np.nan), np.zeros(len(text), np.bool_)
    device = next(model.parameters()).device
    batches = length_sorted_batches(windows.lengths, windows.lengths, budget=batch_tokens)
    with torch.inference_mode(), reporter.bar(f"scoring {name}", len(batches), "batches") as bar:
        for rows in batches:
            starts, lengths, contexts = windows.starts[rows], windows.lengths[rows], windows.contexts[rows]
            offsets = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            mask = offsets >= np.repeat(contexts, lengths)
            positions = (np.repeat(starts, lengths) + offsets)[mask]
            batch = make_window_batch(text, starts, lengths).to(device)
            size = f"a batch of {format_count(len(rows), 'window')} x {format_count(int(lengths.max()), 'token')}"
            with raise_oom_as_data_error(lambda size=size: too_large_message(size, name)):  # type: ignore[misc]
                log_probs[positions], right[positions] = _score_batch(model, batch, torch.from_numpy(mask).to(device))
            bar.advance(1)
    return TokenScores(log_probs, right)


def _score_batch(model: Any, batch: TextBatch, mask: Tensor) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Log-probability (n,) of each token of a batch that counts, and whether none is likelier (n,)."""
    hidden = model.hidden_states(batch.tokens_in, Layout.from_lengths(batch.lengths, batch.tokens_in.device))[mask]
    log_probs, right = [], []
    # the output layer in pieces: logits (n, V) of a whole batch need not fit into memory
    for hidden_rows, targets in zip(
        torch.split(hidden, MAX_BATCH_ROWS), torch.split(batch.tokens_out[mask], MAX_BATCH_ROWS), strict=True
    ):
        logits = model.output(hidden_rows)
        log_probs.append(token_log_probs(logits, targets))
        right.append(logits.argmax(-1) == targets)
    all_log_probs: NDArray[np.float64] = torch.cat(log_probs).cpu().double().numpy()
    check_not_nan(all_log_probs)
    return all_log_probs, torch.cat(right).cpu().numpy()
