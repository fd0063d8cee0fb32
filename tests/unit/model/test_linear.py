import pytest
import torch
import torch.nn.functional as F

from model.linear import ROWS, Linear, topped_up


def test_full_precision_is_torchs_linear() -> None:
    layer = Linear(6, 4, compute_dtype=torch.float32).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("bias", [True, False])
def test_low_precision_stays_near_the_exact_product_and_its_gradients(bias: bool) -> None:
    torch.manual_seed(0)
    layer = Linear(64, 32, bias=bias, compute_dtype=torch.bfloat16).train()
    x = torch.randn(50, 64, requires_grad=True)
    weights = torch.randn(50, 32)
    (layer(x) * weights).sum().backward()
    low = [x.grad] + [parameter.grad for parameter in layer.parameters()]
    x.grad = None
    layer.zero_grad()
    (layer.eval()(x) * weights).sum().backward()
    exact = [x.grad] + [parameter.grad for parameter in layer.parameters()]
    for a, b in zip(low, exact, strict=True):
        assert a is not None
        assert b is not None
        assert (a - b).norm() < 0.01 * b.norm()


def test_eval_is_exact() -> None:
    layer, x = Linear(64, 32, compute_dtype=torch.bfloat16).eval(), torch.randn(3, 64)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_stacked_parts_are_initialised_each_by_its_own_width() -> None:
    bound = (6 / (64 + 64)) ** 0.5
    weight = Linear(64, 192, compute_dtype=torch.float32, num_parts=3).weight
    assert 0.98 * bound < weight.abs().max() <= bound


def test_topping_up_keeps_the_rows_and_adds_zeros() -> None:
    for num_rows in (1, ROWS, ROWS + 1):
        rows = torch.randn(num_rows, 3)
        topped = topped_up(rows, torch.bfloat16)
        assert len(topped) % ROWS == 0
        assert len(topped) - num_rows < ROWS
        assert torch.equal(topped[:num_rows], rows.bfloat16())
        assert not topped[num_rows:].any()
