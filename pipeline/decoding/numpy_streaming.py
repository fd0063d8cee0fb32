"""A language model in numpy that continues a prompt, piece by piece: the texts of `streaming.py`, without torch.

Legend: W texts in parallel · T pieces read so far, the begin token first · V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tfm.data.errors import DataError
from tfm.model.numpy_inference.decoder_only import DecoderOnly
from tfm.model.numpy_inference.layers import Array
from tfm.model.numpy_inference.transformer import Cache, select_cache_rows
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.search.hypothesis import NON_FINITE_MESSAGE, NextPieces
from tfm.pipeline.decoding.search.numpy_beam_search import apply_length_limits
from tfm.pipeline.decoding.search.numpy_sampling import draw_tokens, sampling_key, uniform_numbers
from tfm.tokenizer.special import BOS_ID, EOS_ID


@dataclass(frozen=True)
class PromptedNetwork:
    """A language model that has read a prompt, as a network that a beam searches. The source is not looked at."""

    network: DecoderOnly
    prompt: Sequence[int]

    @property
    def max_length(self) -> int:
        """The most pieces after the prompt, end token included."""
        return self.network.max_length - len(self.prompt)

    def encode(self, source: Sequence[int]) -> Cache:
        """Return nothing: there is no source."""
        return []

    def empty_cache(self) -> Cache:
        """Return the cache that holds all of the prompt but its last piece."""
        return self.network.prefill(np.array([[BOS_ID, *self.prompt]]))

    def step(self, tokens: Array, memory: Cache, cache: Cache) -> tuple[Array, Cache]:
        """A text begins with the last piece of the prompt, not with the begin token; the rest as `DecoderOnly`."""
        last = self.prompt[-1] if self.prompt else BOS_ID
        return self.network.step(np.where(tokens == BOS_ID, last, tokens), cache)


def truncate_context(pieces: Array, context: int) -> Array:
    """Return the begin token and the last context / 2 pieces of texts (W, T) longer than `context`."""
    if pieces.shape[1] <= context:
        return pieces
    return np.concatenate([pieces[:, :1], pieces[:, -(context // 2) :]], 1)


def generate_stream(
    network: DecoderOnly,
    prompt: Sequence[int],
    samples: Sequence[int],
    config: DecodingConfig,
    *,
    longest: int,
    context: int,
    continue_past_line_end: bool,
) -> Iterator[NextPieces]:
    """Yield, as they grow, texts that continue a prompt; see `streaming.generate_stream`.

    Args:
        network: the language model.
        prompt: ids of the prompt.
        samples: the number of each text, by which it is drawn.
        config: the [decoding] part of a recipe, which forbids and forces nothing.
        longest: the most pieces of a text.
        context: the most pieces that the model reads; with `continue_past_line_end` text goes on from their last half.
        continue_past_line_end: whether the end token is a piece like others; a text ends after `longest` pieces.
    """
    limits = (0, longest + 1) if continue_past_line_end else (min(config.min_length, longest), longest)
    texts = np.arange(len(samples))
    keys = np.array([sampling_key(config.seed, [BOS_ID, *prompt], sample) for sample in samples], np.uint64)
    pieces = np.array([[BOS_ID, *prompt]] * len(samples))
    window = truncate_context(pieces, context)
    cache, num_read = network.prefill(window), window.shape[1] - 1
    for length in range(longest if continue_past_line_end else longest + 1):
        if num_read == context:
            window = truncate_context(pieces, context)
            cache, num_read = network.prefill(window), window.shape[1] - 1
        with np.errstate(all="ignore"):  # a number that is not finite is an error below
            log_probs, cache = network.step(pieces[:, -1], cache)
        num_read += 1
        apply_length_limits(log_probs, length, limits)
        tokens = _choose_token(config, log_probs, keys[texts], length)
        values = log_probs[np.arange(len(tokens)), tokens]
        if not np.isfinite(values).all():
            raise DataError(NON_FINITE_MESSAGE)
        yield NextPieces(texts.tolist(), tokens.tolist(), values.tolist())
        pieces = np.concatenate([pieces, tokens[:, None]], 1)
        if not continue_past_line_end and (tokens == EOS_ID).any():
            rows = np.flatnonzero(tokens != EOS_ID)
            if not len(rows):
                return
            cache, pieces, texts = select_cache_rows(cache, rows), pieces[rows], texts[rows]


def _choose_token(config: DecodingConfig, log_probs: Array, keys: Array, length: int) -> Array:
    """The next piece of each text (W,): the likeliest, or one that is drawn."""
    if config.strategy == "search" or config.temperature == 0 or config.top_k == 1:
        return log_probs.argmax(1)
    uniform = uniform_numbers(keys, np.full(len(keys), length))
    return draw_tokens(log_probs, uniform, config.temperature, config.top_k, config.top_p)
