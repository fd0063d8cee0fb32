"""y = x W^T + b, with operands of the matrix products in a chosen precision while training.

Where a CPU or GPU multiplies bf16 several times faster than fp32, products take bf16 operands and
everything else stays fp32. In eval() products are in the weights' own precision, always.

A CPU's bf16 kernels are compiled for each shape they meet, and every batch has another number of rows: so
rows are topped up with zeros to a multiple of ROWS, which changes no sum and leaves few shapes.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOW_PRECISION = (torch.bfloat16, torch.float16)
ROWS = 128


def topped_up(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Rows (N, D) in another precision, followed by zeros up to a multiple of ROWS."""
    num_rows = len(rows)
    result = rows.new_empty(-(-num_rows // ROWS) * ROWS, rows.shape[1], dtype=dtype)
    result[:num_rows] = rows
    result[num_rows:] = 0
    return result


class _LowPrecisionProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        low_x, low_weight = topped_up(x, dtype), weight.to(dtype)
        ctx.save_for_backward(low_x, low_weight)
        ctx.has_bias, ctx.out_dtype = bias is not None, x.dtype
        y = F.linear(low_x, low_weight)[: len(x)].to(x.dtype)
        return y if bias is None else y.add_(bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        low_x, low_weight = ctx.saved_tensors
        low_grad = topped_up(grad, low_x.dtype)
        for_x = (low_grad @ low_weight)[: len(grad)].to(ctx.out_dtype) if ctx.needs_input_grad[0] else None
        for_weight = (low_grad.t() @ low_x).to(ctx.out_dtype) if ctx.needs_input_grad[1] else None
        return for_x, for_weight, grad.sum(0) if ctx.has_bias else None, None


class Linear(nn.Module):
    """A linear layer over rows (N, in) -> (N, out), Glorot-initialised.

    compute_dtype: precision of the operands while training.
    num_parts: how many matrices are stacked in the weight; each is initialised by its own fan-out.
    """

    def __init__(
        self, in_dim: int, out_dim: int, *, bias: bool = True, compute_dtype: torch.dtype, num_parts: int = 1
    ) -> None:
        super().__init__()
        self.compute_dtype = compute_dtype
        self.weight: Tensor = nn.Parameter(torch.empty(out_dim, in_dim))
        self.bias = nn.Parameter(torch.zeros(out_dim)) if bias else None
        for part in self.weight.detach().chunk(num_parts):
            nn.init.xavier_uniform_(part)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out)."""
        if self.training and self.compute_dtype in LOW_PRECISION:
            return _LowPrecisionProduct.apply(x, self.weight, self.bias, self.compute_dtype)  # type: ignore[no-untyped-call,no-any-return]
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]} -> {self.weight.shape[0]}, bias={self.bias is not None}"
