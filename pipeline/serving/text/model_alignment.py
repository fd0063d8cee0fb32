"""The alignment of a translation with its source, from the attention of the model that made it.

Legend: L layers · H heads · T pieces of the translation · S pieces of the source.
"""

import numpy as np

from tfm.pipeline.alignment.word_pieces import alignment_weights
from tfm.pipeline.attention_page.attended import AttentionTrace
from tfm.pipeline.attention_page.reading import trace_attention
from tfm.pipeline.config import GuidedAlignmentConfig
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.serving.text.alignment import Alignment, Floats


def align_by_attention(loaded: LoadedModel, source: str, target: str) -> Alignment | None:
    """Return how much each piece of a translation attends to each of its source, by teacher forcing.

    The weights are those of the head that was trained to align. Without one they are the mean over all heads of all
    layers, of the row that predicts a piece: on the built-in corpus neither one layer nor the row that reads the piece
    finds as many of the words' sources.

    Args:
        loaded: a model that translates, in eval mode.
        source: the text.
        target: its translation.

    Returns:
        The alignment; None if the model has no attention from the one to the other, or a text no pieces or too many.
    """
    sources, targets = loaded.source_tokenizer.encode_spans(source), loaded.target_tokenizer.encode_spans(target)
    if not sources or not targets or max(len(sources) + 3, len(targets)) >= loaded.model.max_length:
        return None
    ids = loaded.source_tokenizer.encode(source)
    read = trace_attention(loaded, source, ids, [number for number, _, _ in targets])
    weights = _alignment_weights(read, len(sources), len(targets), loaded.guided)
    if weights is None:
        return None
    spans = [tuple((start, end) for _, start, end in pieces) for pieces in (sources, targets)]
    return Alignment(spans[0], spans[1], weights)


def _alignment_weights(
    trace: AttentionTrace, num_sources: int, num_targets: int, guided: GuidedAlignmentConfig | None
) -> Floats | None:
    """The weights (T, S) of a trace: the source ends with its end token, before it tokens of languages may stand."""
    crossing = trace.layers("cross")
    layers = crossing or trace.layers("decoder")
    if not layers:
        return None
    layer_weights = [layer.weights.astype(np.float64) for layer in layers]
    rows, columns = layer_weights[0].shape[1:]
    if crossing:
        first, last = columns - 1 - num_sources, columns - 1
    else:  # one text: source, end, begin, translation
        last = columns - 2 - num_targets
        first = last - num_sources
    begin = rows - 1 - num_targets
    if first < 0 or begin < 0:
        return None
    return alignment_weights([each[:, begin:, first:last] for each in layer_weights], guided)
