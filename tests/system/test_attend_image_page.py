"""The page of `tfm attend` on an image, in a browser: the image as it was read, bright where the chosen row attends."""

from pathlib import Path

import numpy as np
import pytest

from tests.browser import Browser
from tfm.pipeline.attention_page.attended import (
    AttendedImage,
    AttendedToken,
    AttentionAxes,
    AttentionKind,
    AttentionTrace,
    LayerAttention,
)
from tfm.pipeline.attention_page.page import render_attention_page

pytestmark = pytest.mark.slow
NAME = "<b>कुत्ता</b>.png"
WORDS = ("␣a", "␣dog", "</s>")
PIXELS = np.random.default_rng(1).integers(0, 256, (3, 6, 3), np.uint8)  # 2 x 3 places of 2 x 2, the lower cut off
CELLS = tuple(AttendedToken(f"row {row}, column {column}", False) for row in (1, 2) for column in (1, 2, 3))


def reading() -> AttentionTrace:
    draw = np.random.default_rng(2)
    words = tuple(AttendedToken(text, False) for text in WORDS)
    axes: dict[AttentionKind, AttentionAxes] = {
        "encoder": AttentionAxes(CELLS, CELLS, ("",) * 6, ("queries", "keys")),
        "decoder": AttentionAxes(words, words, ("then says x",) * 3),
        "cross": AttentionAxes(words, CELLS, ("said after x",) * 3, ("keys",)),
    }
    found = tuple(
        LayerAttention(kind, kind, 1, draw.dirichlet([1] * len(each.keys), (1, len(each.queries))).astype(np.float32))
        for kind, each in axes.items()
    )
    return AttentionTrace(NAME, "a dog", axes, found, AttendedImage(PIXELS, 2, 3, 2))


READ = reading()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    """The page; at first it shows the encoder."""
    file = tmp_path / "attention.html"
    file.write_text(render_attention_page("Attention", READ, None, None), encoding="utf-8")
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    browser.open(file)
    return browser


def pixels(page: Browser, canvas: str, width: int, height: int) -> np.ndarray:
    """Red, green, blue and alpha (height, width, 4)."""
    get = f"[...document.getElementById('{canvas}').getContext('2d').getImageData(0, 0, {width}, {height}).data]"
    return np.array(page.value(get)).reshape(height, width, 4)


def dark(kind: AttentionKind, row: int) -> np.ndarray:
    """How dark each place must be (rows, columns), by the weights: 0 for the largest."""
    shares = np.rint(1000 * READ.layers(kind)[0].weights[0][row].astype(np.float64))
    return (220 * (1 - shares / shares.max())).reshape(2, 3)


def test_the_image_is_the_one_that_was_read_under_the_dark_of_the_weights(page: Browser) -> None:
    assert page.texts(".sentence span")[0] == NAME
    image = pixels(page, "image", 6, 3)
    assert (image[..., :3] == PIXELS).all()
    assert pixels(page, "light", 3, 2)[..., 3] == pytest.approx(dark("encoder", 0), abs=1)
    wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert [event for event in page.events if event["method"] in wrong] == []


def test_each_word_has_its_own_light(page: Browser) -> None:
    page.click("#kinds button", 2)
    for row in (1, 2, 0):
        page.hover("#queries button", row)
        assert pixels(page, "light", 3, 2)[..., 3] == pytest.approx(dark("cross", row), abs=1)
        best = CELLS[int(READ.layers("cross")[0].weights[0][row].argmax())].text
        assert page.texts("#said")[0].startswith(f"{WORDS[row]} (said after x) attends to {best} ")
    assert page.value("asks.hidden")


def test_a_place_that_is_pointed_at_asks(page: Browser) -> None:
    page.hover("#image", down=0.9)  # the middle of the second row: row 2, column 2
    assert page.texts("#queries [aria-pressed=true]") == ["row 2, column 2"]
    assert pixels(page, "light", 3, 2)[..., 3] == pytest.approx(dark("encoder", 4), abs=1)
    assert page.value("[asks.hidden, Math.round(parseFloat(asks.style.left))]") == [False, 33]


def test_the_image_is_there_only_where_it_is_attended_to(page: Browser) -> None:
    shown = []
    for kind in range(3):
        page.click("#kinds button", kind)
        shown.append(page.value("getComputedStyle(seen).display !== 'none'"))
    assert shown == [True, False, True]


def test_it_lies_within_a_phone_s_width(page: Browser) -> None:
    page.ask("Emulation.setDeviceMetricsOverride", width=360, height=640, deviceScaleFactor=2, mobile=True)
    try:
        assert page.value("document.documentElement.scrollWidth") <= 360
        assert 0 < page.value("seen.getBoundingClientRect().width") <= 360
    finally:
        page.ask("Emulation.clearDeviceMetricsOverride")
