"""The encoder-only Transformer (Devlin et al. 2019): every row sees the whole sentence; a head makes the predictions.

Legend: N rows · B sentences · D width · E embedding width · V vocabulary · C classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfm.model.config import BOS_ID
from tfm.model.layers.adaptive_softmax import OutputLayer
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layers.embedding import SourceEmbedding
from tfm.model.layers.linear import Linear
from tfm.model.layers.normalization import has_batch_norm
from tfm.model.layout import AnyLayout, Layout
from tfm.model.masks import padding_mask
from tfm.model.transformer.layers import EncoderLayer, apply_layers


class EncoderOnly(nn.Module):
    """source -> encoder -> head -> output layer, of rows or, where the head pools, of sentences.

    Args:
        begin: (source, layout) -> the source as it is read, and its layout.
        embedding: source to rows.
        encoder: the layers.
        encoder_norm: norm after the last layer.
        head: (rows (M, D) or those asked for, layout of all) -> the input of the output layer (N, n or B, E).
        output: the output layer.
        dropout_rng: fixes every dropout draw.
        max_length: most tokens of a sentence.
    """

    def __init__(
        self,
        *,
        begin: "SourcePreparation",
        embedding: SourceEmbedding,
        encoder: list[EncoderLayer],
        encoder_norm: nn.Module,
        head: "PredictionHead",
        output: OutputLayer,
        dropout_rng: DropoutRng,
        max_length: int,
    ) -> None:
        super().__init__()
        self.begin = begin
        self.embedding, self.encoder, self.encoder_norm = embedding, nn.ModuleList(encoder), encoder_norm
        self.head, self.output = head, output
        self.dropout_rng, self.max_length = dropout_rng, max_length
        self._normalizes_all_rows = has_batch_norm(self)

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of sources. lengths (B,): of texts; images (B, ...) have their own."""
        return self.embedding.layout(source, lengths)

    def encode(self, source: Tensor, layout: AnyLayout) -> Tensor:
        """Source ids (N,) or images (B, C, height, width) -> (M, D)."""
        return self._encode_rows(*self.embedding.embed(*self.begin(source, layout)), None)

    def forward(self, source: Tensor, layout: AnyLayout, prediction_rows: Tensor | None = None) -> Tensor:
        """Return the input of the output layer for source ids (N,) or images.

        Args:
            source: ids (N,), or images (B, C, height, width).
            layout: their layout.
            prediction_rows: (n,) the places of the source's pieces that are predicted; None for all.

        Returns:
            Rows (N, E) or (n, E), or (B, E) of sentences.
        """
        rows, layout = self.embedding.embed(*self.begin(source, layout))
        rows = self._encode_rows(rows, layout, self.head.find_rows(layout, prediction_rows))
        return self.head(rows, layout)  # type: ignore[no-any-return]

    def _encode_rows(self, rows: Tensor, layout: AnyLayout, selection: Tensor | None) -> Tensor:
        """Return the encoder's rows (M, D), or of these a selection (n, D), from those of the embedding (M, D)."""
        early, late = (None, selection) if self._normalizes_all_rows else (selection, None)
        rows = self.encoder_norm(apply_layers(self.encoder, rows, layout, padding_mask(layout), early))
        return rows if late is None else rows.index_select(0, late)


class TokenHead(nn.Module):
    """Head of each row of the text by itself: of masked tokens, or of tags.

    find_rows: (layout of all rows, places of pieces (n,) or None for all) -> their rows; None for all rows.
    """

    def __init__(self, narrow: nn.Module, find_rows: "RowSearch") -> None:
        super().__init__()
        self.narrow, self.find_rows = narrow, find_rows

    def forward(self, rows: Tensor, layout: AnyLayout) -> Tensor:
        """(n, D) -> (n, E)."""
        return self.narrow(rows)  # type: ignore[no-any-return]


class PredictionHeadTransform(nn.Module):
    """norm(activation(W h + b)): BERT's transform before the output layer of masked tokens (Devlin et al. 2019, code).

    Args:
        dense: W and b.
        activation: the activation function.
        norm: the norm of the result.
    """

    def __init__(self, dense: Linear, activation: Callable[[Tensor], Tensor], norm: nn.Module) -> None:
        super().__init__()
        self.dense, self.activation, self.norm = dense, activation, norm

    def forward(self, rows: Tensor) -> Tensor:
        """(N, D) -> (N, E)."""
        return self.norm(self.activation(self.dense(rows)))  # type: ignore[no-any-return]


class SentenceHead(nn.Module):
    """tanh(W pooled + b): one row a sentence   (Devlin et al. 2019, whose pooling is `first`)."""

    def __init__(self, pool: Callable[[Tensor, AnyLayout], Tensor], inner: Linear) -> None:
        super().__init__()
        self.pool, self.inner = pool, inner

    def find_rows(self, layout: AnyLayout, places: Tensor | None) -> None:
        """Ask for all rows."""

    def forward(self, rows: Tensor, layout: AnyLayout) -> Tensor:
        """(N, D) -> (B, D)."""
        return torch.tanh(self.inner(self.pool(rows, layout)))


PredictionHead = TokenHead | SentenceHead
SourcePreparation = Callable[[Tensor, AnyLayout], tuple[Tensor, AnyLayout]]
RowSearch = Callable[[AnyLayout, Tensor | None], Tensor | None]


def keep_source(source: Tensor, layout: AnyLayout) -> tuple[Tensor, AnyLayout]:
    """A source as it was given."""
    return source, layout


def prepend_begin_token(source: Tensor, layout: AnyLayout) -> tuple[Tensor, Layout]:
    """Put a begin token before each text: ids (N,) -> (N + B,), and their layout   (Devlin et al. 2019: [CLS])."""
    longer = Layout.from_lengths(layout.lengths + 1, source.device)
    return source.new_full((longer.num_rows,), BOS_ID).index_copy(0, _indices_after_begin(longer), source), longer


def find_in_text(layout: AnyLayout, places: Tensor | None) -> Tensor | None:
    """The rows of pieces of texts that were read as they are."""
    return places


def find_after_begin(layout: AnyLayout, places: Tensor | None) -> Tensor:
    """The rows of pieces of texts that were read with a begin token before each."""
    rows = _indices_after_begin(layout)
    return rows if places is None else rows.index_select(0, places)


def _indices_after_begin(layout: AnyLayout) -> Tensor:
    """Return the indices (N,) of the rows that are not the first of a sentence."""
    assert isinstance(layout, Layout), "flat batches are refused: no task of an encoder alone has them"
    lengths = layout.lengths
    is_text = torch.ones(layout.num_rows, dtype=torch.bool)
    is_text[lengths.cumsum(0) - lengths] = False
    return is_text.nonzero().squeeze(1).to(layout.sentence.device, non_blocking=True)


def pool_mean(rows: Tensor, layout: AnyLayout) -> Tensor:
    """The mean of each sentence's rows (B, D)."""
    lengths = layout.lengths.to(rows.device, rows.dtype, non_blocking=True)
    sums = rows.new_zeros(len(lengths), rows.shape[1]).index_add_(0, layout.sentence, rows)
    return sums / lengths.unsqueeze(1)


def pool_max(rows: Tensor, layout: AnyLayout) -> Tensor:
    """The largest of each sentence's rows in each dimension (B, D)."""
    sentence_indices = layout.sentence.unsqueeze(1).expand_as(rows)
    empty = rows.new_full((len(layout.lengths), rows.shape[1]), float("-inf"))
    return empty.scatter_reduce(0, sentence_indices, rows, "amax")


def pool_first(rows: Tensor, layout: AnyLayout) -> Tensor:
    """The first of each sentence's rows (B, D)."""
    firsts = layout.lengths.cumsum(0) - layout.lengths
    return rows.index_select(0, firsts.to(rows.device, non_blocking=True))


POOLINGS: dict[str, Callable[[Tensor, AnyLayout], Tensor]] = {"mean": pool_mean, "max": pool_max, "first": pool_first}
