"""How a bench draws its curves."""

import re

import pytest

pytest.importorskip("matplotlib")

from bench.report import curves_svg


def test_the_first_figures_lie_along_the_horizontal_axis() -> None:
    drawing = curves_svg([("ours", [0.0, 1000.0], [0.0, 1.0])], "seconds", "BLEU")
    horizontal, _, vertical = drawing.partition('id="matplotlib.axis_2"')
    ticks = re.compile(r">([\d.]+)</text>")
    assert ticks.findall(horizontal)[-1] == "1000"
    assert ticks.findall(vertical)[-1] == "1.0"
    assert ">seconds</text>" in horizontal
    assert ">BLEU</text>" in vertical
    assert ">ours</text>" in drawing
