"""The embedding layer: token ids to rows, with their positions.

Legend: N rows · D width.
"""

from typing import Protocol

from torch import Tensor, nn

from tfm.model.layers.adaptive_softmax import EmbeddingTable
from tfm.model.layers.dropout import Dropout
from tfm.model.layout import AnyLayout, Layout


class SourceEmbedding(Protocol):
    """Module that makes rows of a source, for the layers of an encoder: of text, of images, of characters."""

    def layout(self, source: Tensor, lengths: Tensor, /) -> Layout:
        """Return the layout of sources. lengths (B,): of texts, in tokens."""

    def embed(self, source: Tensor, layout: AnyLayout, /) -> tuple[Tensor, AnyLayout]:
        """Return the rows (N, D) of a source with this layout, and the layout of these rows."""


class Embedding(nn.Module):
    """Token ids with their positions -> rows as wide as a stack, scaled, normed, and with dropout.

    Args:
        table: ids (N,) -> vectors (N, E).
        dim: width D of the stack.
        positions: layer that adds positions to rows.
        scale: factor of the vectors.
        norm: norm of the rows.
        dropout: dropout of the rows.
        widen: projection of the vectors to the width of the stack.
    """

    def __init__(
        self,
        table: EmbeddingTable,
        dim: int,
        *,
        positions: nn.Module,
        scale: float,
        norm: nn.Module,
        dropout: Dropout,
        widen: nn.Module,
    ) -> None:
        super().__init__()
        self.table, self.positions, self.dropout, self.widen = table, positions, dropout, widen
        self.scale, self.norm = scale, norm

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """(N,), (N,) -> (N, D)."""
        rows = self.widen(self.table(tokens) * self.scale)
        return self.dropout(self.norm(self.positions(rows, positions)))  # type: ignore[no-any-return]

    def embed(self, tokens: Tensor, layout: AnyLayout) -> tuple[Tensor, AnyLayout]:
        """Token ids (N,) -> (N, D), one row each."""
        return self(tokens, layout.positions), layout

    def layout(self, tokens: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of token ids (N,), one row each, of texts of these lengths (B,)."""
        return Layout.from_lengths(lengths, tokens.device)
