"""The alignment of a translation with its source, from the attention of a model in numpy."""

import numpy as np

from tfm.model.numpy_inference.cross_attention_weights import cross_attention_weights
from tfm.pipeline.alignment.word_pieces import alignment_weights
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.serving.text.alignment import Alignment
from tfm.tokenizer.special import BOS_ID, EOS_ID


def align_by_numpy(model: NumpyModel, source: str, target: str) -> Alignment | None:
    """Return the alignment of `model_alignment.align_by_attention`, without torch.

    Args:
        model: a model that translates.
        source: the text.
        target: its translation.

    Returns:
        The alignment; None if a text has no pieces or too many.
    """
    sources, targets = model.source_tokenizer.encode_spans(source), model.target_tokenizer.encode_spans(target)
    if not sources or not targets or max(len(sources) + 3, len(targets)) >= model.network.max_length:
        return None
    read = [*model.source_tokenizer.encode(source), EOS_ID]
    tokens = [BOS_ID, *(number for number, _, _ in targets)]
    layers = cross_attention_weights(model.network, read, tokens).astype(np.float64)
    weights = alignment_weights(list(layers), model.guided)
    spans = [tuple((start, end) for _, start, end in pieces) for pieces in (sources, targets)]
    return Alignment(spans[0], spans[1], weights[:, -1 - len(sources) : -1])
