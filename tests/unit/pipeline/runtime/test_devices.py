"""Where a model computes, and in which precision."""

import pytest
import torch

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime import devices
from tfm.pipeline.runtime.devices import bf16_is_faster, resolve_device, resolve_precision

CPU = torch.device("cpu")


def test_auto_is_the_cpu_where_there_is_no_cuda_and_what_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cpu") == resolve_device("cpu:0") == CPU
    for name in ("cuda", "mps"):
        with pytest.raises(RecipeError, match=f'device "{name}" is not available here; usable: auto, cpu'):
            resolve_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("cuda:0") == resolve_device("auto") == torch.device("cuda")
    with pytest.raises(
        RecipeError, match=r'device "cuda:1" is not .*; CUDA_VISIBLE_DEVICES chooses one of several GPUs'
    ):
        resolve_device("cuda:1")


@pytest.mark.parametrize(
    ("native", "faster", "expected"),
    [(True, True, torch.bfloat16), (True, False, torch.float32), (False, True, torch.float32)],
)
def test_auto_precision_is_bf16_where_the_cpu_multiplies_it_faster(
    native: bool, faster: bool, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ask in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, ask, lambda: native, raising=False)
    seconds = {torch.bfloat16: 1.0 if faster else 3.0, torch.float32: 2.0}
    monkeypatch.setattr(devices, "_time_matmul", lambda dtype: seconds[dtype])
    bf16_is_faster.cache_clear()
    assert resolve_precision("auto", CPU) == expected
    assert resolve_precision("fp32", CPU) == torch.float32
    assert resolve_precision("bf16", CPU) == torch.bfloat16
    bf16_is_faster.cache_clear()


@pytest.mark.parametrize(("capability", "expected"), [((9, 0), torch.bfloat16), ((7, 5), torch.float32)])
def test_auto_precision_of_a_gpu_is_what_it_has(
    capability: tuple[int, int], expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(devices, "_time_matmul", lambda dtype: pytest.fail("measured"))
    assert resolve_precision("auto", torch.device("cuda")) == expected
