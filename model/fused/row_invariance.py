"""Whether a model's products give a row the same bits whatever the number of rows beside it.

Libraries choose another loop, and so another order of a sum, for another number of rows. Packed products of a CPU
(`layers/linear.py`) need not: each number of the result is one sum over the width, in one order. It is tried, not
believed: on the machine at hand, with the model's own weights.
"""

import torch
from torch import Tensor, nn

from tfm.model.layers.linear import Linear, can_pack

TESTED_ROW_COUNTS = (5, 8, 24, 32, 40, 64, 96, 128, 160, 320)
"""Numbers of rows that are tried; a decoding step has multiples of 32, and logits multiples of 8 up to 32."""


@torch.inference_mode()
def is_row_invariant(model: nn.Module) -> bool:
    """Return whether the rows of each packed product of a model are the same, bit by bit, beside any others."""
    layers = [each for each in model.modules() if isinstance(each, Linear)]
    if not layers or not can_pack():
        return False
    shapes = {tuple(each.weight.shape): each for each in layers}
    return all(_is_linear_row_invariant(each) for each in shapes.values())


def _is_linear_row_invariant(layer: Linear) -> bool:
    """Return whether it holds of one layer, for rows at the beginning and at the end of others."""
    multiply, most = layer.make_matmul(), max(TESTED_ROW_COUNTS)
    x: Tensor = torch.randn(most, layer.weight.shape[1], generator=torch.Generator().manual_seed(1))
    whole = multiply(x)
    return all(
        torch.equal(multiply(x[:count].contiguous()), whole[:count])
        and torch.equal(multiply(x[-count:].contiguous()), whole[-count:])
        for count in TESTED_ROW_COUNTS
    )
