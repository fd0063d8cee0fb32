"""Which kernel a GPU multiplies with, seen without one."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.device_cases import configured, split_of
from tests.fake_cuda import FakeCuda
from tfm.model.build import build
from tfm.model.layout import Layout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("name", "has_biases"), [("transformer", False), ("ALiBi", True)])
@pytest.mark.few(2)
def test_operands_of_a_gpu(name: str, has_biases: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the precision of training, but where positions add to the logits; never with cuDNN, which plans each shape."""
    kernel, seen = F.scaled_dot_product_attention, list[tuple[torch.dtype, bool]]()

    def record(query: Tensor, *rest: Any, **more: Any) -> Tensor:
        seen.append((query.dtype, torch.backends.cuda.cudnn_sdp_enabled()))
        return kernel(query, *rest, **more)

    monkeypatch.setattr(F, "scaled_dot_product_attention", record)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with FakeCuda():
        model = build(configured(name), source_vocab=20, target_vocab=20, seed=1, compute_dtype=dtype)
        model = model.to(torch.device("cuda"))
        split = split_of("translation")
        lengths = torch.tensor([len(each) for each in split.source.to_lists()])
        ids = torch.cat([torch.tensor(each) for each in split.source.to_lists()]).to("cuda")
        layout = Layout.from_lengths(lengths, "cuda")
        for mode in (True, False):
            model.train(mode)(ids, layout, ids, layout)
    training, evaluation = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert {each for each, _ in training} == {dtype, *([torch.float32] if has_biases else [])}
    assert {each for each, _ in evaluation} == {torch.float32}
    assert not any(cudnn for _, cudnn in seen)
    assert torch.backends.cuda.cudnn_sdp_enabled() == before
