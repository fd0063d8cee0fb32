"""x W^T with 8-bit integers: each row of x and of W is scaled to integers from -127 to 127.

Each row of x has its own scale, and sums of integers are exact, so the result of a row does not depend on other rows. A
CPU with instructions for it (VNNI) does four such products in the time of one in fp32.
"""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

INT8_MAX = 127
ZERO_POINT = 128
"""The kernel's x is unsigned: this much is added to it, and accounted for within."""
MIN_SCALE = 1e-30


class Int8Weight(NamedTuple):
    """W, (out, in): laid out for the kernel; the scales of its rows (out,); zeros (out,)."""

    packed: Tensor
    scales: Tensor
    zeros: Tensor


def quantize_weight(weight: Tensor) -> Int8Weight:
    """A weight (out, in) in 8 bits."""
    quantized, scales = _quantize_rows(weight.float())
    zeros = torch.zeros(len(weight), dtype=torch.int32)
    return Int8Weight(
        torch.ops.onednn.qlinear_prepack(quantized.to(torch.int8), None), scales.squeeze(1).contiguous(), zeros
    )


def int8_matmul(x: Tensor, weight: Int8Weight) -> Tensor:
    """Multiply x (..., in) in fp32 by the weight: (..., out) in fp32."""
    rows = x.reshape(-1, x.shape[-1])
    quantized, scales = _quantize_rows(rows)
    product: Tensor = torch.ops.onednn.qlinear_pointwise(
        quantized.add_(ZERO_POINT).to(torch.uint8),
        1.0,
        ZERO_POINT,
        *weight,
        None,
        1.0,
        0,
        torch.float32,
        "none",
        [],
        "",
    )
    return product.mul_(scales).view(*x.shape[:-1], -1)


def _quantize_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows (N, in) as whole numbers, and their scales (N, 1): the product of both is nearly the rows again."""
    scales = rows.abs().amax(1, keepdim=True).clamp_(min=MIN_SCALE).div_(INT8_MAX)
    return (rows / scales).round_(), scales


@cache
def int8_unsupported_reason() -> str | None:
    """Why this build of torch or this CPU does not do it, or not exactly; None if both do."""
    rows = torch.tensor([[127.0], [-127.0], [0.0]]).repeat(1, 64)
    weight = torch.full((16, 64), 127.0)
    weight[1::2] = -127.0
    try:
        product = int8_matmul(rows, quantize_weight(weight))
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        return f"this build of torch does not multiply it ({str(error).partition(chr(10))[0]:.100})"
    if torch.allclose(product, rows @ weight.t(), rtol=1e-5):
        return None
    return "this CPU, without instructions for it (VNNI), cuts large sums"
