"""The decoder-only Transformer (Radford et al. 2018): one stack reads the source, if there is one, and the target.

Legend: N rows · B sentences · D width · E embedding width · V vocabulary · R hypotheses.
"""

import torch
from torch import Tensor, nn

from tfm.model.attention.kv_cache import LayerKVCache
from tfm.model.attention.memory import Memory
from tfm.model.layers.adaptive_softmax import OutputLayer
from tfm.model.layers.dropout import DropoutRng
from tfm.model.layers.embedding import Embedding
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfLogits, log_softmax
from tfm.model.layers.normalization import has_batch_norm
from tfm.model.layout import AnyLayout, Layout, concat_layouts_with_row_order
from tfm.model.transformer.decoder_masks import DecoderMask
from tfm.model.transformer.decoder_state import TransformerState
from tfm.model.transformer.layers import EncoderLayer, apply_layers


class DecoderOnly(nn.Module):
    """source, if any, then target so far -> layers in which each row sees those before it -> output layer.

    A sentence is `source </s> <s> target`: the end token of the source and the begin token of the target stand between
    them.

    Args:
        embedding: ids to rows.
        layers: the layers, with a causal mask.
        norm: norm after the last layer.
        narrow: projection from D to E.
        output: the output layer (E -> V, no bias).
        mask: the rows of its own text that a decoder's row sees.
        dropout_rng: fixes every dropout draw.
        max_length: most tokens of one side.
    """

    def __init__(
        self,
        *,
        embedding: Embedding,
        layers: list[EncoderLayer],
        norm: nn.Module,
        narrow: nn.Module,
        output: OutputLayer,
        mask: DecoderMask,
        dropout_rng: DropoutRng,
        max_length: int,
    ) -> None:
        super().__init__()
        self.embedding, self.layers, self.norm = embedding, nn.ModuleList(layers), norm
        self.narrow, self.output = narrow, output
        self.mask, self.dropout_rng, self.max_length = mask, dropout_rng, max_length
        self._normalizes_all_rows = has_batch_norm(self.layers)

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of sources of these lengths (B,)."""
        return self.embedding.layout(source, lengths)

    def hidden_states(self, tokens: Tensor, layout: AnyLayout) -> Tensor:
        """Return the input of the output layer (N, E) for ids (N,) of texts, begin token first."""
        return self._apply_final_norm(self._run_layers(tokens, layout))

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
        layout, order = concat_layouts_with_row_order(source_layout, target_layout)
        inverse_order = torch.empty_like(order)
        inverse_order[order] = torch.arange(len(order), device=order.device)
        rows = self._run_layers(torch.cat([source, target])[order], layout, inverse_order[len(source) :])
        return self._apply_final_norm(rows)

    def empty_state(self, batch: int, device: torch.device | str = "cpu") -> TransformerState:
        """Return the state of this many texts before any token is read, one row each."""
        no_slots = torch.zeros(batch, 0, dtype=torch.long, device=device)
        lengths = torch.zeros(batch, dtype=torch.long, device=device)
        return TransformerState(tuple(LayerKVCache() for _ in self.layers), Memory(), lengths, no_slots)

    def start(self, source: Tensor, layout: Layout) -> TransformerState:
        """Read source ids (N,); a state of one row a sentence."""
        rows, caches, mask = self.embedding(source, layout.positions), [], self.mask.make_text_mask(layout)
        for layer in self._layers():
            rows, cache = layer.prefill(rows, layout, mask)
            caches.append(cache)
        return TransformerState(
            caches=tuple(caches),
            memory=Memory(),
            lengths=layout.lengths.to(source.device),
            positions=layout.columns.expand(layout.batch, -1),
            ancestor_mask=None if layout.has_no_padding else layout.mask[:, None],
        )

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[LogProbFn, TransformerState]:
        """Read the next token of every row (R,); return log-probabilities of the piece after some rows (r, V), when
        asked for, and the state after the token.
        """
        rows = self.embedding(tokens, state.row_positions)
        state, slots = state.advance()
        slots = self.mask.mask_step(slots)
        for layer, cache in zip(self._layers(), state.caches, strict=True):
            rows = layer.step(rows, cache, slots)
        hidden = self._apply_final_norm(rows)
        return LogProbsOfLogits(lambda selection: self.output(hidden[selection])), state

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities (N, V) of the output layer's input (N, E)."""
        return log_softmax(self.output(hidden))

    def _run_layers(self, tokens: Tensor, layout: AnyLayout, prediction_rows: Tensor | None = None) -> Tensor:
        rows, mask = self.embedding(tokens, layout.positions), self.mask.make_text_mask(layout)
        early, late = (None, prediction_rows) if self._normalizes_all_rows else (prediction_rows, None)
        rows = apply_layers(self.layers, rows, layout, mask, early)
        return rows if late is None else rows.index_select(0, late)

    def _apply_final_norm(self, rows: Tensor) -> Tensor:
        hidden: Tensor = self.narrow(self.norm(rows))
        return hidden

    def _layers(self) -> list[EncoderLayer]:
        return list(self.layers)  # type: ignore[arg-type]
