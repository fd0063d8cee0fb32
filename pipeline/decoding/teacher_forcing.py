"""Teacher forcing: the log-probability that a model gives to a given text."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm.data.batching.batches import PairBatch, make_window_batch, pair_batch_from_ids, pair_batch_from_images
from tfm.data.batching.buckets import length_sorted_batches
from tfm.data.errors import DataError
from tfm.data.images.row_images import RowImages
from tfm.model.layout import Layout
from tfm.pipeline.decoding.search.greedy import log_prob_sum_dtype
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.decoding.stepper import StateT, Stepper
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

MAX_BATCH_TOKENS = 4096
MAX_BATCH_ROWS = 512


class Seq2SeqModel(Protocol):
    """A model that reads source and target at once, as in training: every one that translates."""

    @property
    def max_length(self) -> int: ...
    @property
    def output(self) -> Callable[[Tensor], Tensor]: ...
    def source_layout(self, source: Tensor, lengths: Tensor, /) -> Layout: ...
    def __call__(self, source: Tensor, source_layout: Layout, target: Tensor, target_layout: Layout, /) -> Tensor: ...


class CausalModel(Protocol):
    """A model that reads one text at once, as in training: every language model."""

    @property
    def output(self) -> Callable[[Tensor], Tensor]: ...
    def hidden_states(self, tokens: Tensor, layout: Layout, /) -> Tensor: ...


def target_log_probs(
    model: Seq2SeqModel,
    sources: Sequence[Sequence[int]] | RowImages,
    targets: Sequence[Sequence[int]],
    *,
    device: torch.device | str = "cpu",
) -> npt.NDArray[np.float64]:
    """Return log p(target | source) of each pair, the sum over its pieces and the end token, in nats.

    The model must be in eval mode. A source longer than the model reads is cut, as `decode` cuts it.

    Args:
        model: the model.
        sources: images, or ids without end token.
        targets: ids without end token.
        device: device of the model.

    Returns:
        (n,).

    Raises:
        DataError: a target is longer than the model reads, or the model gives no numbers.
    """
    limit = model.max_length - 1
    for number, target in enumerate(targets, 1):
        if len(target) > limit:
            raise DataError(
                f"target {number} has {len(target)} pieces and the model reads at most {limit}: "
                "it has no probability; remove it or train with a larger model.max_length"
            )
    pairs = _make_pair_batch_function(sources, targets, limit)
    if isinstance(sources, RowImages):
        source_lengths = np.ones(len(sources), np.int64)
    else:
        source_lengths = np.array([min(len(ids), limit) + 1 for ids in sources], dtype=np.int64)
    target_lengths = np.array([len(ids) + 1 for ids in targets], dtype=np.int64)
    sums = np.zeros(len(sources))
    with torch.inference_mode():
        for rows in length_sorted_batches(source_lengths, target_lengths, budget=MAX_BATCH_TOKENS):
            sums[rows] = _target_log_prob_sums(model, pairs(rows).to(device)).cpu().numpy()
    check_not_nan(sums)
    return sums


def _make_pair_batch_function(
    sources: Sequence[Sequence[int]] | RowImages, targets: Sequence[Sequence[int]], limit: int
) -> Callable[[npt.NDArray[np.int64]], PairBatch]:
    """Return the function that makes the batch of some rows; texts are cut to `limit` pieces."""
    if isinstance(sources, RowImages):
        return lambda rows: pair_batch_from_images(
            sources.take(rows), [targets[row] for row in rows], sources.preparation
        )
    return lambda rows: pair_batch_from_ids([sources[row][:limit] for row in rows], [targets[row] for row in rows])


@torch.inference_mode()
def stepped_log_probs(
    stepper: Stepper[StateT], state: StateT, tokens: Tensor, targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Return log p of each piece of R targets, in nats, by any `Stepper`, an ensemble too, step by step.

    Args:
        stepper: the model.
        state: of R rows.
        tokens: (R,), the first token that each row reads, the begin token where nothing has been read.
        targets: ids.
    """
    longest = max(map(len, targets), default=0)
    target_ids = torch.tensor(
        [[*target, *[PAD_ID] * (longest - len(target))] for target in targets], device=tokens.device
    )
    columns = []
    for position in range(longest):
        predict, state = stepper.step(tokens, state)
        tokens = target_ids[:, position]
        columns.append(predict(slice(None)).to(log_prob_sum_dtype(tokens.device)).gather(1, tokens.unsqueeze(1)))
    log_probs = torch.cat(columns, 1).tolist() if columns else [[] for _ in targets]
    return [row[: len(target)] for row, target in zip(log_probs, targets, strict=True)]


def forced_log_probs_by_steps(
    stepper: Any,
    sources: Sequence[Sequence[int]] | RowImages,
    targets: Sequence[Sequence[int]],
    *,
    device: torch.device | str,
) -> npt.NDArray[np.float64]:
    """Return the result of `target_log_probs` by any `Stepper`: an ensemble has the mean of its members'
    probabilities.

    Args:
        stepper: the model.
        sources: images, or ids without end token.
        targets: ids without end token.
        device: device of the model.

    Returns:
        (n,), in nats.
    """
    batch = _make_pair_batch_function(sources, targets, stepper.max_length - 1)(np.arange(len(targets))).to(device)
    with torch.inference_mode():
        state = stepper.start(batch.source, stepper.source_layout(batch.source, batch.source_lengths))
    begin_ids = torch.full((len(targets),), BOS_ID, device=device)
    log_probs = stepped_log_probs(stepper, state, begin_ids, [[*target, EOS_ID] for target in targets])
    sums = np.array([math.fsum(each) for each in log_probs])
    check_not_nan(sums)
    return sums


def forced_text_log_probs(
    model: CausalModel,
    texts: Sequence[Sequence[int]],
    starts: Sequence[int],
    *,
    device: torch.device | str = "cpu",
) -> npt.NDArray[np.float64]:
    """Return log p(pieces of a text from place `start` on | those before) of each text by a language model, in nats.

    The model must be in eval mode.

    Args:
        model: the language model.
        texts: ids without begin token; an end token counts where it is there. No text may be empty, or longer than the
            model reads.
        starts: of each text, the place of the first piece that counts.
        device: device of the model.

    Returns:
        (n,).
    """
    lengths, start_positions = np.array([len(text) for text in texts], np.int64), np.array(starts, np.int64)
    ids = np.array([piece for text in texts for piece in text], np.int32)
    text_starts, sums = np.cumsum(lengths) - lengths, np.zeros(len(texts))
    with torch.inference_mode():
        for rows in length_sorted_batches(lengths, lengths, budget=MAX_BATCH_TOKENS):
            batch = make_window_batch(ids, text_starts[rows], lengths[rows]).to(device)
            hidden = model.hidden_states(batch.tokens_in, Layout.from_lengths(batch.lengths, batch.tokens_in.device))
            tokens = _log_probs_in_chunks(model.output, hidden, batch.tokens_out)
            text_indices = np.repeat(np.arange(len(rows)), lengths[rows])
            positions = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths[rows]) - lengths[rows], lengths[rows])
            tokens[positions < start_positions[rows][text_indices]] = 0
            sums[rows] = np.bincount(text_indices, tokens, len(rows))
    check_not_nan(sums)
    return sums


def forced_text_log_probs_by_steps(
    stepper: Any, texts: Sequence[Sequence[int]], starts: Sequence[int], *, device: torch.device | str = "cpu"
) -> npt.NDArray[np.float64]:
    """Return the result of `forced_text_log_probs` by any `LanguageModel` stepper: an ensemble has the mean of
    probabilities.

    Args:
        stepper: the model.
        texts: ids without begin token.
        starts: of each text, the place of the first piece that counts.
        device: device of the model.

    Returns:
        (n,), in nats.
    """
    with torch.inference_mode():
        state = stepper.empty_state(len(texts), device)
    begin_ids = torch.full((len(texts),), BOS_ID, device=device)
    log_probs = stepped_log_probs(stepper, state, begin_ids, texts)
    sums = np.array([math.fsum(each[start:]) for each, start in zip(log_probs, starts, strict=True)])
    check_not_nan(sums)
    return sums


def _target_log_prob_sums(model: Seq2SeqModel, batch: PairBatch) -> Tensor:
    """Return the sums of log-probabilities (B,), float64."""
    source = model.source_layout(batch.source, batch.source_lengths)
    target = Layout.from_lengths(batch.target_lengths, batch.source.device)
    hidden = model(batch.source, source, batch.target_in, target)
    tokens = torch.from_numpy(_log_probs_in_chunks(model.output, hidden, batch.target_out))
    sentences = torch.repeat_interleave(batch.target_lengths.cpu())
    return torch.zeros(len(batch.target_lengths), dtype=torch.float64).index_add_(0, sentences, tokens)


def _log_probs_in_chunks(
    output: Callable[[Tensor], Tensor], hidden: Tensor, targets: Tensor
) -> npt.NDArray[np.float64]:
    """Log-probability of each wanted token (N,); logits (N, V) of a whole batch need not fit into memory."""
    parts = zip(torch.split(hidden, MAX_BATCH_ROWS), torch.split(targets, MAX_BATCH_ROWS), strict=True)
    log_probs: npt.NDArray[np.float64] = (
        torch.cat([token_log_probs(output(h), w) for h, w in parts]).cpu().double().numpy()
    )
    return log_probs


def token_log_probs(logits: Tensor, targets: Tensor) -> Tensor:
    """Log-probability of each wanted token (n,) under its row of logits (n, V)."""
    if logits.dtype in (torch.bfloat16, torch.float16):
        logits = logits.float()
    return logits.gather(1, targets.unsqueeze(1)).squeeze(1) - logits.logsumexp(1)
