"""Limits of hypotheses: their length, the pieces that never come up in them, and the length norms that divide their
scores. No torch is needed.
"""

from collections.abc import Callable
from typing import Any

from tfm.pipeline.config import DecodingConfig
from tfm.tokenizer.special import BOS_ID, PAD_ID

NEG_INF = float("-inf")
"""The log-probability of a piece that may not come up."""
SUPPRESSED_TOKENS = (PAD_ID, BOS_ID)
FORCED_WORDS_NEED_BEAM_MESSAGE = 'forced words need beam search: strategy = "search" and beam > 1'

NumberArray = Any
"""An array of numpy, or a tensor."""
LENGTH_NORMS: dict[str, Callable[[NumberArray, float], NumberArray]] = {
    "none": lambda lengths, alpha: lengths**0.0,
    "average": lambda lengths, alpha: lengths**alpha,
    "wu": lambda lengths, alpha: ((5 + lengths) / 6) ** alpha,
}
"""The divisor of the log-probability of a hypothesis of T tokens (end token included) that gives its score.

none: 1. average: T^alpha. wu: ((5 + T) / 6)^alpha (Wu et al. 2016, eq. 14). None of them falls as T grows.
"""


def max_pieces(num_source_tokens: int, config: DecodingConfig, max_length: int) -> int:
    """Return the most pieces of a hypothesis.

    Args:
        num_source_tokens: tokens of the source, end token included.
        config: the [decoding] part of a recipe.
        max_length: most tokens that the model reads.
    """
    limit = config.max_length or int(config.max_ratio * num_source_tokens) + 20
    return min(limit, max_length - 1)
