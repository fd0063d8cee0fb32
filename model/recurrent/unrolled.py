"""All steps of a recurrent layer as one function, with gradients written out (backpropagation through time).

The gradient of the recurrent weight is thus one product after all steps instead of one a step, and products may have
operands of a lower precision (`layers/linear.py`). Rows are arranged by steps (`steps.py`).
Legend: N rows · B sentences · D width · x' is x after a step · dx gradient of x · U recurrent weight (gates * D, D),
U_r its part for r. Vectors side by side are multiplied elementwise.
"""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfm.model.layers.linear import LOW_PRECISION_ROW_MULTIPLE, pad_rows


class _RecurrentMatmul:
    """x W, of at most `max_rows` rows at a time, with operands of type `dtype`.

    If that is a lower precision than the matrix has, rows are topped up to a few shapes (`layers/linear.py`).
    """

    def __init__(self, matrix: Tensor, max_rows: int, dtype: torch.dtype) -> None:
        self._matrix, self._is_low = matrix.to(dtype), matrix.dtype != dtype
        if self._is_low:
            max_rows = -(-max_rows // LOW_PRECISION_ROW_MULTIPLE) * LOW_PRECISION_ROW_MULTIPLE
            self._x = self._matrix.new_zeros(max_rows, matrix.shape[0])
            self._y = self._matrix.new_empty(max_rows, matrix.shape[1])

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply (n, in) by the matrix: (n, out); in a lower precision the next call overwrites the result."""
        if not self._is_low:
            return x @ self._matrix
        self._x[: len(x)] = x
        num_padded = -(-len(x) // LOW_PRECISION_ROW_MULTIPLE) * LOW_PRECISION_ROW_MULTIPLE
        return torch.mm(self._x[:num_padded], self._matrix, out=self._y[:num_padded])[: len(x)]


def _step_slices(batch_sizes: list[int]) -> Iterator[tuple[int, slice]]:
    """Return for each step the number of sentences that take part, and the slice of their rows among the packed
    ones.
    """
    return zip(batch_sizes, (slice(*ends) for ends in pairwise(accumulate(batch_sizes, initial=0))), strict=True)


def _weight_grad(grad: Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient (out, in) of W in x W^T: one product over all rows."""
    if grad.dtype == dtype:
        return grad.t() @ x
    return (pad_rows(grad, dtype).t() @ pad_rows(x, dtype)).to(grad.dtype)


class UnrolledLstm(torch.autograd.Function):
    """All steps of an LSTM:    c' = f c + i g    h' = o tanh(c')    (`cells.Lstm`).

    Gradients of one step, given dh' and dc'; those of gates are before their sigmoid or tanh:
    dc' += dh' o (1 - tanh(c')^2)    do = dh' tanh(c') o (1 - o)    di = dc' g i (1 - i)    df = dc' c f (1 - f)
    dg = dc' i (1 - g^2)             dc = dc' f                     dh = [do di df dg] U
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor,
        hidden: Tensor,
        cell: Tensor,
        batch_sizes: list[int],
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return h of all rows, and the last h and c.

        Args:
            ctx: the context of autograd.
            inputs: W x + b (N, 4 D) of rows packed by steps.
            weight: U (4 D, D).
            hidden: the first h (B, D).
            cell: the first c (B, D).
            batch_sizes: of each step, the number of sentences that take part.
            dtype: precision of the products U h.

        Returns:
            h (N, D) of all rows; the last h (B, D) and c (B, D).
        """
        dim, matmul = hidden.shape[1], _RecurrentMatmul(weight.t(), len(hidden), dtype)
        hidden, cell, gates = hidden.clone(), cell.clone(), torch.empty_like(inputs)
        hiddens, hiddens_before, cells_before, tanh_cell = (inputs.new_empty(len(inputs), dim) for _ in range(4))
        for size, rows in _step_slices(batch_sizes):
            h, c, a, t = hidden[:size], cell[:size], gates[rows], tanh_cell[rows]
            hiddens_before[rows], cells_before[rows] = h, c
            torch.add(inputs[rows], matmul(h), out=a)
            a[:, : 3 * dim].sigmoid_()
            a[:, 3 * dim :].tanh_()
            output, new, forget, candidate = a.chunk(4, dim=1)
            c.mul_(forget).addcmul_(new, candidate)
            torch.mul(output, torch.tanh(c, out=t), out=h)
            hiddens[rows] = h
        ctx.save_for_backward(weight, gates, hiddens_before, cells_before, tanh_cell)
        ctx.sizes, ctx.dtype = batch_sizes, dtype
        return hiddens, hidden, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hiddens: Tensor, grad_hidden: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `forward`'s arguments.

        Args:
            ctx: the context of autograd.
            grad_hiddens: gradient of h of all rows (N, D).
            grad_hidden: gradient of the last h (B, D).
            grad_cell: gradient of the last c (B, D).
        """
        weight, gates, hiddens_before, cells_before, tanh_cell = ctx.saved_tensors
        dim, matmul = tanh_cell.shape[1], _RecurrentMatmul(weight, len(grad_hidden), ctx.dtype)
        output, new, forget, candidate = gates.chunk(4, dim=1)
        into_cell = output * (1 - tanh_cell * tanh_cell)
        factors = gates * (1 - gates)
        grad_output_gate, new_factor, forget_factor, candidate_factor = factors.chunk(4, dim=1)
        grad_output_gate.mul_(tanh_cell)
        new_factor.mul_(candidate)
        forget_factor.mul_(cells_before)
        torch.mul(new, 1 - candidate * candidate, out=candidate_factor)
        grad_hidden, grad_cell = grad_hidden.clone(), grad_cell.clone()
        for size, rows in reversed(list(_step_slices(ctx.sizes))):
            d, dh, dc = factors[rows].view(size, 4, dim), grad_hidden[:size], grad_cell[:size]
            dh += grad_hiddens[rows]
            dc.addcmul_(dh, into_cell[rows])
            d[:, 0] *= dh
            d[:, 1:] *= dc[:, None]
            dc *= forget[rows]
            dh.copy_(matmul(factors[rows]))
        return factors, _weight_grad(factors, hiddens_before, ctx.dtype), grad_hidden, grad_cell, None, None


class UnrolledSsru(torch.autograd.Function):
    """All steps of an SSRU:    c' = f c + (1 - f) v    h' = relu(c')    (`cells.Ssru`).

    Nothing is multiplied by a matrix between two steps. Gradients of one step, given dh' and dc'; that of f is before
    its sigmoid:
    dc' += dh' [c' > 0]    dv = dc' (1 - f)    df = dc' (c - v) f (1 - f)    dc = dc' f
    """

    @staticmethod
    def forward(
        ctx: Any, forget: Tensor, candidate: Tensor, cell: Tensor, batch_sizes: list[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return h of all rows, and the last h and c.

        Args:
            ctx: the context of autograd.
            forget: W_f x + b_f (N, D) of rows packed by steps.
            candidate: v = W x (N, D).
            cell: the first c (B, D).
            batch_sizes: of each step, the number of sentences that take part.

        Returns:
            h (N, D) of all rows; the last h and c (B, D).
        """
        forget_gate, cell = forget.sigmoid(), cell.clone()
        new = (1 - forget_gate) * candidate
        cells, cells_before = torch.empty_like(candidate), torch.empty_like(candidate)
        for size, rows in _step_slices(batch_sizes):
            c = cell[:size]
            cells_before[rows] = c
            cells[rows] = c.mul_(forget_gate[rows]).add_(new[rows])
        ctx.save_for_backward(forget_gate, candidate, cells_before, cells, cell)
        ctx.sizes = batch_sizes
        return cells.relu(), cell.relu(), cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hiddens: Tensor, grad_hidden: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `forward`'s arguments.

        Args:
            ctx: the context of autograd.
            grad_hiddens: gradient of h of all rows (N, D).
            grad_hidden: gradient of the last h (B, D).
            grad_cell: gradient of the last c (B, D).
        """
        forget_gate, candidate, cells_before, cells, cell = ctx.saved_tensors
        grad_cells, grad_cell = grad_hiddens * (cells > 0), grad_cell + grad_hidden * (cell > 0)
        for size, rows in reversed([*_step_slices(ctx.sizes)]):
            dc = grad_cell[:size]
            grad_cells[rows] = dc.add_(grad_cells[rows])
            dc.mul_(forget_gate[rows])
        grad_forget = grad_cells * (cells_before - candidate) * forget_gate * (1 - forget_gate)
        return grad_forget, grad_cells * (1 - forget_gate), grad_cell, None


class UnrolledGru(torch.autograd.Function):
    """All steps of a GRU:    h' = (1 - z) n + z h    n = tanh(W_n x + b_n + r u)    u = U_n h    (`cells.Gru`).

    Gradients of one step, given dh'; those of gates are before their sigmoid or tanh:
    dz = dh' (h - n) z (1 - z)    dn = dh' (1 - z) (1 - n^2)    dr = dn u r (1 - r)    du = dn r
    dh = dh' z + [dr dz du] U
    """

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, hidden: Tensor, batch_sizes: list[int], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return h of all rows, and the last h.

        Args:
            ctx: the context of autograd.
            inputs: W x + b (N, 3 D) of rows packed by steps.
            weight: U (3 D, D).
            hidden: the first h (B, D).
            batch_sizes: of each step, the number of sentences that take part.
            dtype: precision of the products U h.

        Returns:
            h (N, D) of all rows; the last h (B, D).
        """
        dim, matmul = hidden.shape[1], _RecurrentMatmul(weight.t(), len(hidden), dtype)
        hidden, gates = hidden.clone(), torch.empty_like(inputs)
        hiddens, hiddens_before, products = (inputs.new_empty(len(inputs), dim) for _ in range(3))
        for size, rows in _step_slices(batch_sizes):
            h, a, x, u = hidden[:size], gates[rows], inputs[rows], products[rows]
            hiddens_before[rows] = h
            recurrent = matmul(h)
            u.copy_(recurrent[:, 2 * dim :])
            torch.add(x[:, : 2 * dim], recurrent[:, : 2 * dim], out=a[:, : 2 * dim]).sigmoid_()
            reset, keep, candidate = a.chunk(3, dim=1)
            torch.addcmul(x[:, 2 * dim :], reset, u, out=candidate).tanh_()
            h.sub_(candidate).mul_(keep).add_(candidate)
            hiddens[rows] = h
        ctx.save_for_backward(weight, gates, hiddens_before, products)
        ctx.sizes, ctx.dtype = batch_sizes, dtype
        return hiddens, hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hiddens: Tensor, grad_hidden: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `forward`'s arguments.

        Args:
            ctx: the context of autograd.
            grad_hiddens: gradient of h of all rows (N, D).
            grad_hidden: gradient of the last h (B, D).
        """
        weight, gates, hiddens_before, products = ctx.saved_tensors
        dim, matmul = products.shape[1], _RecurrentMatmul(weight, len(grad_hidden), ctx.dtype)
        reset, keep, candidate = gates.chunk(3, dim=1)
        factors = gates * (1 - gates)
        reset_factor, keep_factor, product_factor = factors.chunk(3, dim=1)
        candidate_factor = (1 - keep) * (1 - candidate * candidate)
        keep_factor.mul_(hiddens_before - candidate)
        reset_factor.mul_(products).mul_(candidate_factor)
        torch.mul(candidate_factor, reset, out=product_factor)
        grad_hidden = grad_hidden.clone()
        for size, rows in reversed(list(_step_slices(ctx.sizes))):
            d, dh = factors[rows].view(size, 3, dim), grad_hidden[:size]
            dh += grad_hiddens[rows]
            d *= dh[:, None]
            candidate_factor[rows] *= dh
            dh.mul_(keep[rows]).add_(matmul(factors[rows]))
        grad_weight = _weight_grad(factors, hiddens_before, ctx.dtype)
        factors[:, 2 * dim :] = candidate_factor
        return factors, grad_weight, grad_hidden, None, None
