"""Patches: equal to what torch cuts, in the order of reading."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.image_models import images
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.vision.image_shape import ImageShape
from tfm.model.vision.patches import PatchEmbedding, patchify
from tfm.model.vision.positions import GRID_POSITIONS, SinusoidalGridPositions

F64 = torch.float64


def patches(shape: ImageShape, patch: int, positions: str = "none") -> PatchEmbedding:
    torch.manual_seed(1)
    dropout = Dropout(0.0, DropoutRng())
    return PatchEmbedding(shape, patch, 10, positions=positions, dropout=dropout, compute_dtype=F64).double()


@pytest.mark.parametrize(("channels", "height", "width", "patch"), [(1, 4, 4, 4), (3, 6, 9, 3), (2, 8, 4, 2)])
def test_they_are_those_of_unfold_and_of_a_convolution(channels: int, height: int, width: int, patch: int) -> None:
    shape = ImageShape(height, width, channels)
    model, pixels = patches(shape, patch), images(3, shape=shape)
    unfolded = F.unfold(pixels, patch, stride=patch).transpose(1, 2)
    assert torch.equal(patchify(pixels, patch).view_as(unfolded), unfolded)
    layout = model.layout(pixels, torch.ones(3, dtype=torch.long))
    found = layout.pad(model(pixels, layout.positions))
    kernel = model.product.weight.view(10, channels, patch, patch)
    convolved = F.conv2d(pixels, kernel, model.product.bias, stride=patch).flatten(2).transpose(1, 2)
    torch.testing.assert_close(found, convolved, rtol=0, atol=1e-12)
    assert layout.lengths.tolist() == [height * width // patch**2] * 3


def by_loop(num_rows: int, num_columns: int, dim: int) -> Tensor:
    """The 2-D sinusoids, number by number."""
    halves = (dim // 2, dim - dim // 2)
    table = torch.empty(num_rows * num_columns, dim, dtype=F64)
    for row in range(num_rows):
        for column in range(num_columns):
            begin = 0
            for place, half in zip((row, column), halves, strict=True):
                for i in range(half):
                    angle = torch.tensor(place / 10_000 ** (i // 2 * 2 / half), dtype=F64)
                    table[row * num_columns + column, begin + i] = angle.cos() if i % 2 else angle.sin()
                begin += half
    return table


@pytest.mark.parametrize("dim", [2, 8, 9, 11])
def test_two_dimensional_sinusoids_are_those_of_a_loop(dim: int) -> None:
    rows = torch.zeros(2, 12, dim)
    found = SinusoidalGridPositions(4, 3, dim)(rows)
    for each in found:
        torch.testing.assert_close(each.double(), by_loop(4, 3, dim), rtol=0, atol=1e-6)


def test_a_learned_vector_belongs_to_its_cell() -> None:
    model, pixels = patches(ImageShape(6, 9, 3), 3, "learned"), images(2)
    layout = model.layout(pixels, torch.ones(2, dtype=torch.long))
    before = layout.pad(model(pixels, layout.positions)).detach()
    with torch.no_grad():
        model.positions.table[4] += 1.0  # type: ignore[operator]
    changed = (layout.pad(model(pixels, layout.positions)) != before).any(-1)
    assert changed.tolist() == [[False] * 4 + [True] + [False]] * 2


@pytest.mark.parametrize("name", ["learned", "sinusoidal"])
def test_no_two_cells_have_the_same_vector(name: str) -> None:
    table = GRID_POSITIONS[name](7, 7, 16)(torch.zeros(1, 49, 16))[0]
    assert (torch.cdist(table, table) + 9 * torch.eye(49)).min() > 0.1
