"""Feed-forward layers, norms and where they stand, each beside its equation in float64."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from model.blocks import ACTIVATIONS, NORMALIZATIONS, NORMS, FeedForward
from model.build import build
from model.config import ModelConfig, StackConfig
from model.noise import Dropout, Noise

EQUATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "tanh": math.tanh,
    "silu": lambda x: x / (1 + math.exp(-x)),
}
GATES: dict[str, Callable[[float, float], float]] = {
    "glu": lambda a, b: a / (1 + math.exp(-b)),
    "swiglu": lambda a, b: a / (1 + math.exp(-a)) * b,
}


def none() -> Dropout:
    return Dropout(0.0, Noise())


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


def layer_norm(x: Tensor, norm: nn.Module) -> Tensor:
    return (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt() * norm.weight + norm.bias  # type: ignore[operator]


def rms_norm(x: Tensor, norm: nn.Module) -> Tensor:
    return x / (x.square().mean() + 1e-5).sqrt() * norm.weight  # type: ignore[operator]


@pytest.mark.parametrize(("name", "equation"), [("layer", layer_norm), ("rms", rms_norm)])
def test_norms_are_their_equations(name: str, equation: Callable[[Tensor, nn.Module], Tensor]) -> None:
    torch.manual_seed(0)
    norm = NORMALIZATIONS[name](6).double()
    for weight in norm.parameters():
        nn.init.normal_(weight)
    x = torch.randn(5, 6, dtype=torch.float64)
    for row, got in zip(x, norm(x), strict=True):
        torch.testing.assert_close(got, equation(row, norm), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_norms_stand_before_or_after(name: str) -> None:
    torch.manual_seed(0)
    norm, x = NORMALIZATIONS[name](6), torch.randn(5, 6)
    assert torch.equal(NORMS["pre"](norm, none())(x, torch.sin), x + norm(x).sin())
    assert torch.equal(NORMS["post"](norm, none())(x, torch.sin), norm(x + x.sin()))


@pytest.mark.parametrize("name", NORMALIZATIONS)
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
