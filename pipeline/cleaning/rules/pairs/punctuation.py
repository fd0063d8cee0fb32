"""Sentences that were cut or joined: marks that end a sentence (. ? ! …) on both sides, s and t of them.

-log(1 + |s - t| + max(s - 1, 0) + max(t - 1, 0)) of Vázquez et al. 2019, which OpusFilter has as
TerminalPunctuationFilter, but for . ? ! … alone; here the marks of other scripts count too.
"""

import numpy as np

from tfm.pipeline.cleaning.rules.character_sets import character_table
from tfm.pipeline.cleaning.rules.pairs.config import PunctuationConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column

END_MARKS = "[.?!…。？！｡؟۔।։።]"


def measure_end_mark_similarity(pairs: TextPairBatch, config: PunctuationConfig) -> Floats:
    """(n, 1) the likeness of the ends of sentences."""
    source, target = (side.count_flagged(character_table(END_MARKS)[side.characters]) for side in pairs.sides)
    penalty = np.abs(source - target) + np.maximum(source - 1, 0) + np.maximum(target - 1, 0)
    return as_column(-np.log(penalty + 1.0))
