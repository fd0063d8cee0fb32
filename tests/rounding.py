"""Whether something fast is as exact as plain torch in the same precision on the same machine.

What fp32 gives differs from one CPU to another, so that no absolute bound holds on all: an error is bounded by a small
multiple of the error that plain torch has here.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

TIMES = 4.0
"""How many times plain torch's error an error may be, by the root of the mean of its squares."""
TIMES_LARGEST = 16.0
"""The same of the largest of all, which chance decides: in equal computations in another order it differs sixfold."""


def assert_rounds_like(
    fast: Tensor | Sequence[Tensor],
    plain: Tensor | Sequence[Tensor],
    exact: Tensor | Sequence[Tensor],
    *,
    magnitude: float = 0.0,
    products: torch.dtype | None = None,
) -> None:
    """rms(fast - exact) <= TIMES * (rms(plain - exact) + eps * magnitude), and so the largest, with TIMES_LARGEST.

    exact is in float64; fast and plain are of one precision, plain made by torch's own operations. eps: of that
    precision, or of `products`, where factors are rounded to a lower one. magnitude: the largest number that is rounded
    on the way, if that is larger than the largest |exact|; of a few numbers plain torch may by chance have no error at
    all.
    """
    fast, plain, exact = (_flat(each).detach() for each in (fast, plain, exact))
    assert exact.dtype == torch.float64
    assert fast.dtype == plain.dtype != torch.float64
    finite = exact.isfinite()
    assert torch.equal(fast[~finite].double(), exact[~finite])
    fast, plain, exact = fast[finite].double(), plain[finite], exact[finite]
    rounding = torch.finfo(products or plain.dtype).eps * max(_largest(exact), magnitude)
    errors, plain_errors = fast - exact, plain.double() - exact
    for size, times in ((_root_mean_square, TIMES), (_largest, TIMES_LARGEST)):
        error, bound = size(errors), times * (size(plain_errors) + rounding)
        assert error <= bound, f"the error is {error:.2e}, and {bound:.2e} is allowed"


def _flat(tensors: Tensor | Sequence[Tensor]) -> Tensor:
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    return torch.cat([each.flatten() for each in tensors])


def _largest(x: Tensor) -> float:
    return float(x.abs().nan_to_num(nan=torch.inf).max()) if len(x) else 0.0


def _root_mean_square(x: Tensor) -> float:
    return float(x.square().nan_to_num(nan=torch.inf).mean().sqrt()) if len(x) else 0.0
