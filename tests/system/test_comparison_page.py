"""The page of `tfm compare --html` in a browser: nothing runs, nothing is loaded, and it can be read on a phone."""

from pathlib import Path

import pytest

from tests.browser import Browser
from tests.unit.pipeline.comparison.test_page import NASTY, SENTENCES, SHOWN, page

pytestmark = pytest.mark.slow
TAB, RIGHT = ("Tab", 9), ("ArrowRight", 39)
BOXES = "[...document.querySelectorAll('.scroll')]"
# Of each text its direction, and whether its first letter stands to the right of its last one.
DIRECTIONS = """[...document.querySelectorAll('dd')].map(dd => {
  const walker = document.createTreeWalker(dd, NodeFilter.SHOW_TEXT), nodes = []
  while (walker.nextNode()) nodes.push(walker.currentNode)
  const place = (node, at) => {
    const range = document.createRange()
    range.setStart(node, at), range.setEnd(node, at + 1)
    return range.getBoundingClientRect().left
  }
  const last = nodes[nodes.length - 1]
  return [dd.textContent, getComputedStyle(dd).direction, place(nodes[0], 0) > place(last, last.length - 1)]
})"""


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Browser:
    file = tmp_path / "comparison.html"
    file.write_text(page(), encoding="utf-8")
    size(browser, 1100)
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open(file)
    return browser


def size(browser: Browser, width: int) -> None:
    phone = width < 500
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=phone)


def test_it_says_nothing_to_the_console_and_asks_for_nothing(shown: Browser) -> None:
    wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert [event for event in shown.events if event["method"] in wrong] == []
    asked = [event for event in shown.events if event["method"] == "Network.requestWillBeSent"]
    assert [event["params"]["request"]["url"].rpartition("/")[2] for event in asked] == ["comparison.html"]
    assert shown.value("fetch('data:,x').then(() => 'loaded', () => 'refused')") == "refused"


def test_hostile_text_is_text(shown: Browser) -> None:
    assert shown.value("[document.scripts.length, document.images.length, document.links.length]") == [0, 0, 0]
    assert shown.texts("h1") == [f"Comparison of {SHOWN}"]
    assert shown.value("document.title") == f"Comparison of {SHOWN}"
    assert SHOWN in shown.texts("dd ins")
    assert shown.value(f"document.body.textContent.includes({NASTY!r})") is False


def test_each_language_reads_from_its_own_side(shown: Browser) -> None:
    found = {text: (direction, right) for text, direction, right in shown.value(DIRECTIONS)}
    arabic, hebrew, chinese, _ = SENTENCES
    for text in (*arabic, *hebrew):
        assert found[text] == ("rtl", True)
    for text in (*chinese, SHOWN):
        assert found[text] == ("ltr", False)
    assert shown.value("[...document.querySelectorAll('dt')].every(e => getComputedStyle(e).direction == 'ltr')")


def test_on_a_phone_tables_scroll_and_the_page_does_not(shown: Browser) -> None:
    size(shown, 375)
    assert shown.value("document.documentElement.scrollWidth") == 375
    assert shown.value(f"{BOXES}.every(e => e.getBoundingClientRect().right <= 375)")
    wide = shown.value(f"{BOXES}.map(e => e.scrollWidth > e.clientWidth)")
    assert True in wide
    shown.press(*TAB)
    assert shown.value(f"document.activeElement == {BOXES}[0]")
    for _ in range(wide.index(True)):
        shown.press(*TAB)
    shown.press(*RIGHT)
    moved = f"new Promise(done => setTimeout(() => done({BOXES}[{wide.index(True)}].scrollLeft), 500))"
    assert shown.value(moved) > 0
    assert shown.value("scrollX") == 0


def test_what_is_folded_opens_by_keyboard(shown: Browser) -> None:
    assert shown.value("document.querySelector('details').open") is False
    for _ in range(20):
        shown.press(*TAB)
        if shown.value("document.activeElement.tagName") == "SUMMARY":
            break
    shown.ask("Input.dispatchKeyEvent", type="keyDown", key="Enter", text="\r", windowsVirtualKeyCode=13)
    assert shown.value("document.querySelector('details').open") is True


def test_bars_begin_in_the_middle_and_are_as_long_as_the_difference(shown: Browser) -> None:
    bars = shown.value(
        "[...document.querySelectorAll('.track')].map(track => { const all = track.getBoundingClientRect(),"
        "bar = track.firstChild.getBoundingClientRect(); return [(bar.left - all.left) / all.width,"
        "(bar.right - all.left) / all.width] })"
    )
    assert bars[0] == pytest.approx([0.5, 0.75], abs=0.01)  # 2.5 of 5
    assert bars[1] == pytest.approx([0, 0.5], abs=0.01)
    assert bars[2] == pytest.approx([0.5, 0.625], abs=0.01)  # 0.25 of 1


def test_it_follows_the_reader_s_light_or_dark(shown: Browser) -> None:
    colours = "(e => e.color + e.backgroundColor)(getComputedStyle(document.querySelector(name)))"
    look = f"['body', 'h1', '.track div', 'ins'].map(name => {colours})"
    light = shown.value(look)
    shown.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert all(one != other for one, other in zip(light, shown.value(look), strict=True))
