"""Text as rows of a shorter sequence, in the place where an embedding makes a row of each piece.

Legend: N rows of characters · M rows of the shorter sequence · D width.
"""

from torch import Tensor, nn

from tfm.model.characters.downsampling import DownsampledLayout, Downsampling
from tfm.model.layers.embedding import Embedding
from tfm.model.layout import AnyLayout, Layout
from tfm.model.masks import padding_mask
from tfm.model.transformer.layers import EncoderLayer


class CharacterEmbedding(nn.Module):
    """ids -> hash embedding with positions -> local attention -> strided convolution   (Clark et al. 2022, fig. 1).

    Args:
        characters: the hash embedding with positions.
        local: the layer of attention within a window.
        downsampling: the strided convolution.
        rate: number of characters that become one row.
    """

    def __init__(self, characters: Embedding, local: EncoderLayer, downsampling: Downsampling, rate: int) -> None:
        super().__init__()
        self.characters, self.local, self.downsampling, self.rate = characters, local, downsampling, rate

    def layout(self, tokens: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of characters (N,), one row each, of texts of these lengths (B,)."""
        return Layout.from_lengths(lengths, tokens.device)

    def embed(self, tokens: Tensor, layout: AnyLayout) -> tuple[Tensor, DownsampledLayout]:
        """Return the shorter rows (M, D) of characters (N,), and their layout."""
        shorter = self.downsampled_layout(layout)
        return self.downsampling(self.contextualize(tokens, shorter), shorter), shorter

    def downsampled_layout(self, layout: AnyLayout) -> DownsampledLayout:
        """The layout of the shorter sequence."""
        assert isinstance(layout, Layout), "flat batches are refused: their rows have no shorter sequence of one length"
        return DownsampledLayout(layout, self.rate)

    def contextualize(self, tokens: Tensor, layout: DownsampledLayout) -> Tensor:
        """Return the rows (N, D) of characters (N,), each of which has seen those around it."""
        characters = layout.characters
        rows: Tensor = self.local(self.characters(tokens, characters.positions), characters, padding_mask(characters))
        return rows
