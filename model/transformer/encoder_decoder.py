"""The encoder-decoder Transformer (Vaswani et al. 2017) over rows.

Legend: N rows · B sentences · D width · E embedding width · V vocabulary · R hypotheses.
"""

import torch
from torch import Tensor, nn

from tfm.model.attention.kv_cache import LayerKVCache
from tfm.model.attention.memory import Memory
from tfm.model.layers.adaptive_softmax import OutputLayer
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layers.embedding import Embedding, SourceEmbedding
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfLogits, log_softmax
from tfm.model.layout import AnyLayout, Layout
from tfm.model.masks import padding_mask
from tfm.model.transformer.decoder_masks import DecoderMask
from tfm.model.transformer.decoder_state import TransformerState
from tfm.model.transformer.layers import DecoderLayer, EncoderLayer


class EncoderDecoder(nn.Module):
    """source -> encoder -> memory; target so far and memory -> decoder -> output layer.

    Args:
        source_embedding: source to rows.
        encoder: the encoder's layers.
        encoder_norm: norm after its last layer.
        target_embedding: target ids to rows.
        decoder: the decoder's layers.
        decoder_norm: norm after its last layer.
        narrow: projection from the decoder's width to E.
        output: the output layer (E -> V, no bias).
        mask: the rows of its own text that a decoder's row sees.
        dropout_rng: fixes every dropout draw.
        max_length: most tokens of a sentence.
    """

    prefix_length = 1
    """The number of tokens that the decoder reads before those of the target: the begin token."""

    def __init__(
        self,
        *,
        source_embedding: SourceEmbedding,
        encoder: list[EncoderLayer],
        encoder_norm: nn.Module,
        target_embedding: Embedding,
        decoder: list[DecoderLayer],
        decoder_norm: nn.Module,
        narrow: nn.Module,
        output: OutputLayer,
        mask: DecoderMask,
        dropout_rng: DropoutRng,
        max_length: int,
    ) -> None:
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder, self.encoder_norm = nn.ModuleList(encoder), encoder_norm
        self.decoder, self.decoder_norm = nn.ModuleList(decoder), decoder_norm
        self.narrow, self.output = narrow, output
        self.mask, self.dropout_rng, self.max_length = mask, dropout_rng, max_length

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of sources. lengths (B,): of texts; images (B, ...) have their own."""
        return self.source_embedding.layout(source, lengths)

    def encode(self, source: Tensor, layout: AnyLayout) -> Tensor:
        """Source ids (N,) or images (B, C, height, width) -> memory (M, D)."""
        return self._encode_rows(source, layout)[0]

    def _encode_rows(self, source: Tensor, layout: AnyLayout) -> tuple[Tensor, AnyLayout]:
        """The memory (M, D), and where that of each source begins and ends: a row a piece, or fewer."""
        rows, layout = self.source_embedding.embed(source, layout)
        mask = padding_mask(layout)
        for layer in self.encoder:
            rows = layer(rows, layout, mask)
        return self.encoder_norm(rows), layout

    def decode(self, target: Tensor, layout: AnyLayout, memory: Tensor, memory_layout: AnyLayout) -> Tensor:
        """Return the input of the output layer at each target row.

        Args:
            target: ids (N,), begin token first.
            layout: the layout of the targets.
            memory: the encoder's output, a row for each source row.
            memory_layout: the layout of the memory.

        Returns:
            (N, E).
        """
        rows = self.target_embedding(target, layout.positions)
        mask, memory_mask = self.mask.make_text_mask(layout), padding_mask(memory_layout, layout)
        for layer in self.decoder:
            rows = layer(rows, layout, mask, memory, memory_layout, memory_mask)
        return self.narrow(self.decoder_norm(rows))  # type: ignore[no-any-return]

    def forward(self, source: Tensor, source_layout: AnyLayout, target: Tensor, target_layout: AnyLayout) -> Tensor:
        """Return the input of the output layer at each target row (teacher forcing).

        Args:
            source: ids (N_s,) of the sources, or images.
            source_layout: the layout of the sources.
            target: ids (N,), begin token first.
            target_layout: the layout of the targets.

        Returns:
            (N, E).
        """
        return self.decode(target, target_layout, *self._encode_rows(source, source_layout))

    def start(self, source: Tensor, layout: Layout) -> TransformerState:
        """Read source ids (N,) or images; a state of one row a sentence."""
        memory, memory_layout = self._encode_rows(source, layout)
        assert isinstance(memory_layout, Layout)
        return TransformerState(
            caches=tuple(LayerKVCache() for _ in self.decoder),
            memory=Memory(
                tuple(layer.cross_attention.project_memory(memory, memory_layout) for layer in self._decoder_layers()),
                padding_mask(memory_layout),
            ),
            lengths=torch.zeros(layout.batch, dtype=torch.long, device=source.device),
            positions=torch.zeros(layout.batch, 0, dtype=torch.long, device=source.device),
        )

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[LogProbFn, TransformerState]:
        """Read the next token of every row (R,); return log-probabilities of the piece after some rows (r, V), when
        asked for, and the state after the token.
        """
        rows = self.target_embedding(tokens, state.row_positions)
        state, slots = state.advance()
        slots = self.mask.mask_step(slots)
        memory = state.memory
        for layer, cache, memory_keys_values in zip(
            self._decoder_layers(), state.caches, memory.keys_values, strict=True
        ):
            rows = layer.step(rows, cache, slots, memory_keys_values, memory.mask)
        hidden: Tensor = self.narrow(self.decoder_norm(rows))
        return LogProbsOfLogits(lambda selection: self.output(hidden[selection]), hidden, self.output), state

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities (N, V) of the output layer's input (N, E)."""
        return log_softmax(self.output(hidden))

    def _decoder_layers(self) -> list[DecoderLayer]:
        return list(self.decoder)  # type: ignore[arg-type]
