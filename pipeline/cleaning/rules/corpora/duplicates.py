"""Equal pairs, of which the first stays; equal sources or targets where `sides` says so.

OpusFilter's `remove_duplicates` is the same (marks: `letters_only`, of its kinds of folding; here vowels of Indic and
Thai scripts that are signs, not letters, differ too).
"""

from tfm.pipeline.cleaning.rules.corpora.config import DuplicatesConfig
from tfm.pipeline.cleaning.rules.corpora.text_keys import TEXT_NORMALIZERS, Keys, hash_texts, separate_directions
from tfm.pipeline.cleaning.text_batch import TextPairBatch


def duplicate_keys(pairs: TextPairBatch, config: DuplicatesConfig) -> Keys:
    """(n, 1) a key of each pair, or of one side of it."""
    fold = TEXT_NORMALIZERS[config.ignore]
    if config.sides == "pair" and pairs.has_source:
        sides = zip(pairs.source.texts, pairs.target.texts, strict=True)
        keys = hash_texts(f"{fold(source)}\n{fold(target)}" for source, target in sides)
    else:
        side = pairs.source if config.sides == "source" and pairs.has_source else pairs.target
        keys = hash_texts(map(fold, side.texts))
    return separate_directions(keys.reshape(-1, 1), pairs.languages)
