"""Seconds and memory of a mixing layer, forward and backward, in a process of its own:
`python -m bench.kernels.layers < JSON`.

Time is that of the fastest passes, ten or more. Memory is the peak of torch's allocator above its level before the
pass, as recorded by torch's profiler: exact and reproducible, unlike the peak of a process.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from bench.kernels.gemm import best_seconds
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.model.masks import padding_mask
from tfm.model.transformer.factory import ModuleFactory

MEMORY_KEY = "[memory]"


def make_passes(config: ModelConfig, length: int) -> Callable[[], None]:
    """Return a function that runs forward and backward of an encoder's mixing layer on a sentence of a length."""
    stack = config.encoder
    torch.manual_seed(1)
    layer = ModuleFactory(config, torch.float32).mixing(stack, causal=False, layer_index=0)
    layout = Layout.from_lengths(torch.tensor([length]))
    rows, grad = torch.randn(length, stack.dim, requires_grad=True), torch.randn(length, stack.dim)
    weights = [rows, *layer.parameters()]  # type: ignore[attr-defined]

    def run_layer() -> None:
        torch.autograd.grad(layer(rows, layout, padding_mask(layout)), weights, grad)

    return run_layer


def measure_peak(run_pass: Callable[[], None]) -> int:
    """Bytes that torch's allocator holds at most during a pass, beyond those before it."""
    run_pass()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run_pass()
    return peak_bytes(record)


def peak_bytes(record: profile) -> int:
    """The largest sum of what was allocated and freed so far, over all moments of a record."""
    assert record.profiler is not None
    assert record.profiler.kineto_results is not None
    events = [each for each in record.profiler.kineto_results.events() if each.name() == MEMORY_KEY]
    current = peak = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        current += event.nbytes()  # type: ignore[attr-defined]
        peak = max(peak, current)
    return peak


def measure_layer(config: Mapping[str, Any], length: int, budget: float) -> dict[str, float]:
    """The figures of one layer at one length."""
    run_pass = make_passes(ModelConfig.model_validate(config), length)
    return {"seconds": best_seconds(run_pass, budget), "peak": measure_peak(run_pass)}


def main(options: Mapping[str, Any]) -> None:
    figures = [measure_layer(options["model"], length, options["seconds"]) for length in options["lengths"]]
    print(json.dumps({"found": figures, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
