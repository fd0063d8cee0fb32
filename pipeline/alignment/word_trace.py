"""Attention between words in the form of a trace, which `pipeline/attention_page/picture.py` draws."""

import numpy as np

from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner
from tfm.pipeline.attention_page.attended import AttendedToken, AttentionAxes, AttentionTrace, LayerAttention


def trace_words(aligner: WordAligner, pair: SentencePair, head: AlignmentHead) -> AttentionTrace:
    """Return the attention from each word of the target to each of the source: Bahdanau et al. 2015, figure 3.

    Args:
        aligner: the model.
        pair: the texts.
        head: the attention that aligns.
    """
    ((weights,),) = aligner.attention_weights([pair], [head])
    queries, keys = (tuple(AttendedToken(word, False) for word in text.split()) for text in (pair.target, pair.source))
    axes = AttentionAxes(queries, keys, ("",) * len(queries))
    padded_weights = np.zeros((1, len(queries), len(keys)), np.float32)
    padded_weights[0, : weights.shape[0], : weights.shape[1]] = weights
    return AttentionTrace(
        pair.source, pair.target, {"cross": axes}, (LayerAttention("words", "cross", 1, padded_weights),)
    )
