"""Boilerplate: texts that stand in very many pairs on the same side, numbers apart ("page 3 of 12", cookie notices).

The score is the number of pairs, among those that passed all rules before, that have the text of a pair's source or
target, whichever has more.
"""

import numpy as np

from tfm.pipeline.cleaning.rules.corpora.config import BoilerplateConfig
from tfm.pipeline.cleaning.rules.corpora.text_keys import Keys, fold_numbers, hash_texts, separate_directions
from tfm.pipeline.cleaning.text_batch import TextPairBatch


def boilerplate_keys(pairs: TextPairBatch, config: BoilerplateConfig) -> Keys:
    """(n, 2) a key of the source and one of the target of each pair."""
    target = hash_texts(map(fold_numbers, pairs.target.texts))
    source = hash_texts(map(fold_numbers, pairs.source.texts)) if pairs.has_source else target
    return separate_directions(np.stack([source, target], 1), pairs.languages)
