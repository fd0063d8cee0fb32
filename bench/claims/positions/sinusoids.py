"""Sinusoids: what they look like, and that a shift is the same rotation everywhere.

PE(pos + k) = R_k PE(pos), R_k of 2 x 2 rotations by k / 10000^(2i/D)
PE(pos) . PE(pos + k) = sum_i cos(k / 10000^(2i/D))
"""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bench.claims.claim import Claim, Found
from tfm.model.attention.positions import sinusoids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHIFTS = (1, 7)


def measure(dim: int = 64, length: int = 100) -> Found:
    """The table, the product of two rows by their distance, and how well one rotation shifts all rows."""
    table = sinusoids(dim, length)
    products = table @ table.t()
    by_distance = [products.diagonal(distance) for distance in range(length)]
    spread = max(float(each.max() - each.min()) for each in by_distance)
    errors = [float((table[:-shift] @ rotation(dim, shift) - table[shift:]).abs().max()) for shift in SHIFTS]
    wavelengths = [2 * math.pi * 10_000 ** (2 * pair / dim) for pair in (0, dim // 2 - 1)]
    return {
        "dim": dim,
        "table": table.round(decimals=3).tolist(),
        "products": [float(each.mean()) for each in by_distance],
        "spread": spread,
        "rotation_error": max(errors),
        "wavelengths": wavelengths,
    }


def rotation(dim: int, shift: int) -> Tensor:
    """The matrix (D, D) that moves each row by as many positions: row @ matrix."""
    matrix = torch.zeros(dim, dim, dtype=torch.float64)
    for pair in range(dim // 2):
        angle = shift / 10_000 ** (2 * pair / dim)
        cos, sin = math.cos(angle), math.sin(angle)
        block = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = block
    return matrix


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    products = data["products"]
    return {
        "shortest wavelength": f"{data['wavelengths'][0]:.2f}",
        "longest wavelength": f"{data['wavelengths'][1]:,.0f}",
        "largest error of a shift by rotation": f"{data['rotation_error']:.0e}",
        "product of a row with itself": f"{products[0]:.0f}",
        "product of neighbours": f"{products[1]:.1f}",
        "product at a distance of 10": f"{products[10]:.1f}",
        "spread of a product at one distance": f"{data['spread']:.0e}",
    }


def draw(data: Found) -> "Figure":
    """The table as a heat map, and the product over the distance."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    image = left.imshow(data["table"], cmap="RdBu", aspect="auto", vmin=-1, vmax=1, interpolation="nearest")
    left.set_xlabel("component")
    left.set_ylabel("position")
    left.set_title(f"PE(position, component), D = {data['dim']}", loc="left")
    figure.colorbar(image, ax=left)
    right.plot(data["products"])
    right.set_xlabel("distance k")
    right.set_title("PE(pos) · PE(pos + k)", loc="left")
    right.grid(alpha=0.25)
    return figure


CLAIM = Claim("sinusoids: a shift is the same rotation everywhere", measure, figures, draw)
