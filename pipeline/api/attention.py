"""The attention of a model in a text, as arrays, and as the page of `tfm attend`.

Legend: L layers · H heads · T queries · S keys.
"""

import os
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.api import arguments
from tfm.pipeline.artifacts.files import convert_os_errors, write_text_atomically
from tfm.pipeline.attention_page.attended import ATTENTION_KIND_TITLES, AttentionKind, AttentionTrace
from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
from tfm.pipeline.attention_page.image_reading import trace_image_file
from tfm.pipeline.attention_page.page import render_attention_page
from tfm.pipeline.attention_page.picture import choose_view
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.image_files import check_image_file
from tfm.pipeline.inference.source_problems import warn_of_unknown_sources
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.forks import exclude_other_threads
from tfm.pipeline.runtime.progress import Reporter

FRAME_HEIGHT = "40rem"


@dataclass(frozen=True)
class Attention:
    """A text as a model read it, which draws itself in a notebook: all layers and heads, to point at and step through.

    source: the text or image. target: the text that the model said, or was made to say; None if it reads one text
    alone.
    """

    title: str
    reading: AttentionTrace

    @property
    def source(self) -> str:
        return self.reading.source

    @property
    def target(self) -> str | None:
        return self.reading.target

    @property
    def kinds(self) -> list[AttentionKind]:
        """The attentions that the model has: encoder, decoder, cross."""
        return list(self.reading.axes)

    def weights(self, kind: AttentionKind | None = None) -> NDArray[np.float32]:
        """The weights (L, H, T, S) of all layers; each row [l, h, t] sums to 1 over the S keys.

        kind: encoder, decoder or cross; by default cross if there is one, else the only one. Raises RecipeError for
        one that the model does not have.
        """
        return np.stack([each.weights for each in self.reading.layers(self._default_kind(kind))])

    def tokens(self, kind: AttentionKind | None = None) -> tuple[list[str], list[str]]:
        """The T queries and the S keys, as the page shows them."""
        axes = self.reading.axes[self._default_kind(kind)]
        return [each.text for each in axes.queries], [each.text for each in axes.keys]

    def html(self) -> str:
        """The page of `tfm attend`: one self-contained HTML document."""
        return render_attention_page(self.title, self.reading, choose_view(self.reading), None)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the page into a file. Raises WriteError if that cannot be."""
        path = arguments.check_file(file, "file")
        with convert_os_errors(path):
            write_text_atomically(path, self.html())

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its script sees nothing of the notebook."""
        return (
            f'<iframe title="{escape(self.title)}" sandbox="allow-scripts" srcdoc="{escape(self.html())}" '
            f'style="width: 100%; height: {FRAME_HEIGHT}; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        target_part = "" if self.target is None else f" -> {self.target!r}"
        sizes = ", ".join(f"{kind} {'x'.join(map(str, self.weights(kind).shape))}" for kind in self.kinds)
        return f"<Attention {self.source!r}{target_part}: {sizes}>"

    def _default_kind(self, kind: AttentionKind | None) -> AttentionKind:
        available_kinds = self.kinds
        if kind is None:
            return choose_view(self.reading).kind
        if kind not in available_kinds:
            kind_names = ", ".join(f"{each} ({ATTENTION_KIND_TITLES[each]})" for each in available_kinds)
            raise RecipeError(f"attention {kind!r}: this model has {kind_names}")
        return kind


def record_attention(
    loaded: LoadedModel, source: str, target: str | None, config: DecodingConfig, reporter: Reporter
) -> Attention:
    """Record the attention of a model while it reads a text, or the image in a file.

    Args:
        loaded: the model.
        source: the text, or the name of the image file.
        target: the text that the model is made to say; None: its own.
        config: the settings by which its own is searched for.
        reporter: shows warnings.
    """
    arguments.check_single_text(source, "source")
    if target is not None:
        arguments.check_single_text(target, "target")
    with exclude_other_threads():
        if loaded.images is not None:
            trace = trace_image_file(loaded, check_image_file(source), target, config)
        else:
            trace = trace_text(loaded, source, target, config)
            warn_of_unknown_sources(source_tokenizer_of(loaded), [source], reporter)
    return Attention(f"Attention of {loaded.folder}", trace)
