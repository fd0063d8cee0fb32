import math

import torch

from model.positions import POSITIONS, NoInput, sinusoids


def test_sinusoids_are_the_papers_equation() -> None:
    table = sinusoids(10, 50)
    for position in (0, 1, 7, 49):
        for i in range(5):
            angle = position / 10_000 ** (2 * i / 10)
            assert math.isclose(table[position, 2 * i], math.sin(angle), abs_tol=1e-12)
            assert math.isclose(table[position, 2 * i + 1], math.cos(angle), abs_tol=1e-12)


def test_odd_widths_have_one_sine_more() -> None:
    assert sinusoids(5, 4).shape == (4, 5)
    want = (torch.arange(4, dtype=torch.float64) / 10_000 ** (4 / 5)).sin()
    torch.testing.assert_close(sinusoids(5, 4)[:, 4], want, rtol=0, atol=1e-12)


def test_each_scheme_adds_by_position_alone() -> None:
    rows, positions = torch.randn(4, 6), torch.tensor([0, 1, 0, 1])
    for name, scheme in POSITIONS.items():
        added = scheme.input(6, 8)(rows, positions) - rows
        torch.testing.assert_close(added[0], added[2], msg=name)
        assert torch.allclose(added[0], added[1]) == (scheme.input is NoInput)
