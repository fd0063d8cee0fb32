"""The residual network: equal to plain torch modules, and each image by itself."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.image_models import images
from tests.rounding import assert_rounds_like
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.vision.convolution import FeatureMapNorm, ResNetEmbedding, SamePaddingConv2d
from tfm.model.vision.image_shape import ImageShape

SIZES = [
    ((5,), 2, 1, ImageShape(4, 5, 1)),
    ((4, 6), 1, 1, ImageShape(6, 9, 3)),
    ((4, 4, 6), 2, 2, ImageShape(9, 10, 3)),
    ((4,), 1, 4, ImageShape(13, 8, 1)),
]
KERNELS = {1: 3, 2: 3, 4: 7}
"""Of the first convolution, by its stride."""


def convolution(
    channels: tuple[int, ...], blocks: int, stride: int, shape: ImageShape, compute_dtype: torch.dtype = torch.float32
) -> ResNetEmbedding:
    torch.manual_seed(1)
    made = ResNetEmbedding(
        shape,
        channels,
        blocks,
        stride,
        7,
        positions="none",
        dropout=Dropout(0.0, DropoutRng()),
        compute_dtype=compute_dtype,
    )
    with torch.no_grad():
        for each in made.modules():
            if isinstance(each, FeatureMapNorm):
                each.weight.normal_(1.0, 0.3)
                each.bias.normal_(0.0, 0.3)
    return made


class Block(nn.Module):
    """He et al. 2016, of torch's modules."""

    def __init__(self, take: Any, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            take(before, after, 3, stride), take(after), nn.ReLU(), take(after, after, 3, 1), take(after)
        )
        same = before == after and stride == 1
        self.outer = nn.Identity() if same else nn.Sequential(take(before, after, 1, stride), take(after))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.outer(x) + self.inner(x))


def plain(ours: ResNetEmbedding, channels: tuple[int, ...], blocks: int, stride: int, shape: ImageShape) -> nn.Module:
    """The same network of torch's modules, with our weights, in the order in which they are said."""
    convs: Iterator[Any] = (each for each in ours.modules() if isinstance(each, SamePaddingConv2d))
    norms: Iterator[Any] = (each for each in ours.modules() if isinstance(each, FeatureMapNorm))

    def take(before: int, after: int | None = None, kernel: int = 0, stride: int = 1) -> nn.Module:
        if after is None:
            made: Any = nn.GroupNorm(1, before)
            state = next(norms).state_dict()
        else:
            made = nn.Conv2d(before, after, kernel, stride, padding=(kernel - 1) // 2, bias=False)
            state = next(convs).state_dict()
        made.load_state_dict(state)
        return made  # type: ignore[no-any-return]

    parts: list[nn.Module] = [take(shape.channels, channels[0], KERNELS[stride], stride), take(channels[0]), nn.ReLU()]
    before = channels[0]
    for stage, after in enumerate(channels):
        for block in range(blocks):
            parts.append(Block(take, before, after, 2 if stage and not block else 1))
            before = after
    assert next(convs, None) is next(norms, None) is None
    return nn.Sequential(*parts)


def tokens(model: ResNetEmbedding, pixels: Tensor) -> Tensor:
    layout = model.layout(pixels, torch.ones(len(pixels), dtype=torch.long))
    return layout.pad(model(pixels, layout.positions))


@pytest.mark.parametrize(("channels", "blocks", "stride", "shape"), SIZES)
def test_it_is_the_network_of_plain_modules(
    channels: tuple[int, ...], blocks: int, stride: int, shape: ImageShape
) -> None:
    ours = convolution(channels, blocks, stride, shape).double()
    maps = plain(ours, channels, blocks, stride, shape).double()
    pixels = images(3, shape=shape)
    last = maps(pixels)
    wanted = last.flatten(2).transpose(1, 2) @ ours.product.weight.t() + ours.product.bias
    found = tokens(ours, pixels)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    assert found.shape == (3, last.shape[2] * last.shape[3], 7)
    theirs = dict(maps.named_parameters())
    for one, other in zip(
        torch.autograd.grad(wanted.square().sum(), list(theirs.values())),
        torch.autograd.grad(found.square().sum(), parameters_like(ours, maps)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def parameters_like(ours: ResNetEmbedding, maps: nn.Module) -> list[nn.Parameter]:
    """Ours, each where its equal stands among the other's."""
    left = [each for name, each in ours.named_parameters() if not name.startswith("product")]
    found = []
    for wanted in maps.parameters():
        place = next(place for place, each in enumerate(left) if torch.equal(each, wanted))
        found.append(left.pop(place))
    assert not left
    return found


def test_an_image_reads_the_same_in_every_batch() -> None:
    ours = convolution((4, 6), 1, 1, ImageShape(6, 9, 3)).double()
    some, others = images(3, 1), 40 * images(4, 2)
    alone = torch.cat([tokens(ours, each[None]) for each in some])
    for training in (False, True):
        ours.train(training)
        torch.testing.assert_close(tokens(ours, torch.cat([some, others]))[:3], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("channels", [1, 2, 4, 12])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.few(4)
def test_a_strided_convolution_is_that_of_torch_in_fp32(kernel: int, channels: int) -> None:
    """Forward and backward, many times: a write past a buffer (oneDNN's, on AVX2) ends the process or changes these."""
    conv = SamePaddingConv2d(channels, 8, kernel, stride=2)
    for seed in range(60):
        torch.manual_seed(seed)
        maps = torch.randn(10, channels, 8, 8).contiguous(memory_format=torch.channels_last)
        weight = conv.weight.detach().double().requires_grad_()
        reference = nn.functional.conv2d(maps.double(), weight, None, 2, kernel // 2)  # float64: not oneDNN's
        reference.square().sum().backward()
        conv.weight.grad = None
        found = conv(maps.requires_grad_())
        found.square().sum().backward()
        assert conv.weight.grad is not None
        assert weight.grad is not None
        torch.testing.assert_close(found.double(), reference, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(conv.weight.grad.double(), weight.grad, rtol=1e-4, atol=1e-3)


def test_low_precision_rounds_as_torch_does() -> None:
    shape = ImageShape(12, 12, 3)
    ours = convolution((8, 16), 1, 1, shape, torch.bfloat16).train()
    pixels = images(5, shape=shape).float()
    network = plain(ours, (8, 16), 1, 1, shape)
    low = network.bfloat16()(pixels.bfloat16()).float()
    exact = plain(ours.double(), (8, 16), 1, 1, shape).double()(pixels.double())
    fast: list[Tensor] = []
    ours.float().blocks.register_forward_hook(lambda *called: fast.append(called[2].float()))
    found = tokens(ours, pixels)
    assert fast[0].dtype == found.dtype == torch.float32
    assert_rounds_like(fast[0].contiguous(), low, exact, products=torch.bfloat16)
    assert (fast[0].double() - exact).abs().max() > 1e-3  # so it is not in full precision
