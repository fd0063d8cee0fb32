"""Attention as a picture: rows are queries, columns keys, gray levels the weights.

For cross-attention it is the alignment of Bahdanau et al. 2015, figure 3; of an image, the image once for each word,
bright where attention is (Xu et al. 2015, figure 3).
"""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm.data.errors import format_count
from tfm.pipeline.attention_page.attended import (
    ATTENTION_KIND_TITLES,
    AttendedImage,
    AttendedToken,
    AttentionKind,
    AttentionTrace,
    Weights,
)
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.label_fonts import font_rc_params

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL_INCHES = 0.24  # inches
IMAGES_PER_ROW = 5
AXIS_LABELS: dict[AttentionKind, tuple[str, str]] = {
    "encoder": ("source token that is attended to", "source token"),
    "decoder": ("token that is attended to", "token read"),
    "cross": ("source", "target"),
}
PICTURE_SUFFIXES = (".png", ".svg")
_PLOT_STYLE = {"font.size": 8.0, "svg.hashsalt": "tfm", "svg.fonttype": "none"}


@dataclass(frozen=True)
class AttentionView:
    """Selection of the attention that is shown.

    Args:
        kind: encoder, decoder or cross.
        layer: from 1; None: the mean of all.
        head: from 1; None: the mean of all.
    """

    kind: AttentionKind
    layer: int | None
    head: int | None


def choose_view(
    trace: AttentionTrace, kind: str | None = None, layer: int | None = None, head: int | None = None
) -> AttentionView:
    """Return the requested view; without a kind it is the cross-attention, if the model has one.

    Args:
        trace: the attention of the model.
        kind: encoder, decoder or cross.
        layer: from 1; None: all.
        head: from 1; None: all.

    Raises:
        RecipeError: the model has no such kind, layer or head.
    """
    kinds = list(trace.axes)
    chosen_kind = next((each for each in kinds if each == kind), None) if kind else kinds[-1]
    if chosen_kind is None:
        raise RecipeError(f"--kind {kind}: this model has {', '.join(kinds)}")
    layers = trace.layers(chosen_kind)
    if layer is not None and not 1 <= layer <= len(layers):
        raise RecipeError(f"--layer {layer}: the {ATTENTION_KIND_TITLES[chosen_kind]} has layers 1 to {len(layers)}")
    if head is not None and layer is None and len(layers) > 1:
        raise RecipeError(f"--head {head}: give the layer too, with --layer 1 to {len(layers)}")
    heads = len(layers[(layer or 1) - 1].weights)
    if head is not None and not 1 <= head <= heads:
        raise RecipeError(f"--head {head}: the {ATTENTION_KIND_TITLES[chosen_kind]} has heads 1 to {heads}")
    return AttentionView(chosen_kind, layer or (1 if len(layers) == 1 else None), head or (1 if heads == 1 else None))


def view_weights(trace: AttentionTrace, view: AttentionView) -> Weights:
    """The weights (T, S) of a view; a mean is one over all heads of all its layers."""
    layers = [each.weights for each in trace.layers(view.kind) if view.layer in (None, each.layer)]
    heads = np.concatenate(layers) if view.head is None else layers[0][view.head - 1 : view.head]
    mean: Weights = heads.mean(0)
    return mean


def view_title(trace: AttentionTrace, view: AttentionView) -> str:
    """The title of a view, in words."""
    layers = trace.layers(view.kind)
    if len(layers) == 1 and len(layers[0].weights) == 1:
        return ATTENTION_KIND_TITLES[view.kind]
    if view.layer is None:
        num_heads = sum(len(each.weights) for each in layers)
        heads, stack = format_count(num_heads, "head"), format_count(len(layers), "layer")
        return f"{ATTENTION_KIND_TITLES[view.kind]}, mean of {heads} of {stack}"
    heads_label = (
        f"mean of {format_count(len(layers[0].weights), 'head')}" if view.head is None else f"head {view.head}"
    )
    return f"{ATTENTION_KIND_TITLES[view.kind]}, layer {view.layer}, {heads_label}"


def draw_picture(trace: AttentionTrace, view: AttentionView, file_suffix: str = ".png") -> bytes:
    """Draw a view: black for 0, white for 1. The same reading gives the same bytes.

    Args:
        trace: the attention of the model.
        view: the attention that is drawn.
        file_suffix: one of PICTURE_SUFFIXES.

    Returns:
        The bytes of a PNG or SVG file.
    """
    # matplotlib takes most of a second to import: only a drawing pays for it
    import matplotlib
    from matplotlib.figure import Figure

    axes_of, weights = trace.axes[view.kind], view_weights(trace, view)
    style: Any = _PLOT_STYLE | font_rc_params(token_labels(trace, view))
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # a character that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        size = (max(3.2, CELL_INCHES * weights.shape[1] + 1.8), max(2.0, CELL_INCHES * weights.shape[0] + 1.8))
        if trace.image is not None and axes_of.on_image == ("keys",):
            figure = _draw_words_on_image(trace.image, axes_of.queries, weights)
            figure.suptitle(view_title(trace, view), fontsize=9, parse_math=False)
            return _encode_figure(figure, file_suffix)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.imshow(weights, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        axes.set_xticks(range(weights.shape[1]), _tick_labels(axes_of.keys), rotation=90, parse_math=False)
        axes.set_yticks(range(weights.shape[0]), _tick_labels(axes_of.queries), parse_math=False)
        columns, rows = AXIS_LABELS[view.kind]
        axes.set_xlabel(columns)
        axes.set_ylabel(rows)
        figure.suptitle(view_title(trace, view), fontsize=9, parse_math=False)
        return _encode_figure(figure, file_suffix)


def _draw_words_on_image(image: AttendedImage, words: Sequence[AttendedToken], weights: Weights) -> "Figure":
    """The image once for each word, dark where the word attends least."""
    from matplotlib.figure import Figure

    num_rows = -(-len(words) // IMAGES_PER_ROW)
    figure = Figure(figsize=(1.5 * IMAGES_PER_ROW, 1.7 * num_rows + 0.4), layout="constrained")
    panels = figure.subplots(num_rows, IMAGES_PER_ROW, squeeze=False).ravel()
    height, width, channels = image.pixels.shape
    for panel in panels:
        panel.set_axis_off()
    for panel, word, shares in zip(panels, words, weights, strict=False):
        spread = shares.reshape(image.rows, image.columns).repeat(image.side, 0).repeat(image.side, 1)
        bright = 0.15 + 0.85 * spread[:height, :width, None] / max(float(shares.max()), 1e-9)
        colours = np.repeat(image.pixels, 3 // channels, axis=2)
        panel.imshow((colours * bright).astype(np.uint8), interpolation="nearest")
        panel.set_title(word.text, fontsize=9, parse_math=False)
    return figure


def _encode_figure(figure: "Figure", file_suffix: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Software": None} if file_suffix == ".png" else {"Date": None, "Creator": None}
    figure.savefig(buffer, format=file_suffix[1:], dpi=120, metadata=metadata)
    return buffer.getvalue()


def token_labels(trace: AttentionTrace, view: AttentionView) -> list[str]:
    """The tokens beside a picture."""
    axes_of = trace.axes[view.kind]
    return [*_tick_labels(axes_of.keys), *_tick_labels(axes_of.queries)]


def _tick_labels(tokens: Sequence[AttendedToken]) -> list[str]:
    return [token.text for token in tokens]
