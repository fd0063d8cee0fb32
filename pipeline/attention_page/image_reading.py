"""The attention of a trained model that reads an image: patches, or cells of its last map (Xu et al. 2015)."""

from pathlib import Path

import numpy as np
import torch

from tfm.data.batching.batches import pair_batch_from_images
from tfm.data.images.row_images import RowImages
from tfm.model.layout import Layout
from tfm.model.vision.image_shape import grid_size, pixels_per_image_token
from tfm.pipeline.attention_page.attended import (
    AttendedImage,
    AttendedToken,
    AttentionAxes,
    AttentionKind,
    AttentionTrace,
)
from tfm.pipeline.attention_page.forward_passes import FORWARD_SPECS, device_of, teacher_forced_axes
from tfm.pipeline.attention_page.reading import (
    check_has_attention,
    check_source_length,
    decode_hypotheses,
    generates_target,
    order_by_kind_and_layer,
)
from tfm.pipeline.attention_page.recorder import record_attentions
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.spelling import encode_without_unknown
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel, image_shape


def trace_image_file(loaded: LoadedModel, file: Path, target: str | None, config: DecodingConfig) -> AttentionTrace:
    """Record the attention of a model that reads an image and is made to say `target`, or says its own caption.

    Args:
        loaded: the model.
        file: the image file.
        target: the text that it is made to say; None: its own caption, of a model that writes.
        config: settings of its own caption.

    Raises:
        DataError: the model reads text, or the file is no image.
        RecipeError: the model has no attention, or a target is given to a model that writes no words.
    """
    check_has_attention(loaded)
    preparation = loaded.require_image_transform()
    images = RowImages.from_pixels(preparation.decode_pixels(file)[None], preparation)
    if not generates_target(loaded):
        if target is not None:
            raise RecipeError(f"--target: this model ({loaded.config.task}) writes no words: remove it")
        return _trace_image(loaded, file, images, None)
    if target is None:
        (target_ids,) = decode_hypotheses(loaded, images, config)
    else:
        target_ids = check_source_length(
            loaded, encode_without_unknown(loaded.target_tokenizer, [target], "the target")[0], target
        )
    return _trace_image(loaded, file, images, target_ids)


def _trace_image(loaded: LoadedModel, file: Path, images: RowImages, target: list[int] | None) -> AttentionTrace:
    """One pass of the network over the image, and the weights of its attentions."""
    image = _make_attended_image(loaded, images)
    cells = tuple(
        AttendedToken(f"row {row}, column {column}", False)
        for row in range(1, image.rows + 1)
        for column in range(1, image.columns + 1)
    )
    axes: dict[AttentionKind, AttentionAxes] = {
        "encoder": AttentionAxes(cells, cells, ("",) * len(cells), ("queries", "keys"))
    }
    batch = pair_batch_from_images(images.take(np.zeros(1, np.int64)), [target or []], images.preparation)
    batch = batch.to(device_of(loaded))
    with torch.inference_mode(), record_attentions(loaded.model) as recorder:
        layout = loaded.model.source_layout(batch.source, batch.source_lengths)
        if target is None:
            loaded.model.encode(batch.source, layout)
        else:
            loaded.model(
                batch.source, layout, batch.target_in, Layout.from_lengths(batch.target_lengths, batch.source.device)
            )
            axes |= teacher_forced_axes(loaded, target, cells, is_image=True)
        attentions = order_by_kind_and_layer(recorder.pop_weights(), FORWARD_SPECS[loaded.config.architecture].kind)
    target_text = None if target is None else loaded.target_tokenizer.decode(target)
    return AttentionTrace(
        str(file), target_text, {each.kind: axes[each.kind] for each in attentions}, attentions, image
    )


def _make_attended_image(loaded: LoadedModel, images: RowImages) -> AttendedImage:
    """The image as the network has it: rows and columns of tokens."""
    shape = image_shape(images.preparation)
    assert shape is not None
    assert loaded.config.vision is not None
    return AttendedImage(
        images.take(np.zeros(1, np.int64))[0],
        *grid_size(loaded.config.vision, shape),
        pixels_per_image_token(loaded.config.vision),
    )
