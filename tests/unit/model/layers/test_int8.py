import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tests.rounding import TIMES
from tfm.model.layers import int8, linear
from tfm.model.layers.int8 import int8_matmul, int8_unsupported_reason, quantize_weight
from tfm.model.layers.linear import Linear, inference_precision
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.devices import decoding_precision

needs_int8 = pytest.mark.skipif(int8_unsupported_reason() is not None, reason=str(int8_unsupported_reason()))


def written_out(x: Tensor, weight: Tensor) -> Tensor:
    """Each row scaled by its largest number / 127 and rounded; the product of the whole numbers, scaled back."""
    scale_x, scale_w = (each.double().abs().amax(1, keepdim=True) / 127 for each in (x, weight))
    return (x / scale_x).round() @ (weight / scale_w).round().t() * scale_x * scale_w.t()


@needs_int8
@pytest.mark.parametrize("num_rows", [1, 2, 37, 200])
def test_it_is_the_equation(num_rows: int) -> None:
    torch.manual_seed(num_rows)
    x, weight = torch.randn(num_rows, 96), torch.randn(50, 96)
    found = int8_matmul(x, quantize_weight(weight))
    wanted = written_out(x, weight)
    rounding = TIMES * torch.finfo(torch.float32).eps * wanted.abs().max()
    # where rounding to whole numbers in fp32 and in float64 differ in one number, it shows
    assert ((found - wanted).abs() > rounding).float().mean() < 0.02
    exact = x.double() @ weight.double().t()
    assert (found - exact).norm() < 1.1 * (wanted - exact).norm()


@needs_int8
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(0, 8))
def test_a_row_does_not_depend_on_the_rows_beside_it(seed: int, num_rows: int, row: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_rows, 32, generator=generator) * 10 ** (6 * torch.rand(num_rows, 1, generator=generator) - 3)
    weight, row = quantize_weight(torch.randn(24, 32, generator=generator)), row % num_rows
    assert torch.equal(int8_matmul(x, weight)[row], int8_matmul(x[row : row + 1], weight)[0])


@needs_int8
def test_rows_of_zeros_are_zeros() -> None:
    weight = torch.randn(16, 16)
    weight[3] = 0
    assert not int8_matmul(torch.zeros(2, 16), quantize_weight(weight)).any()
    assert not int8_matmul(torch.randn(2, 16), quantize_weight(weight))[:, 3].any()


@needs_int8
@pytest.mark.parametrize("bias", [True, False])
def test_only_large_layers_take_part(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = Linear(64, 32, bias=bias, compute_dtype=torch.float32).eval(), torch.randn(5, 64)
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias)
    with torch.inference_mode():
        exact = layer(x)
        with inference_precision(layer, torch.int8):
            small = layer(x)
            monkeypatch.setattr(linear, "MIN_WEIGHTS_FOR_INT8", 64 * 32)
            large, in_double = layer(x), layer(x.double())
        after = layer(x)
        wanted = written_out(x, layer.weight) + (0 if layer.bias is None else layer.bias)
    assert torch.equal(exact, small)
    assert torch.equal(exact, after)
    assert 1e-4 * exact.norm() < (large - exact).norm() < 1.1 * (wanted - exact).norm()
    assert in_double.dtype == torch.float64


def test_an_output_does_not_depend_on_those_that_are_computed_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a shortlist: few candidates of a sentence, more of all that are translated beside it."""
    monkeypatch.setattr(linear, "quantize_weight", lambda weight: weight)
    monkeypatch.setattr(linear, "int8_matmul", written_out)  # whether or not this CPU has instructions for it
    layer, x = Linear(64, 4000, compute_dtype=torch.float32).eval(), torch.randn(5, 64)
    outputs = torch.arange(0, 4000, 7)
    assert outputs[:50].numel() * 64 < linear.MIN_WEIGHTS_FOR_INT8 < layer.weight.numel()
    with torch.inference_mode(), inference_precision(layer, torch.int8):
        whole = layer(x)
        for some in (outputs[:50], outputs, torch.arange(4000)):
            torch.testing.assert_close(layer.select_outputs(some)(x), whole[:, some], rtol=1e-5, atol=1e-6)


def test_where_it_is_not_exact_it_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def cuts(x: Tensor, weight: object) -> Tensor:
        return torch.ones(len(x), 16)

    def fails(x: Tensor, weight: object) -> Tensor:
        raise RuntimeError("could not create a primitive\nat length")

    for kernel, reason in ((cuts, "VNNI"), (fails, r"\(could not create a primitive\)")):
        monkeypatch.setattr(int8, "int8_matmul", kernel)
        monkeypatch.setattr("tfm.pipeline.runtime.devices.int8_unsupported_reason", int8_unsupported_reason.__wrapped__)
        with pytest.raises(RecipeError, match=reason):
            decoding_precision("int8", "cpu")
    with pytest.raises(RecipeError, match="not for cuda"):
        decoding_precision("int8", "cuda")
    assert decoding_precision("bf16", "cuda") is torch.bfloat16
