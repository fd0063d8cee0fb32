"""Tags: control tokens before a source that say what kind of training text it is of (Caswell et al. 2019): `<BT>`.

No text can spell one: as with all control tokens, a text of these characters is encoded as any other text.
"""

import re
from collections.abc import Iterable

import numpy as np
import tokenizers
from numpy.typing import NDArray

from tfm.tokenizer.sampled import Ints, RandomKeys, SegmentationSampler
from tfm.tokenizer.special import SPECIAL_TOKENS, TAG_PATTERN
from tfm.tokenizer.words import FlatIds

MAX_PREFIX_TOKENS = 3
"""The most control tokens before a source: of the target's language, of its own, and a tag."""


def add_tags(backend: tokenizers.Tokenizer, tags: Iterable[str]) -> None:
    """Add tags after all other pieces, in alphabetical order."""
    tokens = sorted(set(tags))
    backend.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in tokens])


def tag_ids(backend: tokenizers.Tokenizer) -> dict[str, int]:
    """The tags of a tokenizer: their ids by their spelling, in the order of the ids."""
    added_tokens = sorted(backend.get_added_tokens_decoder().items())
    special_tokens = ((number, token.content) for number, token in added_tokens if token.special)
    return {
        content: number
        for number, content in special_tokens
        if content not in SPECIAL_TOKENS and re.fullmatch(TAG_PATTERN, content)
    }


class PrefixKeepingSampler:
    """Draws other pieces (`tokenizer.sampled`) of a row behind the control tokens that it begins with.

    Args:
        sampler: draws the pieces.
        control: the ids of all languages and tags.
    """

    def __init__(self, sampler: SegmentationSampler, control: Iterable[int]) -> None:
        self._sampler, self._control = sampler, [*control]

    def __call__(self, ids: NDArray[np.int32], lengths: Ints, keys: RandomKeys) -> FlatIds:
        starts = np.cumsum(lengths) - lengths
        num_prefix = np.zeros(len(lengths), np.int64)
        for index in range(MAX_PREFIX_TOKENS):
            rows = np.flatnonzero((num_prefix == index) & (lengths > index))
            num_prefix[rows] += np.isin(ids[starts[rows] + index], self._control)
        prefix_indices = (
            np.repeat(starts, num_prefix)
            + np.arange(num_prefix.sum())
            - np.repeat(np.cumsum(num_prefix) - num_prefix, num_prefix)
        )
        new, new_lengths = self._sampler(np.delete(ids, prefix_indices), lengths - num_prefix, keys)
        new_begins = np.cumsum(new_lengths) - new_lengths
        return np.insert(new, np.repeat(new_begins, num_prefix), ids[prefix_indices]).astype(
            np.int32
        ), new_lengths + num_prefix
