"""A judge's page in a browser: answered by keyboard alone, reloaded in the middle, on a phone; text stays text."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser
from tests.judged import HOSTILE, campaign, systems
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.campaign import Campaign, CampaignKind
from tfm.pipeline.judging.forms.page import judge_page as page_of

pytestmark = pytest.mark.slow
KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
HEADING = "document.querySelector('#where').textContent"
FOCUS = "(e => e.id || e.getAttribute('aria-label') || e.textContent)(document.activeElement)"


def press(browser: Browser, *keys: str, shift: bool = False) -> None:
    """Press keys as a keyboard does: those that type a character, or act as one, say which."""
    for key in keys:
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = KEYS.get(key, ord(key[0].upper()))
        told = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        browser.ask(
            "Input.dispatchKeyEvent",
            type="keyDown" if text else "rawKeyDown",
            **told,
            **({"text": text} if text else {}),
        )
        browser.ask("Input.dispatchKeyEvent", type="keyUp", **told)


def opened(browser: Browser, of: Campaign, folder: Path) -> Browser:
    """The page of the first judge, with nothing kept of an earlier test."""
    file = folder / "judge-1.html"
    file.write_text(page_of(of, of.judges[0]), encoding="utf-8")
    load(browser, file)
    return browser


def load(browser: Browser, file: Path) -> None:
    """Open the page, and wait until it has begun: it shows where it is."""
    browser.open(file)
    begun = "(done => { (function look() { by('where').textContent ? done() : requestAnimationFrame(look); })(); })"
    browser.value(f"new Promise({begun})")


def fifty(kind: CampaignKind, texts: Sequence[str] = (), **wanted: Any) -> Campaign:
    """A campaign whose first judge is asked 50 items, checks and repeats among them."""
    of = campaign(
        kind,
        systems(3, 60, texts=texts),
        num_segments=40,
        judges_per_text=1,
        repeat_share=0.125,
        attention_check_share=0.125,
        **wanted,
    )
    assert len(of.judges[0].items) == 50
    return of


def answer_likert(browser: Browser, number: int) -> object:
    adequacy, fluency = 1 + number % 5, 1 + (number // 5) % 5
    press(browser, str(adequacy), str(fluency), "Enter")
    return {"A": {"adequacy": adequacy, "fluency": fluency}}


def answer_pairwise(browser: Browser, number: int) -> object:
    press(browser, str(1 + number % 3), "Enter")
    return {"preferred": ("A", "B", "tie")[number % 3]}


def answer_best(browser: Browser, number: int) -> object:
    if number % 4 == 3:
        press(browser, "1", "3", "2", "1", "Enter")  # the second 1 takes the first back
        return {"best": ["B", "C"]}
    press(browser, str(1 + number % 3), "Enter")
    return {"best": ["ABC"[number % 3]]}


def answer_esa(browser: Browser, number: int) -> object:
    """Marks the first word, or the second and third, of "what X says of N", and gives a score."""
    spans: list[dict[str, object]] = []
    press(browser, *["Tab"] * (2 if number == 0 else 1))  # at first the instructions come before
    text = browser.value("document.querySelector('[role=group]').textContent").removesuffix("[missing]")
    first, *_ = text.split()
    if number % 3 == 0:
        press(browser, " ", " ")
        spans.append({"start": 0, "end": len(first), "severity": "minor"})
    if number % 3 == 1:
        press(browser, "ArrowRight", "Enter", "ArrowRight", " ", "2")
        two = " ".join(text.split()[1:3])
        spans.append({"start": text.index(two), "end": text.index(two) + len(two), "severity": "major"})
    press(browser, "Tab")
    if number % 5 == 0:
        press(browser, " ")
        spans.append({"start": len(text), "end": len(text), "severity": "minor"})
    press(browser, *["Tab"] * (1 + 2 * len(spans)))
    score = (7 * number) % 101
    press(browser, *str(score), "Enter")
    return {"A": {"spans": spans, "score": score}}


ANSWERS: dict[CampaignKind, Callable[[Browser, int], object]] = {
    "likert": answer_likert, "esa": answer_esa, "pairwise": answer_pairwise, "best": answer_best,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_items_by_keyboard_with_a_reload_in_the_middle(
    browser: Browser, tmp_path: Path, kind: CampaignKind
) -> None:
    of = fifty(kind)
    page = opened(browser, of, tmp_path)
    typed: list[object] = []
    for number in range(50):
        if number == 23:
            load(page, tmp_path / "judge-1.html")
        assert page.value(HEADING) == f"Item {number + 1} of 50, {number} answered"
        typed.append(ANSWERS[kind](page, number))
    assert page.texts("#ended") == ["All 50 items are answered. Thank you!"]
    assert page.value(FOCUS) == "ended"
    content = json.loads(page.value("answers.value"))
    assert [each["answer"] for each in content["answers"]] == typed
    assert [each["item"] for each in content["answers"]] == list(of.judges[0].items)
    page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    press(page, "Tab", "Enter")
    saved = tmp_path / "judge-1-answers.json"
    end = time.monotonic() + 30
    while not saved.exists() and time.monotonic() < end:
        page.value("new Promise(done => setTimeout(done, 50))")
    assert json.loads(saved.read_text("utf-8")) == content
    assert len(read_answers(of, [saved])) == 50
    load(page, tmp_path / "judge-1.html")
    assert json.loads(page.value("answers.value")) == content, "closed and opened again it still gives the file"


def test_back_shows_what_was_given_and_lets_it_be_changed(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, fifty("likert", seed=2), tmp_path)
    press(page, "4", "2", "Enter", "1")
    press(page, "Enter")
    assert page.texts("#said") == ["Translation: fluency is not given yet"]
    assert page.value(HEADING) == "Item 2 of 50, 1 answered"
    press(page, "Enter", shift=True)
    assert page.value(HEADING) == "Item 1 of 50, 1 answered"
    assert page.value("[...document.querySelectorAll(':checked')].map(e => e.value)") == ["4", "2"]
    page.click("label.choice", 0)
    press(page, "Enter")
    assert page.value("[...document.querySelectorAll(':checked')].map(e => e.value)") == ["1"]
    press(page, "3")  # the field that is open
    press(page, "Enter", shift=True)
    assert page.value("[...document.querySelectorAll(':checked')].map(e => e.value)") == ["1", "2"]
    page.click("#stop")
    assert page.texts("#ended") == ["2 of 50 items are answered."]
    given = [each["answer"]["A"] for each in json.loads(page.value("answers.value"))["answers"]]
    assert given == [{"adequacy": 1, "fluency": 2}, {"adequacy": 1, "fluency": 3}]


def test_the_file_has_what_is_answered_after_it_was_made(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, fifty("pairwise", seed=11), tmp_path)
    press(page, "1", "Enter")
    page.click("#stop")
    press(page, "2")
    assert page.texts("#ended") == ["2 of 50 items are answered."]
    page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.click("#file")
    saved = tmp_path / "judge-1-answers.json"
    end = time.monotonic() + 30
    while not saved.exists() and time.monotonic() < end:
        page.value("new Promise(done => setTimeout(done, 50))")
    for text in (saved.read_text("utf-8"), page.value("answers.value")):
        assert [each["answer"]["preferred"] for each in json.loads(text)["answers"]] == ["A", "B"]


def test_seconds_count_while_the_item_is_in_sight(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, fifty("pairwise", seed=3), tmp_path)
    page.value("new Promise(done => setTimeout(done, 1200))")
    press(page, "1", "Enter", "1", "Enter")
    page.click("#stop")
    first, second = (each["seconds"] for each in json.loads(page.value("answers.value"))["answers"])
    assert 1.2 <= first < 30
    assert second < first


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_is_text_and_nothing_runs(browser: Browser, tmp_path: Path, kind: CampaignKind) -> None:
    of = fifty(kind, HOSTILE, seed=4, show_reference=True)
    page = opened(browser, of, tmp_path)
    for name in of.judges[0].items:
        item = of.items_by_id[name]
        texts = [item.source, item.references[0], *(each.text for each in item.shown)]
        found = page.value(
            "[...document.querySelectorAll('.text')].map(e => [...e.childNodes]"
            ".filter(n => !n.classList?.contains('omission')).map(n => n.textContent).join(''))"
        )
        assert found == [text if text.strip() else "(empty)" for text in texts]
        assert page.value("[window.caught, document.images.length, document.scripts.length]") == [None, 0, 1]
        page.value("kept.given[items[at].id] = null, show(at + 1)")
    wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
    assert [event for event in page.events if event["method"] in wrong] == []
    asked = [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
    assert len(asked) == 1
    assert page.value("fetch('data:,x').then(() => 'loaded', () => 'refused')") == "refused"


def test_what_is_answered_in_another_window_is_taken_over(browser: Browser, tmp_path: Path) -> None:
    page = opened(browser, fifty("pairwise", seed=10), tmp_path)
    press(page, "1")
    page.value(
        "(other => { other.given[items[0].id] = {preferred: 'B'}; const newValue = JSON.stringify(other);"
        "localStorage.setItem(KEY, newValue); dispatchEvent(new StorageEvent('storage', {key: KEY, newValue})); })"
        "(JSON.parse(localStorage.getItem(KEY)))"
    )
    assert page.value("document.querySelector(':checked').value") == "B"
    press(page, "Enter")
    assert page.value("JSON.parse(localStorage.getItem(KEY)).given[items[0].id].preferred") == "B"


@pytest.mark.parametrize(
    ("text", "marks", "words"),
    [
        ("Ein 🐕 läuft 𝒳 schnell.", ("ArrowRight", " ", "ArrowRight", " "), "🐕 läuft"),
        ("كلب يجري في الحديقة", ("ArrowLeft", " ", "ArrowLeft", " "), "يجري في"),
        ("e\u0301te\u0301 de\u0301ja\u0300 vu", ("ArrowRight", " ", " "), "de\u0301ja\u0300"),
    ],
)
def test_errors_are_counted_in_code_points(
    browser: Browser, tmp_path: Path, text: str, marks: tuple[str, ...], words: str
) -> None:
    of = campaign("esa", systems(1, 40, texts=[text]), seed=5, attention_check_share=0)
    page = opened(browser, of, tmp_path)
    page.value("document.querySelector('[role=group] [role=button]').focus()")
    press(page, *marks)
    (span,) = page.value("kept.given[items[at].id].A.spans")
    assert text[span["start"] : span["end"]] == words
    assert page.texts(".minor") == [each for each in page.texts(".minor") if each in words]
    press(page, "2")
    assert "".join(page.texts("[role=group] .major")) == words
    press(page, "0")
    assert page.value("kept.given[items[at].id].A.spans") == []


def test_a_browser_that_finds_no_words_goes_by_spaces(browser: Browser, tmp_path: Path) -> None:
    text = "Ein 🐕, der  läuft"
    script = browser.ask("Page.addScriptToEvaluateOnNewDocument", source="delete Intl.Segmenter")
    try:
        page = opened(browser, campaign("esa", systems(1, 40, texts=[text]), seed=9, attention_check_share=0), tmp_path)
        assert page.texts("[role=group] [role=button]:not(.omission)") == ["Ein", "🐕,", "der", "läuft"]
        page.click("[role=group] [role=button]", 1)
        page.click("[role=group] [role=button]", 2)
        (span,) = page.value("kept.given[items[at].id].A.spans")
        assert text[span["start"] : span["end"]] == "🐕, der"
    finally:
        browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_errors_are_marked_with_the_mouse_too(browser: Browser, tmp_path: Path) -> None:
    text = "Der Hund läuft schnell über das Feld"
    page = opened(browser, campaign("esa", systems(1, 40, texts=[text]), seed=6, attention_check_share=0), tmp_path)
    word = "[role=group] [role=button]"
    page.click(word, 1)
    page.click(word, 2)
    begin, end = page.hover(word, 4), page.hover(word, 6)
    for kind, (x, y) in (("mousePressed", begin), ("mouseMoved", end), ("mouseReleased", end)):
        page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    spans = page.value("kept.given[items[at].id].A.spans")
    assert [text[each["start"] : each["end"]] for each in spans] == ["Hund läuft", "über das Feld"]
    page.click(".errors button", 0)
    page.click(".errors button", 3)
    spans = page.value("kept.given[items[at].id].A.spans")
    assert [(text[each["start"] : each["end"]], each["severity"]) for each in spans] == [("Hund läuft", "major")]


def test_where_nothing_can_be_kept_it_says_so_and_works(browser: Browser, tmp_path: Path) -> None:
    refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    script = browser.ask("Page.addScriptToEvaluateOnNewDocument", source=refuse)
    try:
        page = opened(browser, fifty("pairwise", seed=7), tmp_path)
        assert page.texts("#warning:not([hidden])")[0].startswith("This browser keeps nothing for this page")
        press(page, "1", "Enter")
        assert page.value(HEADING) == "Item 2 of 50, 1 answered"
        page.value("onbeforeunload = null")
    finally:
        browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])
    load(page, tmp_path / "judge-1.html")
    assert page.texts("#warning:not([hidden])") == []


@pytest.mark.parametrize("kind", KINDS)
def test_it_fits_a_phone_in_light_and_dark(browser: Browser, tmp_path: Path, kind: CampaignKind) -> None:
    of = fifty(kind, HOSTILE, seed=8)
    browser.ask("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    try:
        page = opened(browser, of, tmp_path)
        papers = set()
        for theme in ("light", "dark"):
            page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
            papers.add(page.value("getComputedStyle(document.body).backgroundColor"))
            for number in range(0, 50, 7):
                page.value(f"show({number})")
                assert page.value("document.documentElement.scrollWidth") <= 360
        assert len(papers) == 2
        heights = "[...document.querySelectorAll('button, label.choice')].filter(e => e.offsetParent)"
        assert page.value(f"Math.min(...{heights}.map(e => e.offsetHeight))") >= 44
    finally:
        browser.ask("Emulation.setDeviceMetricsOverride", width=1100, height=900, deviceScaleFactor=1, mobile=False)
        browser.ask("Emulation.setEmulatedMedia", features=[])
