"""Recurrent decoders: without attention, with Luong's after the last layer, or with Bahdanau's before the first.

Legend: N rows · B sentences · R hypotheses · D width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tfm.model.attention.memory import Memory
from tfm.model.layers.dropout import Dropout
from tfm.model.layers.linear import Linear
from tfm.model.layout import Layout
from tfm.model.recurrent.attention import MemoryAttention
from tfm.model.recurrent.cells import RecurrentLayer, States
from tfm.model.recurrent.steps import TimeMajorPacking


class Decoder(nn.Module):
    """Recurrent layers over the target; of the source they get only their first states   (Sutskever et al. 2014).

    Dropout is on the output of each layer, never between its steps (Zaremba et al. 2014).
    """

    def __init__(self, layers: Sequence[RecurrentLayer], *, dropout: Dropout) -> None:
        super().__init__()
        self.layers, self.dropout = nn.ModuleList(layers), dropout

    def project_memory(self, rows: Tensor, layout: Layout) -> Memory:
        """The encoder's output (N, D) as the memory for `forward` and `step`; empty without attention."""
        return Memory()

    def forward(self, rows: Tensor, layout: Layout, start: Sequence[States], memory: Memory) -> Tensor:
        """Read whole targets (teacher forcing).

        Args:
            rows: (N, D) of the target.
            layout: the layout of the targets.
            start: the states (B, D) of each layer before the first row.
            memory: the memory of the sources.

        Returns:
            Rows (N, D).
        """
        steps = TimeMajorPacking(layout)
        return steps.unpack(self.run_layers(steps.pack(rows), steps, start))

    def run_layers(self, rows: Tensor, steps: TimeMajorPacking, start: Sequence[States]) -> Tensor:
        """Compute all layers.

        Args:
            rows: (N, D), packed by steps.
            steps: the packing.
            start: the states (B, D) of each layer before the first row.

        Returns:
            Rows (N, D), packed by steps.
        """
        for layer, states in zip(self.layers, start, strict=True):
            rows, _ = layer(rows, steps, tuple(steps.sort_states(each) for each in states))
            rows = self.dropout(rows)
        return rows

    def step(self, rows: Tensor, states: Sequence[States], memory: Memory) -> tuple[Tensor, tuple[States, ...]]:
        """Read one row a hypothesis.

        Args:
            rows: (R, D), one a hypothesis.
            states: the states (R, D) of each layer.
            memory: the memory of the sources.

        Returns:
            Rows (R, D), and the states of the layers after them.
        """
        new_states = list[States]()
        for layer, old in zip(self.layers, states, strict=True):
            new_states.append(layer.step(layer.input(rows), old))  # type: ignore[operator]
            rows = new_states[-1][0]
        return rows, tuple(new_states)


class LuongDecoder(Decoder):
    """Attention after the layers:  h~ = tanh(W_c [c; h]),  c = context(h)   (Luong et al. 2015, eq. 5).

    h~ is not an input of the next step: in training the attention of all steps is one product.

    Args:
        layers: the recurrent layers.
        attention: the attention to the memory.
        combine: W_c.
        dropout: dropout of each layer's output.
    """

    def __init__(
        self, layers: Sequence[RecurrentLayer], *, attention: MemoryAttention, combine: Linear, dropout: Dropout
    ) -> None:
        super().__init__(layers, dropout=dropout)
        self.attention, self.combine = attention, combine

    def project_memory(self, rows: Tensor, layout: Layout) -> Memory:
        return self.attention.project_memory(rows, layout)

    def forward(self, rows: Tensor, layout: Layout, start: Sequence[States], memory: Memory) -> Tensor:
        hidden = super().forward(rows, layout, start, memory)
        return self._attentional_hidden(layout.unpad(self.attention(layout.pad(hidden), memory)), hidden)

    def step(self, rows: Tensor, states: Sequence[States], memory: Memory) -> tuple[Tensor, tuple[States, ...]]:
        hidden, new_states = super().step(rows, states, memory)
        return self._attentional_hidden(self.attention.step(hidden, memory), hidden), new_states

    def _attentional_hidden(self, context: Tensor, hidden: Tensor) -> Tensor:
        return self.dropout(self.combine(torch.cat([context, hidden], dim=-1)).tanh())  # type: ignore[no-any-return]


class BahdanauDecoder(Decoder):
    """Attention before the first layer, whose input is the row and the context   (Bahdanau et al. 2015, A.1.2, A.2.2):

        c = context(s)     s' = cell([x; c], s)     then, above all layers, t = maxout(W [s'; c; x] + b)

    x is the embedding of the last token. Layers above the first read s' alone, so that they need no loop here.

    Args:
        layers: the recurrent layers.
        attention: the attention to the memory.
        context_gates: the part of the first layer's W that multiplies c.
        combine: W and b of the maxout.
        dropout: dropout of each layer's output.
    """

    def __init__(
        self,
        layers: Sequence[RecurrentLayer],
        *,
        attention: MemoryAttention,
        context_gates: Linear,
        combine: Linear,
        dropout: Dropout,
    ) -> None:
        super().__init__(layers[1:], dropout=dropout)
        self.first, self.context_gates = layers[0], context_gates
        self.attention, self.combine = attention, combine

    def project_memory(self, rows: Tensor, layout: Layout) -> Memory:
        return self.attention.project_memory(rows, layout)

    def forward(self, rows: Tensor, layout: Layout, start: Sequence[States], memory: Memory) -> Tensor:
        steps = TimeMajorPacking(layout)
        rows, memory = steps.pack(rows), memory.select(steps.order)
        states, hidden, contexts = tuple(steps.sort_states(each) for each in start[0]), list[Tensor](), list[Tensor]()
        for gates in self.first.input(rows).split(steps.batch_sizes):
            context, states = self._step_first_layer(
                gates, tuple(each[: len(gates)] for each in states), memory.first_sentences(len(gates))
            )
            hidden.append(states[0])
            contexts.append(context)
        top = self.run_layers(self.dropout(torch.cat(hidden)), steps, start[1:])
        return steps.unpack(self._maxout_output(top, torch.cat(contexts), rows))

    def step(self, rows: Tensor, states: Sequence[States], memory: Memory) -> tuple[Tensor, tuple[States, ...]]:
        context, first = self._step_first_layer(self.first.input(rows), states[0], memory)
        top, new_states = super().step(first[0], states[1:], memory)
        return self._maxout_output(top, context, rows), (first, *new_states)

    def _step_first_layer(self, gates: Tensor, states: States, memory: Memory) -> tuple[Tensor, States]:
        """W x + b of the first layer (R, gates * D), and its states -> its context (R, D), and the states after it."""
        context = self.attention.step(states[0], memory)
        return context, self.first.step(gates + self.context_gates(context), states)

    def _maxout_output(self, top: Tensor, context: Tensor, rows: Tensor) -> Tensor:
        pairs = self.combine(torch.cat([top, context, rows], dim=-1)).unflatten(-1, (-1, 2))
        return self.dropout(pairs.amax(-1))  # type: ignore[no-any-return]
