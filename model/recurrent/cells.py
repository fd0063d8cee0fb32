"""Recurrent layers, LSTM, GRU, tanh and SSRU: their equations, for one step and for whole sentences.

A layer over whole sentences is one function with its own gradients (`unrolled.py`); it reads rows in the order of
`steps.py`.
Legend: N rows · B sentences · R hypotheses · D width · I width of the input.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfm.model.layers.linear import LOW_PRECISION_DTYPES, Linear
from tfm.model.recurrent.steps import TimeMajorPacking
from tfm.model.recurrent.unrolled import UnrolledGru, UnrolledLstm, UnrolledSsru

States = tuple[Tensor, ...]
"""The states of a layer, each (R, D): the hidden state h, which is also its output, and the cell c of an LSTM
or an SSRU."""


class RecurrentLayer(nn.Module, ABC):
    """A recurrent layer (N, I) -> (N, D) in one direction; a subclass has the equations.

    num_gates: number of vectors (D) that the product W x + b has side by side. num_states: number of states (D).
    reads_hidden: whether a step reads the hidden state before it. W x + b of all rows is one product (`input`).

    Args:
        in_dim: I.
        dim: D.
        has_bias: whether the product has a bias b.
        compute_dtype: precision of the operands of matrix products in training.
    """

    num_gates: int
    num_states: int
    reads_hidden = True

    def __init__(self, in_dim: int, dim: int, *, has_bias: bool = True, compute_dtype: torch.dtype) -> None:
        super().__init__()
        self.dim = dim
        self.input: nn.Module = Linear(
            in_dim, self.num_gates * dim, bias=has_bias, compute_dtype=compute_dtype, num_parts=self.num_gates
        )

    def forward(self, rows: Tensor, steps: TimeMajorPacking, start: States | None = None) -> tuple[Tensor, States]:
        """Compute h of all rows.

        Args:
            rows: (N, I), packed by steps.
            steps: the packing.
            start: states (B, D) to start from, sorted as the packing sorts sentences; None for zeros.

        Returns:
            h of all rows (N, D), and the last states (B, D).
        """
        return self.unroll(self.input(rows), start or self.zero_states(rows, steps.batch_sizes[0]), steps.batch_sizes)

    def zero_states(self, like: Tensor, count: int) -> States:
        """The states of `count` sentences before their first row."""
        return tuple(like.new_zeros(count, self.dim) for _ in range(self.num_states))

    @abstractmethod
    def step(self, gates: Tensor, states: States) -> States:
        """W x + b (R, gates * D) of the next row, and the states before it -> the states after it."""

    @abstractmethod
    def unroll(self, gates: Tensor, start: States, batch_sizes: list[int]) -> tuple[Tensor, States]:
        """Compute all steps.

        Args:
            gates: W x + b (N, gates * D) of rows packed by steps.
            start: the first states (B, D).
            batch_sizes: of each step, the number of sentences that take part.

        Returns:
            h of all rows (N, D), and the last states (B, D).
        """


class RecurrentLayerWithHiddenMatmul(RecurrentLayer):
    """A recurrent layer whose steps each need a product of the state, U h (`recurrent`); a subclass has the equations.

    Args:
        in_dim: I.
        dim: D.
        compute_dtype: precision of the operands of matrix products in training.
    """

    def __init__(self, in_dim: int, dim: int, *, compute_dtype: torch.dtype) -> None:
        super().__init__(in_dim, dim, compute_dtype=compute_dtype)
        self.recurrent = Linear(
            dim, self.num_gates * dim, bias=False, compute_dtype=compute_dtype, num_parts=self.num_gates
        )

    def step(self, gates: Tensor, states: States) -> States:
        return self.next_states(gates, self.recurrent(states[0]), states)

    def unroll(self, gates: Tensor, start: States, batch_sizes: list[int]) -> tuple[Tensor, States]:
        is_low = self.training and self.recurrent.compute_dtype in LOW_PRECISION_DTYPES
        dtype = self.recurrent.compute_dtype if is_low else self.recurrent.weight.dtype
        return self.unroll_with_hidden_weight(gates, self.recurrent.weight, start, batch_sizes, dtype)

    @abstractmethod
    def next_states(self, gates: Tensor, hidden_gates: Tensor, states: States) -> States:
        """Return the states after one step, by the equations.

        Args:
            gates: W x + b, (R, gates * D).
            hidden_gates: U h, (R, gates * D).
            states: the states (R, D) before the step.
        """

    @abstractmethod
    def unroll_with_hidden_weight(
        self, gates: Tensor, weight: Tensor, start: States, batch_sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, States]:
        """Compute all steps as one function, with fast gradients.

        Args:
            gates: W x + b (N, gates * D) of rows packed by steps.
            weight: U (gates * D, D).
            start: the first states (B, D).
            batch_sizes: of each step, the number of sentences that take part.
            dtype: precision of the products U h.

        Returns:
            h of all rows (N, D), and the last states (B, D).
        """


class Lstm(RecurrentLayerWithHiddenMatmul):
    """Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; as torch.nn.LSTM.

        o, i, f = sigmoid(W_o x + b_o + U_o h), ...     g = tanh(W_g x + b_g + U_g h)
        c' = f * c + i * g                              h' = o * tanh(c')

    The forget gates' bias begins at 1 (Jozefowicz et al. 2015).

    Args:
        in_dim: I.
        dim: D.
        compute_dtype: precision of the operands of matrix products in training.
    """

    num_gates, num_states = 4, 2

    def __init__(self, in_dim: int, dim: int, *, compute_dtype: torch.dtype) -> None:
        super().__init__(in_dim, dim, compute_dtype=compute_dtype)
        assert isinstance(self.input, Linear)
        assert self.input.bias is not None
        nn.init.ones_(self.input.bias.detach()[2 * dim : 3 * dim])

    def next_states(self, gates: Tensor, hidden_gates: Tensor, states: States) -> States:
        _, cell = states
        output, input_gate, forget, candidate = (gates + hidden_gates).chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
        return output.sigmoid() * cell.tanh(), cell

    def unroll_with_hidden_weight(
        self, gates: Tensor, weight: Tensor, start: States, batch_sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, States]:
        hiddens, hidden, cell = UnrolledLstm.apply(gates, weight, *start, batch_sizes, dtype)  # type: ignore[no-untyped-call]
        return hiddens, (hidden, cell)


class Gru(RecurrentLayerWithHiddenMatmul):
    """Cho et al. 2014, with the reset gate after the product, as torch.nn.GRU and cuDNN have it.

    r, z = sigmoid(W_r x + b_r + U_r h), ...        n = tanh(W_n x + b_n + r * U_n h)
    h' = (1 - z) * n + z * h
    """

    num_gates, num_states = 3, 1

    def next_states(self, gates: Tensor, hidden_gates: Tensor, states: States) -> States:
        (hidden,) = states
        reset, update_gate, candidate = gates.chunk(3, dim=-1)
        for_reset, for_keep, for_candidate = hidden_gates.chunk(3, dim=-1)
        candidate = (candidate + (reset + for_reset).sigmoid() * for_candidate).tanh()
        update_gate = (update_gate + for_keep).sigmoid()
        return (candidate + update_gate * (hidden - candidate),)

    def unroll_with_hidden_weight(
        self, gates: Tensor, weight: Tensor, start: States, batch_sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, States]:
        hiddens, hidden = UnrolledGru.apply(gates, weight, *start, batch_sizes, dtype)  # type: ignore[no-untyped-call]
        return hiddens, (hidden,)


class GruResetBefore(RecurrentLayerWithHiddenMatmul):
    """Cho et al. 2014, with the reset gate before the product, as Bahdanau et al. 2015 have it in appendix A.1.1.

        r, z = sigmoid(W_r x + b_r + U_r h), ...        n = tanh(W_n x + b_n + U_n (r * h))
        h' = (1 - z) * n + z * h

    Bahdanau et al. write 1 - z for z.

    Args:
        in_dim: I.
        dim: D.
        compute_dtype: precision of the operands of matrix products in training.
    """

    num_gates, num_states = 3, 1

    def __init__(self, in_dim: int, dim: int, *, compute_dtype: torch.dtype) -> None:
        super().__init__(in_dim, dim, compute_dtype=compute_dtype)
        self.recurrent = Linear(dim, 2 * dim, bias=False, compute_dtype=compute_dtype, num_parts=2)
        self.candidate = Linear(dim, dim, bias=False, compute_dtype=compute_dtype)

    def next_states(self, gates: Tensor, hidden_gates: Tensor, states: States) -> States:
        (hidden,) = states
        reset, update_gate, candidate = gates.chunk(3, dim=-1)
        for_reset, for_keep = hidden_gates.chunk(2, dim=-1)
        candidate = (candidate + self.candidate((reset + for_reset).sigmoid() * hidden)).tanh()
        return (candidate + (update_gate + for_keep).sigmoid() * (hidden - candidate),)

    def unroll_with_hidden_weight(
        self, gates: Tensor, weight: Tensor, start: States, batch_sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, States]:
        return unroll_steps(self.step, gates, start, batch_sizes)


class TanhRnn(RecurrentLayerWithHiddenMatmul):
    """h' = tanh(W x + b + U h)   (Elman 1990; as torch.nn.RNN): no gates, and a gradient that fades with each step."""

    num_gates, num_states = 1, 1

    def next_states(self, gates: Tensor, hidden_gates: Tensor, states: States) -> States:
        return ((gates + hidden_gates).tanh(),)

    def unroll_with_hidden_weight(
        self, gates: Tensor, weight: Tensor, start: States, batch_sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, States]:
        def step(inputs: Tensor, states: States) -> States:
            product = (states[0].to(dtype) @ weight.to(dtype).t()).to(inputs.dtype)
            return self.next_states(inputs, product, states)

        return unroll_steps(step, gates, start, batch_sizes)


class Ssru(RecurrentLayer):
    """The simpler simple recurrent unit of Kim et al. 2019, section 3.1: no product of the state.

        f = sigmoid(W_f x + b_f)        c' = f * c + (1 - f) * W x        h' = relu(c')

    Args:
        in_dim: I.
        dim: D.
        compute_dtype: precision of the operands of matrix products in training.
    """

    num_gates, num_states, reads_hidden = 2, 2, False

    def __init__(self, in_dim: int, dim: int, *, compute_dtype: torch.dtype) -> None:
        super().__init__(in_dim, dim, has_bias=False, compute_dtype=compute_dtype)
        self.forget_bias = nn.Parameter(torch.zeros(dim))

    def step(self, gates: Tensor, states: States) -> States:
        forget, candidate = gates.chunk(2, dim=-1)
        forget = (forget + self.forget_bias).sigmoid()
        cell = forget * states[1] + (1 - forget) * candidate
        return cell.relu(), cell

    def unroll(self, gates: Tensor, start: States, batch_sizes: list[int]) -> tuple[Tensor, States]:
        forget, candidate = gates.chunk(2, dim=-1)
        hiddens, hidden, cell = UnrolledSsru.apply(  # type: ignore[no-untyped-call]
            forget + self.forget_bias, candidate, start[1], batch_sizes
        )
        return hiddens, (hidden, cell)


def unroll_steps(
    step: Callable[[Tensor, States], States], gates: Tensor, start: States, batch_sizes: list[int]
) -> tuple[Tensor, States]:
    """Compute the steps of a layer with one state in turn; autograd computes the gradients.

    Args:
        step: W x + b of the rows of a step, and the states before it -> the states after it.
        gates: W x + b (N, gates * D) of rows packed by steps.
        start: the first state (B, D).
        batch_sizes: of each step, the number of sentences that take part.

    Returns:
        h of all rows (N, D), and the last state (B, D).
    """
    (hidden,), hiddens = start, []
    for inputs in torch.split(gates, batch_sizes):
        (new,) = step(inputs, (hidden[: len(inputs)],))
        hiddens.append(new)
        hidden = torch.cat([new, hidden[len(inputs) :]])
    return torch.cat(hiddens), (hidden,)


CELLS: dict[str, type[RecurrentLayer]] = {
    "lstm": Lstm,
    "gru": Gru,
    "gru_reset_before": GruResetBefore,
    "tanh": TanhRnn,
    "ssru": Ssru,
}
"""By name: (in_dim, dim, compute_dtype=...) -> a layer."""
