"""y = x W^T + b, with operands of the matrix products in a chosen precision.

If a CPU or GPU multiplies bf16 several times faster than fp32, products take bf16 operands in training, and everything
else stays in fp32. In eval() products have the weights' own precision, or that of `inference_precision`.

A CPU's bf16 kernels are compiled for each shape, and every batch has another number of rows: so rows are padded with
zeros to a multiple of LOW_PRECISION_ROW_MULTIPLE, which changes no sum and leaves few shapes. On a GPU, which has
kernels for any number of rows and to which every pass over memory is dear, the product adds the bias.

If no gradient is needed on a CPU, weights are packed once into the memory layout of the kernel: the same product,
several times faster for the few rows of a decoding step.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.layers.derived_weights import DerivedWeights
from tfm.model.layers.int8 import int8_matmul, quantize_weight

LOW_PRECISION_DTYPES = (torch.bfloat16, torch.float16)
PACKED_DTYPES = (torch.float32, torch.bfloat16)
LOW_PRECISION_ROW_MULTIPLE = 128
PADDED_ROW_MULTIPLE = 32
"""Many rows are topped up to a multiple of so many: the packed kernel is prepared again for each number of rows."""
MIN_FLOPS_FOR_PACKED_GEMM = 700_000
"""Fewer are done before the packed kernel, whose calls cost more, has begun."""
MIN_WEIGHTS_FOR_INT8 = 100_000
"""With fewer, to round x to 8 bits takes as long as they gain."""


def pad_rows(rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Return rows (N, D) in another precision, on a CPU followed by zeros up to a multiple of
    LOW_PRECISION_ROW_MULTIPLE."""
    num_rows = len(rows)
    if num_rows % LOW_PRECISION_ROW_MULTIPLE == 0 or rows.device.type != "cpu":
        return rows.to(dtype)
    result = rows.new_empty(
        -(-num_rows // LOW_PRECISION_ROW_MULTIPLE) * LOW_PRECISION_ROW_MULTIPLE, rows.shape[1], dtype=dtype
    )
    result[:num_rows] = rows
    result[num_rows:] = 0
    return result


def low_precision_linear(low_x: Tensor, low_weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """Return x W^T + b in the type of x, of operands in low precision.

    Args:
        low_x: x as `pad_rows` returns it.
        low_weight: W (out, in).
        bias: b (out,) in the type of x; None for none.
        x: (N, in).

    Returns:
        (N, out).
    """
    if x.device.type != "cpu":
        return F.linear(low_x, low_weight, None if bias is None else bias.to(low_x.dtype)).to(x.dtype)
    return add_bias(F.linear(low_x, low_weight)[: len(x)].to(x.dtype), bias)


def add_bias(y: Tensor, bias: Tensor | None) -> Tensor:
    """Return y (N, out) plus a bias (out,), added in place; y itself without a bias."""
    return y if bias is None else y.add_(bias)


class _LowPrecisionLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        low_x, low_weight = pad_rows(x, dtype), weight.to(dtype)
        ctx.save_for_backward(low_x, low_weight)
        ctx.has_bias, ctx.out_dtype = bias is not None, x.dtype
        return low_precision_linear(low_x, low_weight, bias, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        low_x, low_weight = ctx.saved_tensors
        low_grad = pad_rows(grad, low_x.dtype)
        grad_x = (low_grad @ low_weight)[: len(grad)].to(ctx.out_dtype) if ctx.needs_input_grad[0] else None
        grad_weight = (low_grad.t() @ low_x).to(ctx.out_dtype) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, grad.sum(0) if ctx.has_bias else None, None


def linear_in_training(x: Tensor, weight: Tensor, bias: Tensor | None, compute_dtype: torch.dtype) -> Tensor:
    """Return x W^T + b as `Linear` does in training.

    Args:
        x: (N, in).
        weight: W (out, in).
        bias: b (out,); None for none.
        compute_dtype: precision of the operands, if lower.

    Returns:
        (N, out).
    """
    if compute_dtype in LOW_PRECISION_DTYPES:
        return _LowPrecisionLinear.apply(x, weight, bias, compute_dtype)  # type: ignore[no-untyped-call,no-any-return]
    return F.linear(x, weight, bias)


@cache
def can_pack(dtype: torch.dtype = torch.float32) -> bool:
    """Return whether this build of torch, on this CPU, lays out weights of a type for its kernels and multiplies with
    them.
    """
    if dtype not in PACKED_DTYPES:
        return False
    x, weight = torch.ones(2, 16, dtype=dtype), torch.eye(16, dtype=dtype)
    try:
        return torch.equal(_multiply_packed(x, _pack_weight(weight), None), x)
    except (AttributeError, RuntimeError):
        return False


def _pack_weight(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight, None)  # type: ignore[no-any-return]


def _multiply_packed(x: Tensor, packed: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, activation, [], "")  # type: ignore[no-any-return]


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return relu(x W^T + b) in the type of x; on a CPU one kernel, which writes the result once.

    Args:
        x: (N, in).
        weight: W (out, in).
        bias: b (out,).

    Returns:
        (N, out).
    """
    if x.device.type == "cpu" and can_pack(x.dtype):
        return _multiply_packed(x, weight, bias, "relu")
    return F.linear(x, weight, bias).relu_()


class Linear(nn.Module):
    """A linear layer over rows (N, in) -> (N, out), Glorot-initialized.

    Args:
        in_dim: width of the input.
        out_dim: width of the output.
        bias: whether a bias is added.
        compute_dtype: precision of the operands while training.
        num_parts: number of matrices that are stacked in the weight; each is initialized by its own fan-out.
    """

    def __init__(
        self, in_dim: int, out_dim: int, *, bias: bool = True, compute_dtype: torch.dtype, num_parts: int = 1
    ) -> None:
        super().__init__()
        self.compute_dtype = compute_dtype
        self.inference_dtype: torch.dtype | None = None
        self.weight: Tensor = nn.Parameter(torch.empty(out_dim, in_dim))
        self.bias = nn.Parameter(torch.zeros(out_dim)) if bias else None
        self._packed_weight: DerivedWeights[Any] = DerivedWeights()
        for part in self.weight.detach().chunk(num_parts):
            nn.init.xavier_uniform_(part)

    def forward(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out)."""
        if self.training:
            return linear_in_training(x, self.weight, self.bias, self.compute_dtype)
        if torch.is_grad_enabled():
            return F.linear(x, self.weight, self.bias)
        if self._is_multiplied_in_int8:
            weight = self.weight
            in_8_bits = self._packed_weight.get_or_make((weight,), lambda: quantize_weight(weight.detach()), torch.int8)
            return add_bias(int8_matmul(x.float(), in_8_bits).to(x.dtype), self.bias)
        if self.inference_dtype in LOW_PRECISION_DTYPES:
            return self.multiply(x.to(self.inference_dtype)).to(x.dtype)
        return self.multiply(x)

    def multiply(self, x: Tensor) -> Tensor:
        """Multiply in the type of x, which the result has, without gradients: (N, in) -> (N, out)."""
        dtype, num_rows = x.dtype, x.shape[0]
        weight: Tensor = self.weight
        bias = None if self.bias is None else self.bias.to(dtype)
        should_pack = num_rows * weight.numel() >= MIN_FLOPS_FOR_PACKED_GEMM or dtype in LOW_PRECISION_DTYPES
        if should_pack and x.device.type == "cpu" and can_pack(dtype):
            num_pad_rows = -num_rows % PADDED_ROW_MULTIPLE if x.dim() == 2 and num_rows > 4 * PADDED_ROW_MULTIPLE else 0
            make_matmul = _multiply_packed(
                F.pad(x, (0, 0, 0, num_pad_rows)) if num_pad_rows else x, self._get_packed_weight(weight, dtype), bias
            )
            return make_matmul[:num_rows] if num_pad_rows else make_matmul
        if weight.dtype != dtype:
            weight = self._packed_weight.get_or_make((weight,), lambda: self.weight.detach().to(dtype), "cast", dtype)
        return F.linear(x, weight, bias)

    def _get_packed_weight(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        packed: Tensor = self._packed_weight.get_or_make(
            (weight,), lambda: _pack_weight(weight.detach().to(dtype)), dtype
        )
        return packed

    def make_matmul(self, activation: str = "none") -> Callable[[Tensor], Tensor]:
        """Return a function (N, in) -> (N, out) with the weight as it is now: a module call with fewer checks.

        activation: "relu", or "none". The function is for many rows, on a CPU, without gradients. For a packed product
        in bf16, operands and result are in bf16.
        """
        dtype = self.inference_dtype or self.weight.dtype
        if dtype in PACKED_DTYPES and can_pack(dtype):
            packed = self._get_packed_weight(self.weight, dtype)
            bias = None if self.bias is None else self.bias.detach().to(dtype)
            return lambda x: _multiply_packed(x, packed, bias, activation)
        return (lambda x: self(x).relu_()) if activation == "relu" else self.__call__

    def select_outputs(self, outputs: Tensor) -> Callable[[Tensor], Tensor]:
        """Return a function (N, in) -> (N, n) that computes some outputs (n,) alone, with the weight as it is now.

        Without gradients, in the precision of inference: that of the whole layer, however few the outputs are, so that
        none depends on those beside it.
        """
        weight = self.weight.detach()[outputs]
        bias = None if self.bias is None else self.bias.detach()[outputs]
        if self._is_multiplied_in_int8:
            in_8_bits = quantize_weight(weight)
            return lambda x: add_bias(int8_matmul(x.float(), in_8_bits).to(x.dtype), bias)
        if self.inference_dtype in LOW_PRECISION_DTYPES:
            low = weight.to(self.inference_dtype)
            return lambda x: add_bias(F.linear(x.to(low.dtype), low).to(x.dtype), bias)
        return lambda x: F.linear(x.to(weight.dtype), weight, bias)

    @property
    def _is_multiplied_in_int8(self) -> bool:
        return self.inference_dtype is torch.int8 and self.weight.numel() >= MIN_WEIGHTS_FOR_INT8

    @property
    def is_bf16(self) -> bool:
        """Whether the operands and the result of `make_matmul` are in bf16."""
        return self.inference_dtype is torch.bfloat16 and can_pack(torch.bfloat16)

    def pack_weight_if_supported(self) -> None:
        """Lay the weight out now, before processes are forked that would each do so."""
        dtype = self.inference_dtype or self.weight.dtype
        if self.weight.device.type == "cpu" and can_pack(dtype):
            self._get_packed_weight(self.weight, dtype)

    def train(self, mode: bool = True) -> Self:
        """Turn training on or off; packed weights are freed."""
        self._packed_weight.clear()
        return super().train(mode)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]} -> {self.weight.shape[0]}, bias={self.bias is not None}"


def linear_layers(model: object) -> list[Linear]:
    """The linear layers of a model, if it has any."""
    return [each for each in model.modules() if isinstance(each, Linear)] if isinstance(model, nn.Module) else []


@contextmanager
def inference_precision(model: object, dtype: torch.dtype) -> Iterator[None]:
    """Multiply operands of this type in a model's linear layers while the body runs, in eval() without gradients."""
    layers = linear_layers(model) if dtype in (torch.int8, *LOW_PRECISION_DTYPES) else []
    try:
        for layer in layers:
            layer.inference_dtype = dtype
        yield
    finally:
        for layer in layers:
            layer.inference_dtype = None
