"""Recurrent sequence to sequence models: Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015.

Legend: N rows · B sentences · R hypotheses · D width · E width of the output layer's input · V vocabulary.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.attention.memory import Memory
from tfm.model.layers.adaptive_softmax import OutputLayer
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.embedding import Embedding, SourceEmbedding
from tfm.model.layers.linear import Linear
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfLogits, log_softmax
from tfm.model.layout import AnyLayout, Layout
from tfm.model.recurrent.attentive_reader import AttentionEncoderWithMeanState
from tfm.model.recurrent.cells import RecurrentLayer, States
from tfm.model.recurrent.decoder import Decoder
from tfm.model.recurrent.decoder_state import RecurrentState
from tfm.model.recurrent.steps import TimeMajorPacking


class EncoderLayer(nn.ModuleList):
    """A recurrent layer in one direction, or two in both directions: h = [h forwards; h backwards]."""

    def forward(self, rows: Tensor, directions: Sequence[TimeMajorPacking]) -> tuple[Tensor, States]:
        """Read rows (N, I) in each direction; return h of all (N, D), in their order, and the last states (B, D)."""
        read = [(steps, *part(steps.pack(rows), steps)) for part, steps in zip(self, directions, strict=True)]
        hidden = torch.cat([steps.unpack(rows) for steps, rows, _ in read], dim=-1)
        last = [[steps.unsort_states(state) for state in states] for steps, _, states in read]
        return hidden, tuple(torch.cat(states, dim=-1) for states in zip(*last, strict=True))


class Encoder(nn.Module):
    """Stacked recurrent layers, each in one direction or two.

    Args:
        layers: of each layer, one part a direction.
        backward: of each direction, whether it reads from the end.
        dropout: dropout of each layer's output.
    """

    def __init__(
        self, layers: Sequence[Sequence[RecurrentLayer]], *, backward: Sequence[bool], dropout: Dropout
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(parts) for parts in layers)
        self.backward, self.dropout = tuple(backward), dropout

    def forward(self, rows: Tensor, layout: Layout) -> tuple[Tensor, list[States]]:
        """Return h of all rows (N, D), in the order of the source, and the last states (B, D) of each layer."""
        directions, final_states = [TimeMajorPacking(layout, backward=each) for each in self.backward], list[States]()
        for layer in self.layers:
            rows, last = layer(rows, directions)
            rows = self.dropout(rows)
            final_states.append(last)
        return rows, final_states


class IdentityBridge(nn.Module):
    """Bridge by which each layer of the decoder starts from the last states of the encoder's   (Sutskever et al.
    2014).
    """

    def forward(self, final_states: list[States]) -> list[States]:
        return final_states


class ProjectionBridge(nn.Module):
    """tanh(W h + b), with h the last state of the encoder's last layer   (Bahdanau et al. 2015, appendix A.2.2).

    Args:
        in_dim: width of h.
        dim: D of the decoder.
        has_projection: of each layer of the decoder, whether each of its states is projected; one that no step reads
            is zeros.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(
        self, in_dim: int, dim: int, *, has_projection: Sequence[Sequence[bool]], compute_dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.has_projection = [tuple(states) for states in has_projection]
        self.num_parts = sum(map(sum, self.has_projection))
        self.project = Linear(in_dim, self.num_parts * dim, compute_dtype=compute_dtype, num_parts=self.num_parts)

    def forward(self, final_states: list[States]) -> list[States]:
        parts = self.project(final_states[-1][0]).tanh().chunk(self.num_parts, dim=-1)
        following, zeros = iter(parts), torch.zeros_like(parts[0])
        return [tuple(next(following) if each else zeros for each in states) for states in self.has_projection]


class RecurrentEncoderDecoder(nn.Module):
    """source -> encoder -> its last states and the memory; these and the target so far -> decoder -> output layer.

    Args:
        source_embedding: source to rows.
        encoder: rows to states and memory.
        bridge: the encoder's last states to the decoder's first.
        target_embedding: target ids to rows.
        decoder: the recurrent decoder.
        narrow: projection from the decoder's width to E.
        output: the output layer (E -> V, no bias).
        dropout_rng: fixes every dropout draw.
        max_length: most tokens of a sentence.
    """

    def __init__(
        self,
        *,
        source_embedding: SourceEmbedding,
        encoder: Encoder | AttentionEncoderWithMeanState,
        bridge: nn.Module,
        target_embedding: Embedding,
        decoder: Decoder,
        narrow: nn.Module,
        output: OutputLayer,
        dropout_rng: DropoutRng,
        max_length: int,
    ) -> None:
        super().__init__()
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder, self.bridge, self.decoder = encoder, bridge, decoder
        self.narrow, self.output = narrow, output
        self.dropout_rng, self.max_length = dropout_rng, max_length

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of sources. lengths (B,): of texts; images (B, ...) have their own."""
        return self.source_embedding.layout(source, lengths)

    def encode(self, source: Tensor, layout: Layout) -> tuple[list[States], Memory]:
        """Source ids (N,) or images (B, C, H, W) -> first states (B, D) of the decoder's layers, and memory."""
        rows, memory_layout = self.source_embedding.embed(source, layout)
        assert isinstance(memory_layout, Layout)
        rows, final_states = self.encoder(rows, memory_layout)
        return self.bridge(final_states), self.decoder.project_memory(rows, memory_layout)

    def forward(self, source: Tensor, source_layout: AnyLayout, target: Tensor, target_layout: AnyLayout) -> Tensor:
        """Return the input of the output layer at each target row (teacher forcing).

        Args:
            source: ids (N_s,) of the sources, or images.
            source_layout: the layout of the sources.
            target: ids (N,), begin token first.
            target_layout: the layout of the targets.

        Returns:
            (N, E); zeros at filler rows.
        """
        source, source_layout = _drop_padding(source, source_layout)
        num_given_rows, (target, target_layout) = len(target), _drop_padding(target, target_layout)
        states, memory = self.encode(source, source_layout)
        rows = self.target_embedding(target, target_layout.positions)
        hidden: Tensor = self.narrow(self.decoder(rows, target_layout, states, memory))
        return F.pad(hidden, (0, 0, 0, num_given_rows - len(hidden))) if len(hidden) < num_given_rows else hidden

    def start(self, source: Tensor, layout: Layout) -> RecurrentState:
        """Read source ids (N,) or images; the state of one row a sentence."""
        states, memory = self.encode(source, layout)
        return RecurrentState(tuple(states), memory)

    def step(self, tokens: Tensor, state: RecurrentState) -> tuple[LogProbFn, RecurrentState]:
        """Read the next token of every row (R,); return log-probabilities of the piece after some rows (r, V), when
        asked for, and the state after the token.
        """
        rows = self.target_embedding(tokens, torch.zeros_like(tokens))
        hidden, layers = self.decoder.step(rows, state.layers, state.memory)
        hidden = self.narrow(hidden)
        return LogProbsOfLogits(lambda selection: self.output(hidden[selection]), hidden, self.output), RecurrentState(
            layers, state.memory
        )

    def log_probs(self, hidden: Tensor) -> Tensor:
        """The input of the output layer (N, E) -> log-probabilities (N, V)."""
        return log_softmax(self.output(hidden))


def _drop_padding(tokens: Tensor, layout: AnyLayout) -> tuple[Tensor, Layout]:
    """Return the same sentences without filler rows: recurrent steps follow from lengths, so a fixed shape gains
    nothing.
    """
    if isinstance(layout, Layout):
        return tokens, layout
    real_layout = Layout.from_lengths(layout.lengths, tokens.device)
    return tokens[: real_layout.num_rows], real_layout
