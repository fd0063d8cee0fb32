"""Pairs whose texts validation or test data have too: figures on those data would then be of what was learned by heart.

Texts are the same where they differ in white space, invisible marks, Unicode normal form and case alone. Held-out texts
are compared as the rules that change texts would change them, since training texts are.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tfm.pipeline.cleaning.rules.corpora.config import OverlapConfig
from tfm.pipeline.cleaning.rules.corpora.text_keys import Keys, fold_spelling, hash_texts
from tfm.pipeline.cleaning.text_batch import Bools, Floats, TextPairBatch, as_column


@dataclass(frozen=True)
class HeldOutKeys:
    """Keys of the pairs of validation and test data, each sorted."""

    sources: Keys
    targets: Keys
    pairs: Keys

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], *, both_ways: bool = False) -> "HeldOutKeys":
        """Return the keys of some pairs; texts that are empty are no text.

        Args:
            pairs: of validation and test data, one for each reference.
            both_ways: whether training data may have them the other way round, as those of several languages may.
        """
        folded_pairs = [(fold_spelling(source), fold_spelling(target)) for source, target in pairs]
        folded_pairs += [(target, source) for source, target in folded_pairs] if both_ways else []
        sources, targets = (np.unique(hash_texts(each[side] for each in folded_pairs if each[side])) for side in (0, 1))
        return cls(sources, targets, np.unique(_hash_pairs(folded_pairs)))


def mark_shared_pairs(pairs: TextPairBatch, config: OverlapConfig, held_out: HeldOutKeys) -> Floats:
    """(n, 1) 1 where a pair is shared with the held-out data, 0 where it is not."""
    folded_sides = [[fold_spelling(text) for text in side.texts] for side in (pairs.source, pairs.target)]
    if config.sides == "both" and pairs.has_source:
        return as_column(_is_in(_hash_pairs(zip(*folded_sides, strict=True)), held_out.pairs))
    is_shared = _is_in(hash_texts(folded_sides[1]), held_out.targets)
    if pairs.has_source:
        is_shared |= _is_in(hash_texts(folded_sides[0]), held_out.sources)
    return as_column(is_shared)


def _hash_pairs(folded_pairs: Iterable[tuple[str, str]]) -> Keys:
    return hash_texts(f"{source}\n{target}" for source, target in folded_pairs)


def _is_in(keys: Keys, sorted_keys: Keys) -> Bools:
    if not len(sorted_keys):
        return np.zeros(len(keys), np.bool_)
    indices = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[indices] == keys)
