"""The fake CUDA device of `tests/fake_cuda.py` refuses and takes what a GPU does, and counts what waits."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.fake_cuda import DevicesMixed, FakeCuda


def refused() -> dict[str, Callable[[Tensor, Tensor], Any]]:
    """What a GPU refuses of a tensor on the device and one on the CPU, both (3, 4)."""
    return {
        "a sum": lambda there, here: there + here,
        "a product": lambda there, here: there @ here.t(),
        "a list": lambda there, here: torch.cat([there, here]),
        "rows": lambda there, here: F.embedding(here.long(), there),
        "numbers for an array": lambda there, here: there.numpy(),
        "a gradient": lambda there, here: _Misplaced.apply(there.requires_grad_()).sum().backward(),
        "draws": lambda there, here: torch.rand(3, generator=torch.Generator(), device=there.device),
    }


class _Misplaced(torch.autograd.Function):
    """Makes its gradient where it is not."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * torch.full((3, 4), 2.0)


@pytest.mark.parametrize("what", refused())
def test_devices_do_not_mix(what: str) -> None:
    with FakeCuda(), pytest.raises((DevicesMixed, TypeError), match="cuda"):
        refused()[what](torch.ones(3, 4, device="cuda"), torch.ones(3, 4))


def test_what_a_gpu_takes_is_taken() -> None:
    with FakeCuda() as fake:
        there, number = torch.ones(3, 4, device="cuda"), torch.tensor(2.0)
        for found in (there * number, there.t(), there.new_zeros(2), torch.zeros_like(there), there[0], there.double()):
            assert (found.device, found.is_cuda) == (torch.device("cuda:0"), True)
        there[0], there[there > 3] = 7.0, 8.0
        there.to("cpu", non_blocking=True)
        for found in (torch.ones(3), there.cpu(), torch.zeros_like(there, device="cpu")):
            assert (found.device, found.is_cuda) == (torch.device("cpu"), False)
    assert fake.waits == {"copy to the CPU in a test": 1}


@pytest.mark.parametrize(
    ("what", "ask"),
    {
        "item": lambda x: x.sum().item(),
        "item ": lambda x: float(x[0, 0]),
        "item  ": lambda x: bool((x > 0).all()),
        "tolist": lambda x: x.tolist(),
        "nonzero": lambda x: (x > 0).nonzero(),
        "boolean index": lambda x: x[x > 0],
        "index from the CPU": lambda x: x[torch.tensor([0, 2])],
        "bincount": lambda x: x[0].long().bincount(),
        "repeat_interleave": lambda x: x[0].repeat_interleave(x[0].long()),
        "equal": lambda x: torch.equal(x, x),
        "copy to the CPU": lambda x: x.cpu(),
        "copy to the device": lambda x: torch.ones(3).to(x.device),
        "copy to the device ": lambda x: x[0].copy_(torch.ones(4)),
        "copy to the device  ": lambda x: torch.tensor([1, 2], device=x.device),
    }.items(),
)
def test_what_waits_is_counted(what: str, ask: Callable[[Tensor], Any]) -> None:
    with FakeCuda() as fake:
        ask(torch.ones(3, 4, device="cuda"))
        with torch.inference_mode():
            ask(torch.ones(3, 4, device="cuda"))
    assert fake.waits == {f"{what.strip()} in a test": 2}


def test_a_copy_that_does_not_wait_is_there_after_its_event() -> None:
    with FakeCuda() as fake:
        copy, event = torch.ones(3, device="cuda").to("cpu", non_blocking=True), torch.cuda.Event()
        event.record()
        assert copy.tolist() != [1, 1, 1]
        event.synchronize()
        assert copy.tolist() == [1, 1, 1]
    assert fake.waits == {"event in a test": 1}
