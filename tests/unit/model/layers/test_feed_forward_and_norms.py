"""Feed-forward layers, norms and where they stand, each beside its equation in float64."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.rounding import assert_rounds_like
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.model.layers import linear
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.feed_forward import ACTIVATIONS, FeedForward
from tfm.model.layers.normalization import NORMALIZATIONS
from tfm.model.layers.residual import RESIDUALS, RESIDUALS_BY_NORM_PLACEMENT, StochasticDepth

EQUATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "tanh": math.tanh,
    "none": lambda x: x,
    "silu": lambda x: x / (1 + math.exp(-x)),
}
GATES: dict[str, Callable[[float, float], float]] = {
    "glu": lambda a, b: a / (1 + math.exp(-b)),
    "swiglu": lambda a, b: a / (1 + math.exp(-a)) * b,
}


def none() -> Dropout:
    return Dropout(0.0, DropoutRng())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_feed_forward_is_its_equation(name: str) -> None:
    torch.manual_seed(0)
    layer = FeedForward(3, 5, activation=ACTIVATIONS[name], dropout=none(), compute_dtype=torch.float32).double()
    nn.init.normal_(layer.inner.bias)  # type: ignore[arg-type]
    x = torch.randn(4, 3, dtype=torch.float64)
    for row, got in zip(x, layer(x), strict=True):
        inner = (layer.inner.weight @ row + layer.inner.bias).tolist()
        if name in GATES:
            assert len(inner) == 10
            between = [GATES[name](a, b) for a, b in zip(inner[:5], inner[5:], strict=True)]
        else:
            between = [EQUATIONS[name](a) for a in inner]
        want = layer.outer.weight @ torch.tensor(between, dtype=torch.float64) + layer.outer.bias
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("in_one_kernel", [True, False])
@pytest.mark.parametrize("num_rows", [1, 50, 128, 300])
def test_relu_between_products_in_bf16_is_as_exact_as_torch_s_own(
    num_rows: int, in_one_kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output and gradients, beside autocast and beside float64."""
    if not in_one_kernel:
        monkeypatch.setattr(linear, "can_pack", lambda dtype: False)
    torch.manual_seed(0)
    layer = FeedForward(48, 96, activation=ACTIVATIONS["relu"], dropout=none(), compute_dtype=torch.bfloat16).train()
    for bias in (layer.inner.bias, layer.outer.bias):
        nn.init.normal_(bias)  # type: ignore[arg-type]
    x, weights = torch.randn(num_rows, 48, requires_grad=True), torch.randn(num_rows, 48)

    def plain(x: Tensor) -> Tensor:
        inner, outer = layer.inner, layer.outer
        return F.linear(F.relu(F.linear(x, inner.weight, inner.bias)), outer.weight, outer.bias)

    def made(output: Tensor, *inputs: Tensor) -> list[Tensor]:
        return [output, *torch.autograd.grad((output * weights.to(output.dtype)).sum(), inputs)]

    fast = made(layer(x), x, *layer.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        output = plain(x).float()
    slow = made(output, x, *layer.parameters())
    exact_x = x.detach().double().requires_grad_()
    exact = made(plain_in_float64(layer, exact_x), exact_x, *layer.parameters())
    assert len(fast) == 6
    for one, other, true in zip(fast, slow, exact, strict=True):
        assert_rounds_like(one, other, true.double(), products=torch.bfloat16)


def plain_in_float64(layer: FeedForward, x: Tensor) -> Tensor:
    inner, outer = layer.inner, layer.outer
    assert inner.bias is not None
    assert outer.bias is not None
    between = F.relu(x @ inner.weight.double().t() + inner.bias.double())
    return between @ outer.weight.double().t() + outer.bias.double()


@pytest.mark.parametrize(("name", "rate"), [("gelu", 0.0), ("swiglu", 0.0), ("relu", 0.4)])
def test_what_is_not_relu_alone_is_computed_part_by_part(name: str, rate: float) -> None:
    """In training in bf16, as a product, an activation in fp32, dropout, and a product."""
    torch.manual_seed(0)
    noise = DropoutRng()
    layer = FeedForward(8, 16, activation=ACTIVATIONS[name], dropout=Dropout(rate, noise), compute_dtype=torch.bfloat16)
    layer.train()
    x = torch.randn(20, 8)
    noise.seed_batch(1, 1)
    found = layer(x)
    noise.seed_batch(1, 1)
    assert torch.equal(found, layer.outer(layer.dropout(ACTIVATIONS[name].function(layer.inner(x)))))


def layer_norm(x: Tensor, norm: nn.Module) -> Tensor:
    return (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt() * norm.weight + norm.bias  # type: ignore[operator]


def rms_norm(x: Tensor, norm: nn.Module) -> Tensor:
    return x / (x.square().mean() + 1e-5).sqrt() * norm.weight  # type: ignore[operator]


def layer_gain_norm(x: Tensor, norm: nn.Module) -> Tensor:
    return (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt() * norm.weight  # type: ignore[operator]


def layer_std_norm(x: Tensor, norm: nn.Module) -> Tensor:
    return (x - x.mean()) / (x.std(correction=0) + 1e-5) * norm.weight + norm.bias  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "equation"),
    [("layer", layer_norm), ("layer_gain", layer_gain_norm), ("layer_std", layer_std_norm), ("rms", rms_norm)],
)
def test_norms_are_their_equations(name: str, equation: Callable[[Tensor, nn.Module], Tensor]) -> None:
    torch.manual_seed(0)
    norm = NORMALIZATIONS[name](6).double()
    for weight in norm.parameters():
        nn.init.normal_(weight)
    x = torch.randn(5, 6, dtype=torch.float64)
    for row, got in zip(x, norm(x), strict=True):
        torch.testing.assert_close(got, equation(row, norm), rtol=0, atol=1e-12)


def test_a_gain_alone_has_no_bias_and_a_row_of_equal_numbers_has_a_gradient() -> None:
    assert [name for name, _ in NORMALIZATIONS["layer_gain"](6).named_parameters()] == ["weight"]
    x = torch.full((2, 6), 3.0, requires_grad=True)
    norm = NORMALIZATIONS["layer_std"](6)
    norm(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert torch.autograd.gradcheck(norm.double(), torch.randn(2, 6, dtype=torch.float64, requires_grad=True))


def batch_norm(x: Tensor, mean: Tensor, variance: Tensor, norm: nn.Module) -> Tensor:
    return (x - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias  # type: ignore[operator]


def test_batch_norm_is_its_equation_in_training_and_after() -> None:
    torch.manual_seed(0)
    norm = NORMALIZATIONS["batch"](6).double()
    theirs = nn.BatchNorm1d(6, dtype=torch.float64)
    for ours, other in zip(norm.parameters(), theirs.parameters(), strict=True):
        nn.init.normal_(ours)
        other.data.copy_(ours)
    for num_rows in (5, 3, 9):
        x = torch.randn(num_rows, 6, dtype=torch.float64, requires_grad=True)
        found, results = norm(x), []
        want = batch_norm(x, x.mean(0), x.var(0, correction=0), norm)
        for way in (found, want, theirs(x)):
            results.append([way, torch.autograd.grad(way.sin().sum(), x)[0]])
        for one, other, torchs in zip(*results, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
            torch.testing.assert_close(one, torchs, rtol=0, atol=1e-12)
    norm.eval()
    x = torch.randn(4, 6, dtype=torch.float64)
    torch.testing.assert_close(norm(x), theirs.eval()(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(norm(x), batch_norm(x, norm.mean, norm.variance, norm), rtol=0, atol=1e-12)
    torch.testing.assert_close(norm(x)[1:2], norm(x[1:2]), rtol=0, atol=1e-12, msg="a row is by itself")


def test_gradients_of_batch_norm() -> None:
    norm, x = NORMALIZATIONS["batch"](2).double(), torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, (x,))


def test_batch_norm_of_one_row_is_its_bias_and_of_no_number_is_not_remembered() -> None:
    norm = NORMALIZATIONS["batch"](3)
    nn.init.normal_(norm.bias)  # type: ignore[arg-type]
    assert torch.equal(norm(torch.randn(1, 3)), norm.bias[None])  # type: ignore[index]
    before = {name: each.clone() for name, each in norm.named_buffers()}
    x = torch.randn(4, 3)
    x[1, 2] = float("nan")
    norm(x)
    for name, each in norm.named_buffers():
        assert each.isfinite().all()
        assert each[2] == before[name][2]
        assert (each[:2] != before[name][:2]).all()
    assert {"mean", "variance"} <= norm.state_dict().keys()


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_norms_stand_before_or_after(name: str) -> None:
    torch.manual_seed(0)
    norm, x = NORMALIZATIONS[name](6), torch.randn(5, 6)
    assert torch.equal(
        RESIDUALS_BY_NORM_PLACEMENT["pre"](norm, none(), StochasticDepth(0.0, DropoutRng()))(x, torch.sin),
        x + norm(x).sin(),
    )
    assert torch.equal(
        RESIDUALS_BY_NORM_PLACEMENT["post"](norm, none(), StochasticDepth(0.0, DropoutRng()))(x, torch.sin),
        norm(x + x.sin()),
    )


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_without_a_residual_nothing_is_added(name: str) -> None:
    torch.manual_seed(0)
    norm, x, rest = NORMALIZATIONS[name](6), torch.randn(5, 6), (none(), StochasticDepth(0.0, DropoutRng()))
    assert torch.equal(RESIDUALS["none"]["pre"](norm, *rest)(x, torch.sin), norm(x).sin())
    assert torch.equal(RESIDUALS["none"]["post"](norm, *rest)(x, torch.sin), norm(x.sin()))


def test_no_norm_leaves_rows_as_they_are() -> None:
    x = torch.randn(5, 6)
    assert torch.equal(NORMALIZATIONS["none"](6)(x), x)


@pytest.mark.parametrize("name", [name for name in NORMALIZATIONS if name != "none"])
@pytest.mark.parametrize(("placement", "ends"), [("pre", True), ("post", False)])
def test_a_stack_ends_with_a_norm_where_its_layers_do_not(name: str, placement: str, ends: bool) -> None:
    stack = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=4)
    config = ModelConfig.model_validate(
        {"encoder": stack, "decoder": stack, "norm": placement, "normalization": name, "activation": "swiglu"}
    )
    model = build(config, source_vocab=9, target_vocab=9)
    kind = type(NORMALIZATIONS[name](8))
    for last in (model.encoder_norm, model.decoder_norm):
        assert isinstance(last, kind if ends else nn.Identity)
    assert sum(isinstance(module, kind) for module in model.modules()) == 5 + 2 * ends
