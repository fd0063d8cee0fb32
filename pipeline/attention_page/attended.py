"""The input of a network and its attention: tokens, weights, and the image where it read one.

Legend: H heads · T queries · S keys.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tfm.data.images.decoding import Pixels

AttentionKind = Literal["encoder", "decoder", "cross"]
ATTENTION_KIND_TITLES: dict[AttentionKind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
Weights: TypeAlias = NDArray[np.float32]


class AttendedToken(NamedTuple):
    """A piece of a sentence.

    Args:
        text: as shown.
        separates: whether it only separates (punctuation, begin and end of a sentence).
        source_index: the index of the piece in the source, from 0; None if it is not a piece of the source.
    """

    text: str
    separates: bool
    source_index: int | None = None


@dataclass(frozen=True)
class AttentionAxes:
    """The tokens of T queries and S keys.

    Args:
        queries: the tokens of the queries.
        keys: the tokens of the keys.
        notes: a note on each query.
        on_image: the ones of the two that are places of the image that was read, in reading order.
    """

    queries: tuple[AttendedToken, ...]
    keys: tuple[AttendedToken, ...]
    notes: tuple[str, ...]
    on_image: tuple[Literal["queries", "keys"], ...] = ()


@dataclass(frozen=True)
class LayerAttention:
    """One attention of a network.

    Args:
        name: of its module.
        kind: encoder, decoder or cross.
        layer: from 1.
        weights: (H, T, S).
    """

    name: str
    kind: AttentionKind
    layer: int
    weights: Weights


@dataclass(frozen=True)
class AttendedImage:
    """An image as a network reads it.

    Args:
        pixels: (height, width, channels).
        rows: of tokens.
        columns: of tokens.
        side: of the square of each token, in pixels; squares at the right and at the bottom may be cut off.
    """

    pixels: Pixels
    rows: int
    columns: int
    side: int


@dataclass(frozen=True)
class AttentionTrace:
    """The input of a network, a sentence or an image, and its attention.

    Args:
        source: the sentence, or the name of the image.
        target: the text that it said or was made to say; None if it reads one text alone.
        axes: the tokens of each kind of attention.
        attentions: the layers of each kind in order.
        image: that was read, if it was one.
    """

    source: str
    target: str | None
    axes: dict[AttentionKind, AttentionAxes]
    attentions: tuple[LayerAttention, ...]
    image: AttendedImage | None = None

    def layers(self, kind: AttentionKind) -> list[LayerAttention]:
        """The attentions of a kind, layer by layer."""
        return [each for each in self.attentions if each.kind == kind]


def trace_as_json(trace: AttentionTrace) -> dict[str, Any]:
    """Return the output of `tfm attend --json`: tokens of each kind of attention, all weights [head][query][key]."""
    axes = {
        kind: {"queries": [each.text for each in token_axes.queries], "keys": [each.text for each in token_axes.keys]}
        for kind, token_axes in trace.axes.items()
    }
    image = {} if trace.image is None else {"image": {"rows": trace.image.rows, "columns": trace.image.columns}}
    layers = [
        {"name": layer.name, "kind": layer.kind, "layer": layer.layer, "weights": layer.weights.tolist()}
        for layer in trace.attentions
    ]
    return {"source": trace.source, "target": trace.target, **image, "tokens": axes, "attentions": layers}
