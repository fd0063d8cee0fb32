"""The cross-attention of a model that reads pairs by teacher forcing, in batches.

Legend: L layers · H heads · T pieces of the target · S pieces of the source.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from tfm.data.batching.batches import pair_batch_from_ids
from tfm.data.batching.buckets import length_sorted_batches
from tfm.model.layout import Layout
from tfm.model.transformer.language_prefix import LanguagePrefixModel
from tfm.pipeline.alignment.word_pieces import Weights
from tfm.pipeline.attention_page.forward_passes import FORWARD_SPECS, device_of
from tfm.pipeline.attention_page.reading import generates_target
from tfm.pipeline.attention_page.recorder import attention_modules, record_attentions
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel

MAX_BATCH_TOKENS = 4096


def cross_attention_sizes(loaded: LoadedModel) -> list[int]:
    """Return H of each layer with cross-attention.

    Raises:
        DataError: the model reads images.
        RecipeError: the model has no cross-attention between pieces of a source and a target.
    """
    loaded.check_reads_text("alignments are between words of two texts")
    config, folder = loaded.config, loaded.folder
    if not generates_target(loaded):
        raise RecipeError(f"{folder}: this model ({config.task}) has one text: only models that translate align words")
    if config.canine is not None or isinstance(loaded.model, LanguagePrefixModel):
        raise RecipeError(f"{folder}: this model's encoder has no row for each piece of the source: it aligns no words")
    kind_of = FORWARD_SPECS[config.architecture].kind
    layers = [name for name, *_ in attention_modules(loaded.model) if kind_of(name) == "cross"]
    if not layers:
        raise RecipeError(f"{folder}: this model ({config.architecture}) has no cross-attention: it aligns no words")
    return [config.decoder.heads if config.architecture == "transformer" else 1 for _ in layers]


def cross_attentions(
    loaded: LoadedModel, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Iterator[tuple[int, list[Weights]]]:
    """Yield the number of each pair, in any order, and the weights (H, T + 1, S) of its layers.

    Row t of T + 1 has read t pieces of the target, and predicts the next one. Attention to the end token of the source
    is left out.

    Args:
        loaded: the model, in eval mode.
        sources: ids, without end token.
        targets: ids, without end token.
    """
    device, kind_of = device_of(loaded), FORWARD_SPECS[loaded.config.architecture].kind
    lengths = [np.array([len(ids) + 1 for ids in side], np.int64) for side in (sources, targets)]
    batches = length_sorted_batches(*lengths, budget=MAX_BATCH_TOKENS)
    if loaded.config.architecture == "recurrent":  # the steps of a shorter target end earlier: equal lengths together
        batches = [
            batch_rows[lengths[1][batch_rows] == size]
            for batch_rows in batches
            for size in np.unique(lengths[1][batch_rows])
        ]
    for rows in batches:
        batch = pair_batch_from_ids([sources[row] for row in rows], [targets[row] for row in rows]).to(device)
        layouts = [Layout.from_lengths(each, device) for each in (batch.source_lengths, batch.target_lengths)]
        with torch.inference_mode(), record_attentions(loaded.model) as recorder:
            loaded.model(batch.source, layouts[0], batch.target_in, layouts[1])
            weights_by_layer = recorder.pop_weights()
        layers = [
            weights.double().cpu().numpy() for name, weights in weights_by_layer.items() if kind_of(name) == "cross"
        ]
        for number, row in enumerate(rows):
            shape = len(targets[row]) + 1, len(sources[row])
            yield int(row), [each[number, :, : shape[0], : shape[1]] for each in layers]
