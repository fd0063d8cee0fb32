"""A language model that continues a prompt by a compiled loop: the texts of `streaming.py`, in fewer calls.

Legend: N texts in parallel · T pieces of a text, the begin token first.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import torch

from tfm.data.errors import DataError
from tfm.model.cpu_kernels.dispatch import use_compiled_kernels
from tfm.model.fused.text_generation import (
    CompiledGenerationBatch,
    TokenSamplingSettings,
    make_compiled_generation_batch,
)
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.numpy_streaming import truncate_context
from tfm.pipeline.decoding.search.hypothesis import NON_FINITE_MESSAGE, NextPieces
from tfm.pipeline.decoding.search.numpy_sampling import sampling_key, uniform_numbers
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

SPECIAL_IDS = (PAD_ID, BOS_ID, EOS_ID)
MAX_STEPS_PER_CALL = 8
"""The most pieces of a text that are written before they are shown."""
MIN_TEXTS_PER_THREAD = 4
"""The loop works on so many texts side by side."""


def generate_compiled_stream(
    model: object,
    prompts: Sequence[Sequence[int]],
    samples: Sequence[int],
    config: DecodingConfig,
    *,
    longest: int,
    context: int,
    continue_past_line_end: bool,
) -> Iterator[NextPieces] | None:
    """Return the texts of `streaming.generate_stream`, without bans; None if the loop does not apply.

    Args:
        model: the language model.
        prompts: ids of the prompt of each text; all have as many pieces.
        samples: the number of each text among those of its prompt.
        config: the [decoding] part of a recipe.
        longest: the most pieces of a text.
        context: the most pieces that the model reads; with `continue_past_line_end` text goes on from their last half.
        continue_past_line_end: whether the end token is a piece like others; a text ends after `longest` pieces.
    """
    if _start_compiled_texts(model, [[BOS_ID]], 1) is None:
        return None
    if config.strategy == "search" or config.temperature == 0:
        choice = TokenSamplingSettings(top_k=1)
    else:
        choice = TokenSamplingSettings(config.temperature, config.top_k, config.top_p)
    limits = (0, longest + 1) if continue_past_line_end else (min(config.min_length, longest), longest)

    capacity = min(context, len(prompts[0]) + longest + 2)  # what is read: begin token, prompt and text

    def start_texts(pieces: Any) -> CompiledGenerationBatch:
        batch = _start_compiled_texts(model, truncate_context(pieces, context), capacity)
        assert batch is not None
        return batch

    return _stream_pieces(start_texts, prompts, samples, config, choice, limits, context, continue_past_line_end)


def _start_compiled_texts(model: object, pieces: Any, num_new_pieces: int) -> CompiledGenerationBatch | None:
    """Return texts that begin with pieces (N, T); None if the loop does not apply, or numba is not installed."""
    with use_compiled_kernels(True):
        return make_compiled_generation_batch(model, pieces, num_new_pieces, SPECIAL_IDS)


def _stream_pieces(
    start_texts: Callable[[Any], CompiledGenerationBatch],
    prompts: Sequence[Sequence[int]],
    samples: Sequence[int],
    config: DecodingConfig,
    choice: TokenSamplingSettings,
    limits: tuple[int, int],
    context: int,
    continue_past_line_end: bool,
) -> Iterator[NextPieces]:
    """Yield the pieces of all texts, which threads share.

    Args:
        start_texts: makes the texts that begin with pieces (N, T).
        prompts: ids of the prompt of each text; all have as many pieces.
        samples: the number of each text among those of its prompt.
        config: the [decoding] part of a recipe.
        choice: how pieces are chosen.
        limits: the fewest pieces before the end token, and the most pieces.
        context: the most pieces that the model reads.
        continue_past_line_end: whether the end token is a piece like others.
    """
    (shortest, longest), start_ids = limits, [[BOS_ID, *prompt] for prompt in prompts]
    texts, total = np.arange(len(start_ids)), longest - 1 if continue_past_line_end else longest + 1
    keys = np.array([sampling_key(config.seed, *each) for each in zip(start_ids, samples, strict=True)], np.uint64)
    pieces = np.array(start_ids)
    num_threads = max(1, min(torch.get_num_threads(), len(pieces) // MIN_TEXTS_PER_THREAD))
    with ExitStack() as stack:
        run = map if num_threads == 1 else stack.enter_context(ThreadPoolExecutor(num_threads)).map
        shares: list[CompiledGenerationBatch] = []
        length = num_before_truncation = 0  # the number of new pieces of each text, and that before it was truncated
        while length < total and len(texts):
            if not shares or shares[0].num_read == context:
                shares = [start_texts(each) for each in np.array_split(pieces, min(num_threads, len(pieces)))]
                num_before_truncation = length
            steps = min(MAX_STEPS_PER_CALL, total - length, context - shares[0].num_read)
            numbers = uniform_numbers(keys[texts].repeat(steps), np.tile(length + np.arange(steps), len(texts)))
            bounds = np.cumsum([len(share) for share in shares])[:-1]
            splits = np.split(numbers.reshape(-1, steps), bounds)

            append = partial(
                CompiledGenerationBatch.extend_texts,
                sampling=choice,
                shortest=shortest - num_before_truncation,
                longest=longest - num_before_truncation,
            )
            new, values = (np.concatenate(each) for each in zip(*run(append, shares, splits), strict=True))
            yield from _pieces_by_step(texts, new, values, continue_past_line_end)
            pieces, length = np.concatenate([pieces, new], 1), length + steps
            if not continue_past_line_end and (finished := (new == EOS_ID).any(1)).any():
                rows = np.flatnonzero(~finished)
                for share, active in zip(shares, np.split(~finished, bounds), strict=True):
                    share.select(active)
                shares = [share for share in shares if len(share)]
                texts, pieces = texts[rows], pieces[rows]


def _pieces_by_step(texts: Any, pieces: Any, log_probs: Any, continue_past_line_end: bool) -> Iterator[NextPieces]:
    """Yield the new pieces (N, T) of texts one after another, of each up to its end token."""
    active = np.ones(len(texts), bool)
    for new, values in zip(pieces.T, log_probs.T, strict=True):
        if not np.isfinite(values[active]).all():
            raise DataError(NON_FINITE_MESSAGE)
        yield NextPieces(texts[active].tolist(), new[active].tolist(), values[active].tolist())
        if not continue_past_line_end:
            active &= new != EOS_ID
            if not active.any():
                return
