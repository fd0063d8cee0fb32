"""Whether a model's products give a row the same bits whatever the number of rows beside it.

Libraries choose another loop, and so another order of a sum, for another number of rows. Packed products of a CPU
(`layers/linear.py`) need not: each number of the result is one sum over the width, in one order. It is tried, not
believed: on the machine at hand, with the model's own weights. So are the layers that a step calls as they are, not
packed: those of an embedding that is widened, of a narrowed output and of an adaptive softmax, which choose their
kernel by the number of rows.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from tfm.model.layers.linear import Linear, can_pack
from tfm.model.transformer.encoder_decoder import EncoderDecoder

TESTED_ROW_COUNTS = (5, 8, 24, 32, 40, 64, 96, 128, 160, 320)
"""Numbers of rows that are tried; a decoding step has multiples of 32, and logits multiples of 8 up to 32."""


TESTED_UNPACKED_ROW_COUNTS = (*range(1, 41), *TESTED_ROW_COUNTS)


@torch.inference_mode()
def is_row_invariant(model: EncoderDecoder) -> bool:
    """Return whether the rows of each product of a decoding step are the same, bit by bit, beside any others."""
    layers = [layer for layer in model.modules() if isinstance(layer, Linear)]
    if not layers or not can_pack():
        return False
    shapes = {tuple(layer.weight.shape): layer for layer in layers}
    return all(_is_linear_row_invariant(layer.make_matmul(), layer) for layer in shapes.values()) and all(
        _is_linear_row_invariant(layer, layer, TESTED_UNPACKED_ROW_COUNTS) for layer in _list_unpacked_linears(model)
    )


def _list_unpacked_linears(model: EncoderDecoder) -> list[Linear]:
    """The linear layers of a step that are called as modules (`decoder_step.py`)."""
    parts = [model.target_embedding, model.narrow]
    if not isinstance(model.output, Linear):
        parts.append(model.output)
    return [module for part in parts for module in part.modules() if isinstance(module, Linear)]


def _is_linear_row_invariant(
    multiply: Callable[[Tensor], Tensor], layer: Linear, row_counts: Iterable[int] = TESTED_ROW_COUNTS
) -> bool:
    """Return whether the product of one layer is row-invariant, for rows before and after others."""
    max_rows = max(TESTED_ROW_COUNTS)
    x: Tensor = torch.randn(max_rows, layer.weight.shape[1], generator=torch.Generator().manual_seed(1))
    product = multiply(x)
    return all(
        torch.equal(multiply(x[:count].contiguous()), product[:count])
        and torch.equal(multiply(x[-count:].contiguous()), product[-count:])
        for count in row_counts
    )
