import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.rounding import assert_rounds_like
from tfm.model.layers import linear
from tfm.model.layers.linear import LOW_PRECISION_ROW_MULTIPLE, Linear, can_pack, inference_precision, pad_rows


def exactly(layer: Linear, x: Tensor) -> Tensor:
    """The product in float64."""
    return F.linear(x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double())


def plainly(layer: Linear, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """What torch's own operations give of factors in a precision."""
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
        return F.linear(x, layer.weight, layer.bias).float()


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few the products are, the packed kernel does them."""
    monkeypatch.setattr(linear, "MIN_FLOPS_FOR_PACKED_GEMM", 0)


def test_full_precision_is_torchs_linear() -> None:
    layer = Linear(6, 4, compute_dtype=torch.float32).double()
    x = torch.randn(5, 6, dtype=torch.float64)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("bias", [True, False])
def test_low_precision_stays_near_the_exact_product_and_its_gradients(bias: bool) -> None:
    torch.manual_seed(0)
    layer = Linear(64, 32, bias=bias, compute_dtype=torch.bfloat16).train()
    x, weights = torch.randn(50, 64, requires_grad=True), torch.randn(50, 32)
    made: list[list[Tensor]] = []
    for product in (layer(x), plainly(layer, x, torch.bfloat16), exactly(layer, x)):
        made.append([product, *torch.autograd.grad((product * weights).sum(), [x, *layer.parameters()])])
    for fast, plain, exact in zip(*made[:2], [each.double() for each in made[2]], strict=True):
        assert_rounds_like(fast, plain, exact, products=torch.bfloat16)


def test_eval_is_exact() -> None:
    layer, x = Linear(64, 32, compute_dtype=torch.bfloat16).eval(), torch.randn(3, 64)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("many", [0, 1 << 60])
@pytest.mark.parametrize("num_rows", [1, 2, 7, 64, 300])
@pytest.mark.parametrize("bias", [True, False])
def test_without_gradients_it_is_the_same_product(
    num_rows: int, bias: bool, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "MIN_FLOPS_FOR_PACKED_GEMM", many)
    layer, x = Linear(48, 70, bias=bias, compute_dtype=torch.float32).eval(), torch.randn(num_rows, 48)
    plain, exact = plainly(layer, x).detach(), exactly(layer, x).detach()
    with torch.inference_mode():
        assert_rounds_like(layer(x), plain, exact)
    with torch.no_grad():
        found = layer(x.reshape(num_rows, 1, 48))
        assert found.shape == (num_rows, 1, 70)
        assert_rounds_like(found, plain, exact)


@pytest.mark.usefixtures("packed")
def test_changed_weights_are_seen_however_they_change() -> None:
    layer, x = Linear(16, 16, compute_dtype=torch.float32).eval(), torch.randn(4, 16)

    def assert_current() -> None:
        with torch.inference_mode():
            assert_rounds_like(layer(x), plainly(layer, x), exactly(layer, x))

    assert_current()
    with torch.no_grad():
        layer.weight.mul_(2)
    assert_current()
    layer.load_state_dict(Linear(16, 16, compute_dtype=torch.float32).state_dict())
    assert_current()
    layer.weight = torch.nn.Parameter(torch.randn(16, 16))
    assert_current()
    optimizer = torch.optim.AdamW(layer.parameters(), fused=True)
    layer.train()(x).sum().backward()
    optimizer.step()
    layer.eval()
    assert_current()
    assert layer.state_dict().keys() == {"weight", "bias"}


@pytest.mark.usefixtures("packed")
def test_where_weights_cannot_be_laid_out_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = Linear(16, 16, compute_dtype=torch.float32).eval(), torch.randn(4, 16)
    monkeypatch.setattr(linear, "can_pack", lambda dtype=None: False)
    with torch.inference_mode():
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_product_does_what_the_layer_does(packs: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "can_pack", can_pack if packs else lambda dtype=None: False)
    layer, x = Linear(16, 24, compute_dtype=torch.float32).eval(), torch.randn(300, 16)
    with torch.inference_mode(), inference_precision(layer, dtype):
        plain, exact = plainly(layer, x, dtype), exactly(layer, x)
        assert exact.min() < 0
        assert layer.is_bf16 == (packs and dtype is torch.bfloat16 and can_pack(dtype))
        given = x.bfloat16() if layer.is_bf16 else x
        for found in (layer(x), layer.make_matmul()(given).float()):
            assert_rounds_like(found, plain, exact, products=dtype)
        assert_rounds_like(layer.make_matmul("relu")(given).float(), plain.relu(), exact.relu(), products=dtype)


@pytest.mark.usefixtures("packed")
def test_a_layer_is_copied_also_after_its_weights_were_laid_out() -> None:
    layer, x = Linear(16, 16, compute_dtype=torch.float32).eval(), torch.randn(4, 16)
    with torch.no_grad():
        before = layer(x)
        copied = copy.deepcopy(layer)
        assert torch.equal(copied(x), before)
        copied.weight.zero_()
        assert torch.equal(layer(x), before)
        assert torch.equal(copied(x), copied.bias.expand(4, -1))


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_products_may_be_in_another_precision_for_a_while(
    packs: bool, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not packs:
        monkeypatch.setattr(linear, "can_pack", lambda dtype=None: False)
    layer = torch.nn.Sequential(Linear(64, 32, bias=bias, compute_dtype=torch.float32)).eval()
    x = torch.randn(50, 64)
    plain = layer(x)
    with inference_precision(layer, torch.bfloat16):
        assert torch.equal(layer(x), plain), "with gradients nothing changes"
        with torch.inference_mode():
            low = layer(x)
    with torch.inference_mode():
        after = layer(x)
        exact = exactly(layer[0], x)
        assert_rounds_like(low, plainly(layer[0], x, torch.bfloat16), exact, products=torch.bfloat16)
        assert_rounds_like(after, plain, exact)
    assert (low - exact).norm() > 1e-4 * exact.norm()
    with inference_precision(object(), torch.bfloat16):
        pass


def test_stacked_parts_are_initialised_each_by_its_own_width() -> None:
    bound = (6 / (64 + 64)) ** 0.5
    weight = Linear(64, 192, compute_dtype=torch.float32, num_parts=3).weight
    assert 0.98 * bound < weight.abs().max() <= bound


def test_topping_up_keeps_the_rows_and_adds_zeros() -> None:
    for num_rows in (1, LOW_PRECISION_ROW_MULTIPLE, LOW_PRECISION_ROW_MULTIPLE + 1):
        rows = torch.randn(num_rows, 3)
        topped = pad_rows(rows, torch.bfloat16)
        assert len(topped) % LOW_PRECISION_ROW_MULTIPLE == 0
        assert len(topped) - num_rows < LOW_PRECISION_ROW_MULTIPLE
        assert torch.equal(topped[:num_rows], rows.bfloat16())
        assert not topped[num_rows:].any()
