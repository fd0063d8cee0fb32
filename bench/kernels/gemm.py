"""GFLOP/s of matrix products and GB/s of a copy, in a separate process: `python -m bench.kernels.gemm < JSON`.

x W^T for rows x (N, in) and a weight W (out, in). Plain: the weight in its usual memory layout. Packed: rearranged
once into the layout of the kernel, as model/layers/linear.py does if no gradient is needed.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

Product = Callable[[], object]
COPIED_BYTES = 2**28  # bytes: more than any cache holds


def plain_product(dtype: torch.dtype, rows: int, inner: int, outer: int) -> Product:
    x, weight = torch.randn(rows, inner).to(dtype), torch.randn(outer, inner).to(dtype)
    return lambda: F.linear(x, weight)


def packed_product(dtype: torch.dtype, rows: int, inner: int, outer: int) -> Product:
    x, weight = torch.randn(rows, inner).to(dtype), torch.randn(outer, inner).to(dtype)
    laid_out = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    return lambda: torch.ops.mkldnn._linear_pointwise(x, laid_out, None, "none", [], "")


def plain_int8_product(rows: int, inner: int, outer: int) -> Product:
    x, weight = _int8(rows, inner), _int8(outer, inner)
    return lambda: torch._int_mm(x, weight.t())


def packed_int8_product(rows: int, inner: int, outer: int) -> Product:
    x, scales, zeros = _int8(rows, inner).to(torch.uint8), torch.ones(outer), torch.zeros(outer, dtype=torch.int64)
    laid_out = torch.ops.onednn.qlinear_prepack(_int8(outer, inner), [rows, inner])
    return lambda: torch.ops.onednn.qlinear_pointwise(
        x, 0.1, 3, laid_out, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


def _int8(rows: int, columns: int) -> Tensor:
    return torch.randint(0, 100, (rows, columns), dtype=torch.int8)


PRODUCTS: dict[str, Callable[[int, int, int], Product]] = {
    "fp32": lambda *shape: plain_product(torch.float32, *shape),
    "fp32 packed": lambda *shape: packed_product(torch.float32, *shape),
    "bf16": lambda *shape: plain_product(torch.bfloat16, *shape),
    "bf16 packed": lambda *shape: packed_product(torch.bfloat16, *shape),
    "int8": plain_int8_product,
    "int8 packed": packed_int8_product,
}


def best_seconds(product: Product, budget: float) -> float:
    """Seconds of one call: the median of the fastest tenth of as many as fit in the budget, ten at least."""
    product()
    product()  # kernels are compiled and memory is touched
    durations: list[float] = []
    end = time.perf_counter() + budget
    while len(durations) < 10 or time.perf_counter() < end:
        _synchronize()
        start = time.perf_counter()
        product()
        _synchronize()
        durations.append(time.perf_counter() - start)
    return statistics.median(sorted(durations)[: max(len(durations) // 10, 3)])


def _synchronize() -> None:
    """Until a GPU has done what it was asked to."""
    if torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()


def gigaflops(kind: str, shape: tuple[int, int, int], budget: float) -> float | None:
    """GFLOP/s of one kind of product; None if this build of torch has none such."""
    rows, inner, outer = shape
    if missing_reason(kind) is not None:
        return None
    with torch.inference_mode():
        return 2e-9 * rows * inner * outer / best_seconds(PRODUCTS[kind](*shape), budget)


@cache
def missing_reason(kind: str) -> str | None:
    """Why this build of torch lacks a product; None if it has it. A small one is tried, so that no other error is
    hidden.
    """
    try:
        with torch.inference_mode():
            PRODUCTS[kind](16, 16, 16)()
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        return str(error).partition("\n")[0][:200]
    return None


def copy_rate(budget: float) -> float:
    """GB/s of a copy, read and written."""
    source = torch.ones(COPIED_BYTES // 4)
    target = torch.empty_like(source)
    return 2e-9 * COPIED_BYTES / best_seconds(lambda: target.copy_(source), budget)


def main(options: dict[str, object]) -> None:
    torch.set_default_device(str(options["device"]))
    budget = float(str(options["seconds"]))
    shapes: list[tuple[int, int, int]] = [tuple(each) for each in options["shapes"]]  # type: ignore[attr-defined]
    kinds: list[str] = list(options["kinds"])  # type: ignore[call-overload]
    rates = [[gigaflops(kind, shape, budget) for kind in kinds] for shape in shapes]
    copy = copy_rate(budget) if options.get("copy") else None
    reasons = {kind: reason for kind in kinds if (reason := missing_reason(kind)) is not None}
    print(json.dumps({"rates": rates, "copy": copy, "missing": reasons, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
