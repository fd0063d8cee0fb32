"""The page of `tfm attend` in a browser: what a person points at, picks or reaches by keyboard is what is shown."""

from pathlib import Path

import numpy as np
import pytest

from tests.browser import Browser
from tfm.pipeline.api.attention import Attention as InNotebook
from tfm.pipeline.attention_page.attended import (
    AttendedToken,
    AttentionAxes,
    AttentionKind,
    AttentionTrace,
    LayerAttention,
)
from tfm.pipeline.attention_page.head_report import HeadMeasures, HeadReport
from tfm.pipeline.attention_page.page import render_attention_page
from tfm.pipeline.attention_page.picture import AttentionView

pytestmark = pytest.mark.slow
SOURCE = ("␣a", "␣<b>dog</b>", "␣\"'&amp;", "</script>", "</s>")
TARGET = ("␣Ein", "␣Hund", "<img src=x onerror=window.caught=1>", "</s>")
TEXTS = ('</p><script>window.caught = 1</script> "', "<!-- ${window.caught = 1} \u2028")
TAB, DOWN, RIGHT = ("Tab", 9), ("ArrowDown", 40), ("ArrowRight", 39)
INK = "getComputedStyle(document.documentElement).getPropertyValue('--ink-of-weights')"


def shares(seed: int, heads: int, queries: int, keys: int) -> np.ndarray:
    """Weights (H, T, S) whose thousandths are whole."""
    draw = np.random.default_rng(seed)
    whole = [[draw.multinomial(1000, draw.dirichlet([1] * keys)) for _ in range(queries)] for _ in range(heads)]
    return (np.array(whole) / 1000).astype(np.float32)


def reading() -> AttentionTrace:
    source, target = (tuple(AttendedToken(text, False) for text in texts) for texts in (SOURCE, TARGET))
    axes: dict[AttentionKind, AttentionAxes] = {
        "encoder": AttentionAxes(source, source, ("",) * 5),
        "decoder": AttentionAxes(target, target, ("then says x",) * 4),
        "cross": AttentionAxes(target, source, ("said after x",) * 4),
    }
    attentions = [
        LayerAttention(f"{kind}.{layer}", kind, layer + 1, shares(9 * n + layer, 3, len(each.queries), len(each.keys)))
        for n, (kind, each) in enumerate(axes.items())
        for layer in range(2)
    ]
    return AttentionTrace(TEXTS[0], TEXTS[1], axes, tuple(attentions))


READ = reading()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    """The page, opened at the first head of the second layer of cross-attention."""
    measure = HeadMeasures("cross", 1, 1, 4, 0.25, 0.5, 0.125, 0.0, 1.5, 0.75, {"<b>NOUN</b>": 0.5})
    file = tmp_path / "attention.html"
    text = render_attention_page("Attention of <i>x</i>", READ, AttentionView("cross", 2, 1), HeadReport(3, (measure,)))
    file.write_text(text, encoding="utf-8")
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    browser.open(file)
    return browser


def percents(kind: AttentionKind, layer: int, head: int | None, row: int) -> list[str]:
    """What stands under the keys for a query: percents, nothing below a half."""
    thousandths = np.rint(1000 * READ.layers(kind)[layer - 1].weights.astype(np.float64))
    chosen = thousandths.mean(0)[row] if head is None else thousandths[head - 1][row]
    return [str(int(np.floor(each / 10 + 0.5))) if each >= 5 else "" for each in chosen]


def pixels(width: int, height: int) -> str:
    """The picture's pixels, red, green, blue and alpha of each, as an expression."""
    return f"[...document.getElementById('weights').getContext('2d').getImageData(0, 0, {width}, {height}).data]"


def shown(page: Browser) -> list[str]:
    return page.texts("#keys b")


def test_it_opens_where_it_was_asked_to_and_says_nothing_to_the_console(page: Browser) -> None:
    assert page.texts("[role=tab][aria-selected=true]") == ["cross-attention"]
    assert page.value("[layer.value, head.value]") == ["1", "0"]
    assert page.texts("#which") == ["cross-attention, layer 2, head 1"]
    assert shown(page) == percents("cross", 2, 1, 0)
    wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert [event for event in page.events if event["method"] in wrong] == []


def test_it_asks_for_nothing_but_itself_and_could_not(page: Browser) -> None:
    asked = [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
    assert len(asked) == 1
    assert asked[0].endswith("/attention.html")
    assert page.value("fetch('data:,x').then(() => 'loaded', () => 'refused')") == "refused"


def test_text_is_text(page: Browser) -> None:
    assert page.texts("#queries button") == list(TARGET)
    assert page.texts("#keys bdi") == list(SOURCE)
    assert page.texts(".sentence span") == [TEXTS[0], "→ " + TEXTS[1].replace("\u2028", "\\u2028")]
    assert page.texts("h1") == ["Attention of <i>x</i>"]
    assert "<b>NOUN</b>" in page.texts("th")
    assert page.value("[window.caught, document.images.length, document.scripts.length]") == [None, 0, 2]


def test_pointing_at_a_token_shows_where_it_attends(page: Browser) -> None:
    for row in (2, 1):
        page.hover("#queries button", row)
        assert shown(page) == percents("cross", 2, 1, row)
        assert page.texts("#queries [aria-pressed=true]") == [TARGET[row]]
        weights = READ.layers("cross")[1].weights[0][row]
        colours = page.value(
            "[...document.querySelectorAll('#keys span')].map(e => +e.style.getPropertyValue('--share'))"
        )
        assert colours == pytest.approx(weights.tolist(), abs=1e-6)
        said = page.texts("#said")[0]
        most = SOURCE[int(weights.argmax())]
        assert said.startswith(f"{TARGET[row]} (said after x) attends to {most} ")


def test_pointing_into_the_picture_shows_its_row(page: Browser) -> None:
    page.hover("#weights", down=3.5 / 4)
    assert shown(page) == percents("cross", 2, 1, 3)
    page.hover("#weights", down=0.5 / 4)
    assert shown(page) == percents("cross", 2, 1, 0)


def test_the_picture_is_as_dark_as_the_weights(page: Browser) -> None:
    alpha = page.value(f"{pixels(5, 4)}.filter((_, i) => i % 4 == 3)")
    assert np.array(alpha).reshape(4, 5) == pytest.approx(READ.layers("cross")[1].weights[0] * 255, abs=1)
    small = page.value("[...document.querySelectorAll('#heads canvas')].map(e => [e.width, e.height])")
    assert small == [[5, 4]] * 6


def test_another_kind_is_picked_by_its_tab(page: Browser) -> None:
    page.click("[role=tab]", 0)
    assert page.texts("[role=tab][aria-selected=true]") == ["encoder self-attention"]
    assert page.texts("#queries button") == page.texts("#keys bdi") == list(SOURCE)
    assert shown(page) == percents("encoder", 1, None, 0)
    page.press(*RIGHT)
    assert page.texts("[role=tab][aria-selected=true]") == ["decoder self-attention"]
    assert page.texts("#keys bdi") == list(TARGET)
    assert page.value("document.activeElement.textContent") == "decoder self-attention"


def test_layer_and_head_are_picked_in_lists_and_in_the_overview(page: Browser) -> None:
    page.click("#heads button", 1)
    assert page.value("[layer.value, head.value]") == ["0", "1"]
    assert shown(page) == percents("cross", 1, 2, 0)
    assert page.value("document.querySelector('#heads [aria-pressed=true]').title") == "layer 1, head 2"
    for name, value, expected in (("layer", 1, (2, 2)), ("head", -1, (2, None)), ("head", 2, (2, 3))):
        page.value(f"{name}.value = {value}, {name}.dispatchEvent(new Event('change'))")
        assert shown(page) == percents("cross", *expected, 0)
    assert page.texts("#which") == ["cross-attention, layer 2, head 3"]


def test_all_is_reached_by_keyboard(page: Browser) -> None:
    reached = []
    for _ in range(8):
        page.press(*TAB)
        reached.append(page.value("(e => e.id || e.parentNode.id || e.closest('#heads')?.id)(document.activeElement)"))
        if reached[-1] == "queries":
            page.press(*DOWN)
            page.press(*DOWN)
            assert shown(page) == percents("cross", 2, 1, 2)
            assert page.value("document.activeElement.textContent") == TARGET[2]
        if reached[-1] == "heads":
            page.press(*RIGHT)
            assert page.texts("#which") == ["cross-attention, layer 2, head 2"]
            break
    assert [each for each in reached if each] == ["kinds", "layer", "head", "queries", "heads"]


def test_it_follows_the_reader_s_light_or_dark(page: Browser) -> None:
    def look() -> list[object]:
        page.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
        colour = "getComputedStyle(document.body).backgroundColor"
        found: list[object] = page.value(f"[{colour}, {INK}, {pixels(1, 1)}.slice(0, 3)].map(String)")
        return found

    light = look()
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = look()
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert shown(page) == percents("cross", 2, 1, 0)


def test_a_page_of_a_report_alone_has_no_script(browser: Browser, tmp_path: Path) -> None:
    measure = HeadMeasures("encoder", 1, 1, 4, 0.25, 0.5, 0.125, 0.0, 1.5, 0.75, None)
    file = tmp_path / "report.html"
    file.write_text(render_attention_page("Heads", None, None, HeadReport(3, (measure,))), encoding="utf-8")
    browser.open(file)
    assert browser.texts("td")[:4] == ["encoder", "1", "1", "25.0"]
    assert browser.value("document.scripts.length") == 0


def test_in_a_notebook_it_is_drawn_in_a_frame_that_sees_nothing_of_it(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "notebook.html"
    drawn = InNotebook(TEXTS[0], READ)._repr_html_()
    file.write_text(f"<!doctype html><meta charset='utf-8'><script>window.kept = 5</script>{drawn}", encoding="utf-8")
    browser.open(file)
    assert browser.value("[window.kept, window.caught === undefined].join()") == "5,true"
    with browser.in_frame():
        assert shown(browser) == percents("cross", 1, None, 0)
        assert browser.value("(() => { try { return top.kept } catch { return 'unseen' } })()") == "unseen"
        assert browser.value("window.caught === undefined")
