"""The embedding layer: token ids to rows, including what the position scheme adds to them.

Legend: N rows · D width.
"""

from typing import Protocol

from torch import Tensor, nn

from tfm.model.layers.adaptive_softmax import Table
from tfm.model.layers.dropout import Dropout
from tfm.model.layout import AnyLayout, Layout


class SourceEmbedding(Protocol):
    """What makes rows of a source, for the layers of an encoder: of text, of images, of characters."""

    def layout(self, source: Tensor, lengths: Tensor, /) -> Layout:
        """Where each source begins and ends. lengths (B,): of texts, in tokens."""

    def read(self, source: Tensor, layout: AnyLayout, /) -> tuple[Tensor, AnyLayout]:
        """The source, of which `layout` says where each begins and ends -> rows (N, D), and the same of these rows."""


class Embedding(nn.Module):
    """Token ids with their positions -> rows as wide as a stack, scaled, normed by `norm`, and with dropout."""

    def __init__(
        self,
        table: Table,
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

    def read(self, tokens: Tensor, layout: AnyLayout) -> tuple[Tensor, AnyLayout]:
        """Token ids (N,) -> (N, D), one row each."""
        return self(tokens, layout.positions), layout

    def layout(self, tokens: Tensor, lengths: Tensor) -> Layout:
        """Of token ids (N,): one row each; texts are of these lengths (B,)."""
        return Layout.of(lengths, tokens.device)
