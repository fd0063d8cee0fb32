"""Recurrent layers, LSTM and GRU: their equations, the order in which they read rows, and fast gradients.

No step is padded: rows are put in the order of their positions, and at each step only the sentences go on that have a
row more. In training the gradients are written out, so that weights take part in one product at the end, and products
may be of lower precision (`linear.py`).
Legend: N rows · B sentences · R hypotheses · D width · I width of the input.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tfm.model.layers.linear import LOW_PRECISION, ROWS, Linear, topped_up
from tfm.model.layout import Layout

States = tuple[Tensor, ...]
"""What a layer remembers, each (R, D): the hidden state h, which is also what it says, and an LSTM's cell c."""


class Steps:
    """The rows of a batch in the order in which a recurrent layer reads them: all first ones, then all second ones ...

    Sentences stand ranked, the longest first (`order`): those that go on at a step are the first so many (`sizes`).
    backward: each sentence is read from its end.
    """

    def __init__(self, layout: Layout, *, backward: bool = False) -> None:
        device, lengths = layout.positions.device, layout.lengths
        order = lengths.argsort(descending=True, stable=True)
        starts, lengths = (lengths.cumsum(0) - lengths)[order], lengths[order]
        step = torch.arange(layout.width)[:, None]
        going = step < lengths
        rows = (starts + (lengths - 1 - step if backward else step))[going]
        self.sizes: list[int] = going.sum(1).tolist()
        self._rows, self.order = rows.to(device, non_blocking=True), order.to(device, non_blocking=True)
        self._places, self._ranks = self._rows.argsort(), self.order.argsort()

    def arranged(self, rows: Tensor) -> Tensor:
        """(N, ...), sentence after sentence -> the same rows, step after step."""
        return _Reordered.apply(rows, self._rows, self._places)  # type: ignore[no-untyped-call,no-any-return]

    def restored(self, rows: Tensor) -> Tensor:
        """What `arranged` came from."""
        return _Reordered.apply(rows, self._places, self._rows)  # type: ignore[no-untyped-call,no-any-return]

    def ranked(self, states: Tensor) -> Tensor:
        """(B, ...), one row a sentence -> from the longest to the shortest."""
        return states.index_select(0, self.order)

    def unranked(self, states: Tensor) -> Tensor:
        """What `ranked` came from."""
        return states.index_select(0, self._ranks)


class _Reordered(torch.autograd.Function):
    # index_select's own backward adds into zeros; here no row comes twice.
    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return grad.index_select(0, inverse), None, None


class Recurrent(nn.Module, ABC):
    """A recurrent layer (N, I) -> (N, D) in one direction; a subclass has the equations.

    W x + b of all rows is one product (`input`); h W_h^T comes step by step.
    """

    num_gates: int
    num_states: int

    def __init__(self, in_dim: int, dim: int, *, compute_dtype: torch.dtype) -> None:
        super().__init__()
        self.dim = dim
        self.input = Linear(in_dim, self.num_gates * dim, compute_dtype=compute_dtype, num_parts=self.num_gates)
        self.recurrent = Linear(
            dim, self.num_gates * dim, bias=False, compute_dtype=compute_dtype, num_parts=self.num_gates
        )

    def forward(self, rows: Tensor, steps: Steps, start: States | None = None) -> tuple[Tensor, States]:
        """Rows (N, I), arranged, and states (B, D) to start from, ranked -> (N, D), and the states at the ends.

        start: None for zeros.
        """
        low = self.training and self.recurrent.compute_dtype in LOW_PRECISION
        dtype = self.recurrent.compute_dtype if low else self.recurrent.weight.dtype
        states = start or self.zeros(rows, steps.sizes[0])
        hidden, *ends = self.read_all(self.input(rows), self.recurrent.weight, *states, steps.sizes, dtype)
        return hidden, tuple(ends)

    def step(self, gates: Tensor, states: States) -> States:
        """W x + b (R, gates * D) of what is read, and what is remembered -> what is remembered then."""
        return self.next(gates, self.recurrent(states[0]), *states)

    def zeros(self, like: Tensor, count: int) -> States:
        """Where nothing was read yet."""
        return tuple(like.new_zeros(count, self.dim) for _ in range(self.num_states))

    @abstractmethod
    def next(self, gates: Tensor, recurrent: Tensor, *states: Tensor) -> States:
        """The equations: W x + b, h W_h^T, states -> states."""

    @abstractmethod
    def read_all(
        self, gates: Tensor, weight: Tensor, hidden: Tensor, *states_sizes_dtype: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same for all steps: W x + b, W_h, states, sizes, type of the products -> h of all rows, states."""


class Lstm(Recurrent):
    """Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; as torch.nn.LSTM.

    o, i, f = sigmoid(W_o x + b_o + U_o h), ...     g = tanh(W_g x + b_g + U_g h)
    c' = f * c + i * g                              h' = o * tanh(c')
    The forget gates' bias begins at 1 (Jozefowicz et al. 2015).
    """

    num_gates, num_states = 4, 2

    def __init__(self, in_dim: int, dim: int, *, compute_dtype: torch.dtype) -> None:
        super().__init__(in_dim, dim, compute_dtype=compute_dtype)
        assert self.input.bias is not None
        nn.init.ones_(self.input.bias.detach()[2 * dim : 3 * dim])

    def next(self, gates: Tensor, recurrent: Tensor, *states: Tensor) -> States:
        _, cell = states
        output, new, forget, candidate = (gates + recurrent).chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + new.sigmoid() * candidate.tanh()
        return output.sigmoid() * cell.tanh(), cell

    def read_all(self, *given: Any) -> Any:
        return _LstmSteps.apply(*given)  # type: ignore[no-untyped-call]


class Gru(Recurrent):
    """Cho et al. 2014, with the reset gate after the product, as torch.nn.GRU and cuDNN have it.

    r, z = sigmoid(W_r x + b_r + U_r h), ...        n = tanh(W_n x + b_n + r * U_n h)
    h' = (1 - z) * n + z * h
    """

    num_gates, num_states = 3, 1

    def next(self, gates: Tensor, recurrent: Tensor, *states: Tensor) -> States:
        (hidden,) = states
        reset, keep, candidate = gates.chunk(3, dim=-1)
        for_reset, for_keep, for_candidate = recurrent.chunk(3, dim=-1)
        candidate = (candidate + (reset + for_reset).sigmoid() * for_candidate).tanh()
        keep = (keep + for_keep).sigmoid()
        return (candidate + keep * (hidden - candidate),)

    def read_all(self, *given: Any) -> Any:
        return _GruSteps.apply(*given)  # type: ignore[no-untyped-call]


CELLS: dict[str, type[Recurrent]] = {"lstm": Lstm, "gru": Gru}
"""By name: (in_dim, dim, compute_dtype=...) -> a layer."""


class _Products:
    """x W of some rows at a time, in one precision. In a low one rows are topped up (`linear.py`)."""

    def __init__(self, matrix: Tensor, most: int, dtype: torch.dtype) -> None:
        self._matrix, self._is_low = matrix.to(dtype), matrix.dtype != dtype
        if self._is_low:
            most = -(-most // ROWS) * ROWS
            self._x = self._matrix.new_zeros(most, matrix.shape[0])
            self._y = self._matrix.new_empty(most, matrix.shape[1])

    def __call__(self, x: Tensor) -> Tensor:
        """(n, in) -> (n, out); in a low precision the next call takes the place of the result."""
        if not self._is_low:
            return x @ self._matrix
        self._x[: len(x)] = x
        topped = -(-len(x) // ROWS) * ROWS
        return torch.mm(self._x[:topped], self._matrix, out=self._y[:topped])[: len(x)]


def _each(sizes: list[int]) -> Iterator[tuple[int, slice]]:
    """Of each step how many sentences read, and where their rows lie among the arranged ones."""
    return zip(sizes, (slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))), strict=True)


def _for_weight(grad: Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient (out, in) of W in x W^T: one product over all rows."""
    if grad.dtype == dtype:
        return grad.t() @ x
    return (topped_up(grad, dtype).t() @ topped_up(x, dtype)).to(grad.dtype)


class _LstmSteps(torch.autograd.Function):
    """All steps of an LSTM, and their gradients: with dh, dc of what comes after a step,

    dc += dh o (1 - tanh(c')^2)     do = dh tanh(c') o (1 - o)     di = dc g i (1 - i)     df = dc c f (1 - f)
    dg = dc i (1 - g^2)             of before: dc f, [do di df dg] W_h
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Tensor]:
        dim, times = hidden.shape[1], _Products(weight.t(), len(hidden), dtype)
        hidden, cell, gates = hidden.clone(), cell.clone(), torch.empty_like(inputs)
        hiddens, hiddens_before, cells_before, squashed = (inputs.new_empty(len(inputs), dim) for _ in range(4))
        for size, rows in _each(sizes):
            h, c, a, t = hidden[:size], cell[:size], gates[rows], squashed[rows]
            hiddens_before[rows], cells_before[rows] = h, c
            torch.add(inputs[rows], times(h), out=a)
            a[:, : 3 * dim].sigmoid_()
            a[:, 3 * dim :].tanh_()
            output, new, forget, candidate = a.chunk(4, dim=1)
            c.mul_(forget).addcmul_(new, candidate)
            torch.mul(output, torch.tanh(c, out=t), out=h)
            hiddens[rows] = h
        ctx.save_for_backward(weight, gates, hiddens_before, cells_before, squashed)
        ctx.sizes, ctx.dtype = sizes, dtype
        return hiddens, hidden, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, for_hidden: Tensor, for_cell: Tensor) -> tuple[Tensor | None, ...]:
        weight, gates, hiddens_before, cells_before, squashed = ctx.saved_tensors
        dim, times = squashed.shape[1], _Products(weight, len(for_hidden), ctx.dtype)
        output, new, forget, candidate = gates.chunk(4, dim=1)
        into_cell = output * (1 - squashed * squashed)
        factors = gates * (1 - gates)
        of_output, of_new, of_forget, of_candidate = factors.chunk(4, dim=1)
        of_output.mul_(squashed)
        of_new.mul_(candidate)
        of_forget.mul_(cells_before)
        torch.mul(new, 1 - candidate * candidate, out=of_candidate)
        for_hidden, for_cell = for_hidden.clone(), for_cell.clone()
        for size, rows in reversed(list(_each(ctx.sizes))):
            d, dh, dc = factors[rows].view(size, 4, dim), for_hidden[:size], for_cell[:size]
            dh += grad[rows]
            dc.addcmul_(dh, into_cell[rows])
            d[:, 0] *= dh
            d[:, 1:] *= dc[:, None]
            dc *= forget[rows]
            dh.copy_(times(factors[rows]))
        return factors, _for_weight(factors, hiddens_before, ctx.dtype), for_hidden, for_cell, None, None


class _GruSteps(torch.autograd.Function):
    """All steps of a GRU, and their gradients: with dh of what comes after a step and u = U_n h,

    dz = dh (h - n) z (1 - z)     dn = dh (1 - z) (1 - n^2)     dr = dn u r (1 - r)     du = dn r
    of before: dh z + [dr dz du] W_h
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, hidden: Tensor, sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        dim, times = hidden.shape[1], _Products(weight.t(), len(hidden), dtype)
        hidden, gates = hidden.clone(), torch.empty_like(inputs)
        hiddens, hiddens_before, products = (inputs.new_empty(len(inputs), dim) for _ in range(3))
        for size, rows in _each(sizes):
            h, a, x, u = hidden[:size], gates[rows], inputs[rows], products[rows]
            hiddens_before[rows] = h
            recurrent = times(h)
            u.copy_(recurrent[:, 2 * dim :])
            torch.add(x[:, : 2 * dim], recurrent[:, : 2 * dim], out=a[:, : 2 * dim]).sigmoid_()
            reset, keep, candidate = a.chunk(3, dim=1)
            torch.addcmul(x[:, 2 * dim :], reset, u, out=candidate).tanh_()
            h.sub_(candidate).mul_(keep).add_(candidate)
            hiddens[rows] = h
        ctx.save_for_backward(weight, gates, hiddens_before, products)
        ctx.sizes, ctx.dtype = sizes, dtype
        return hiddens, hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, for_hidden: Tensor) -> tuple[Tensor | None, ...]:
        weight, gates, hiddens_before, products = ctx.saved_tensors
        dim, times = products.shape[1], _Products(weight, len(for_hidden), ctx.dtype)
        reset, keep, candidate = gates.chunk(3, dim=1)
        factors = gates * (1 - gates)
        of_reset, of_keep, of_product = factors.chunk(3, dim=1)
        of_candidate = (1 - keep) * (1 - candidate * candidate)
        of_keep.mul_(hiddens_before - candidate)
        of_reset.mul_(products).mul_(of_candidate)
        torch.mul(of_candidate, reset, out=of_product)
        for_hidden = for_hidden.clone()
        for size, rows in reversed(list(_each(ctx.sizes))):
            d, dh = factors[rows].view(size, 3, dim), for_hidden[:size]
            dh += grad[rows]
            d *= dh[:, None]
            of_candidate[rows] *= dh
            dh.mul_(keep[rows]).add_(times(factors[rows]))
        for_weight = _for_weight(factors, hiddens_before, ctx.dtype)
        factors[:, 2 * dim :] = of_candidate
        return factors, for_weight, for_hidden, None, None
