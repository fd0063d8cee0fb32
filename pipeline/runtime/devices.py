"""The choice of device, and of the precision of matrix products on it."""

import time
from collections.abc import Callable
from functools import cache

import torch

from tfm.model.layers.int8 import int8_unsupported_reason
from tfm.pipeline.config import DecodingPrecision
from tfm.pipeline.errors import RecipeError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def resolve_device(device: str) -> torch.device:
    """Resolve `auto` to the GPU if there is one. Raises RecipeError if the requested device is missing."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    name = device.removesuffix(":0")  # torch's name of the first one, which is ours
    if not available.get(name, False):
        usable = ", ".join(each for each, there in available.items() if there)
        advice = "; CUDA_VISIBLE_DEVICES chooses one of several GPUs" if name.startswith("cuda:") else ""
        raise RecipeError(f'device "{device}" is not available here; usable: auto, {usable}{advice}')
    return torch.device(name)


def _cuda_memory(device: torch.device) -> dict[str, int]:
    total = torch.cuda.get_device_properties(device).total_memory
    return {"peak_reserved": torch.cuda.max_memory_reserved(device), "total": total}


DEVICE_MEMORY: dict[str, Callable[[torch.device], dict[str, int]]] = {"cuda": _cuda_memory}
"""By kind of device that has its own memory: bytes that this process reserved at most, and all that there are."""


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """Precision of matrix products in training: `auto` is bf16 on a GPU that has it, and on a CPU that has it where it
    is measured to be faster. On a GPU the launch of a short product takes longer than the product."""
    if precision != "auto":
        return PRECISIONS[precision]
    prefers_bf16 = supports_bf16_matmul(device) and (device.type != "cpu" or bf16_is_faster())
    return torch.bfloat16 if prefers_bf16 else torch.float32


def decoding_precision(precision: DecodingPrecision, device: torch.device | str) -> torch.dtype:
    """The type of matrix products in decoding.

    Raises RecipeError if int8 is asked for and nothing here multiplies it.
    """
    if precision != "int8":
        return PRECISIONS[precision]
    on_cpu = torch.device(device).type == "cpu"
    if (problem := int8_unsupported_reason() if on_cpu else f"it is for CPUs, not for {device}") is not None:
        raise RecipeError(f'decoding.precision "int8" is not available here: {problem}; choose fp32 or bf16')
    return torch.int8


def supports_bf16_matmul(device: torch.device) -> bool:
    """Whether a device has instructions for bf16; without them a CPU emulates it, far slower than fp32."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    query_names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, name, lambda: False)() for name in query_names)


@cache
def bf16_is_faster() -> bool:
    """Whether a product of typical size takes this CPU less time in bf16, its operands' conversion included. Asked
    once."""
    seconds = {dtype: min(_time_matmul(dtype) for _ in range(5)) for dtype in PRECISIONS.values()}
    return seconds[torch.bfloat16] < seconds[torch.float32]


def _time_matmul(dtype: torch.dtype) -> float:
    x, weight = (torch.ones(shape) for shape in ((2048, 512), (512, 512)))
    start_time = time.perf_counter()
    (x.to(dtype) @ weight.to(dtype)).to(x.dtype)
    return time.perf_counter() - start_time
