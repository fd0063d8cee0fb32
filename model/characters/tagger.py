"""CANINE with a prediction for each character (Clark et al. 2022, fig. 1): the whole network, from ids to rows.

Legend: N rows of characters · M rows of the shorter sequence · D width · E width of the output layer's input.
"""

from torch import Tensor, nn

from tfm.model.characters.embedding import CharacterEmbedding
from tfm.model.characters.upsampling import Upsampling
from tfm.model.layers.adaptive_softmax import OutputLayer
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layout import AnyLayout, Layout
from tfm.model.masks import padding_mask
from tfm.model.transformer.layers import EncoderLayer


class CharacterTagger(nn.Module):
    """source -> characters -> shorter sequence -> encoder -> characters again -> output layer, of each character.

    A model without predictions for single characters needs the shorter sequence alone: an `EncoderOnly` with a
    `CharacterEmbedding`, whose weights have the same names.

    Args:
        embedding: characters to rows of the shorter sequence.
        encoder: layers over the shorter sequence.
        encoder_norm: norm after the last layer.
        head: from the shorter sequence back to a row for each character.
        output: the output layer (E -> labels).
        dropout_rng: fixes every dropout draw.
        max_length: most characters of a text.
    """

    def __init__(
        self,
        *,
        embedding: CharacterEmbedding,
        encoder: list[EncoderLayer],
        encoder_norm: nn.Module,
        head: Upsampling,
        output: OutputLayer,
        dropout_rng: DropoutRng,
        max_length: int,
    ) -> None:
        super().__init__()
        self.embedding, self.encoder, self.encoder_norm = embedding, nn.ModuleList(encoder), encoder_norm
        self.head, self.output = head, output
        self.dropout_rng, self.max_length = dropout_rng, max_length

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of sources of these lengths (B,), one row a character."""
        return self.embedding.layout(source, lengths)

    def encode(self, source: Tensor, layout: AnyLayout, prediction_rows: Tensor | None = None) -> Tensor:
        """Source ids (N,) -> (N, D), or (n, D) of the characters that are asked for."""
        shorter = self.embedding.downsampled_layout(layout)
        characters = self.embedding.contextualize(source, shorter)
        rows, mask = self.embedding.downsampling(characters, shorter), padding_mask(shorter)
        for layer in self.encoder:
            rows = layer(rows, shorter, mask)
        return self.head(characters, self.encoder_norm(rows), shorter, prediction_rows)  # type: ignore[no-any-return]

    def forward(self, source: Tensor, layout: AnyLayout, prediction_rows: Tensor | None = None) -> Tensor:
        """Return the input of the output layer for source ids (N,).

        Args:
            source: ids (N,).
            layout: their layout.
            prediction_rows: (n,) the characters that are predicted; None for all.

        Returns:
            Rows (N, E), or (n, E).
        """
        return self.encode(source, layout, prediction_rows)
