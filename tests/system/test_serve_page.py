"""The page of `tfm serve` in a browser, in front of a server that stands in: what a person types, loses and pastes."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.browser import Browser
from tests.system.serve_stand_in import LANGUAGES, OTHERS, TRANSLATOR, StandIn, standing_in

pytestmark = pytest.mark.slow
DONE = "document.getElementById('translation').ariaBusy === 'false'"
SHOWN = "document.getElementById('translation').textContent"
STATUS = "document.getElementById('status').textContent"
ENTER, RIGHT = ("Enter", 13), ("ArrowRight", 39)
WRONG = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with standing_in(StandIn()) as stand:
        yield stand


@pytest.fixture
def stand(server: StandIn) -> StandIn:
    """The server as it is at first."""
    server.models, server.char_limit, server.seconds = [TRANSLATOR], 50_000, 0.0
    server.languages, server.key = LANGUAGES, None
    server.refusals.clear()
    server.asked.clear()
    return server


@pytest.fixture
def page(browser: Browser, stand: StandIn) -> Browser:
    """The page with nothing kept, the cursor in the text."""
    browser.ask("Emulation.setDeviceMetricsOverride", width=1100, height=900, deviceScaleFactor=1, mobile=False)
    browser.ask("Network.setCacheDisabled", cacheDisabled=True)
    visit(browser, stand)
    browser.value("localStorage.clear()")
    visit(browser, stand)
    return browser


def visit(browser: Browser, stand: StandIn) -> None:
    browser.open(stand.address)
    browser.wait_for("!document.getElementById('tasks').hidden || !document.getElementById('translate').hidden")
    browser.value("document.getElementById('source').focus()")


def write(page: Browser, text: str) -> None:
    """Replace the text by another, as pasting does."""
    page.value("(source => { source.focus(); source.select(); })(document.getElementById('source'))")
    page.type(text)


def wait_for_text(page: Browser, text: str) -> None:
    page.wait_for(f"{DONE} && {SHOWN} === {text!r}")


def test_it_says_nothing_to_the_console_and_asks_no_other_host(page: Browser, stand: StandIn) -> None:
    write(page, "A dog.")
    wait_for_text(page, "A DOG.")
    asked = [e["params"]["request"]["url"] for e in page.events if e["method"] == "Network.requestWillBeSent"]
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith(stand.address)] == []
    told = [event for event in page.events if event["method"] in WRONG]
    assert [event for event in told if event["params"].get("entry", {}).get("level") != "verbose"] == []


def test_the_translation_comes_while_one_types_and_not_for_each_key(page: Browser, stand: StandIn) -> None:
    for letter in "A dog runs.":
        page.type(letter)
    wait_for_text(page, "A DOG RUNS.")
    assert len(stand.asked) <= 3
    assert stand.asked[-1] == {"source": "en", "target": "de", "format": "text", "q": "A dog runs.", "segments": True}
    write(page, " ")
    page.wait_for(f"{SHOWN} === ''")


def test_a_newer_text_cancels_the_older(page: Browser, stand: StandIn) -> None:
    stand.seconds = 1.5
    write(page, "One.")
    page.wait_for(f"{STATUS} === 'Translating…' && !document.getElementById('cancel').hidden")
    write(page, "Two.")
    stand.seconds = 0
    wait_for_text(page, "TWO.")
    page.value("new Promise(done => setTimeout(done, 2000))")
    assert page.value(SHOWN) == "TWO."


def test_a_busy_server_is_asked_again(page: Browser, stand: StandIn) -> None:
    stand.refusals.append((503, "more sentences wait than this server takes: ask again in 1 s"))
    write(page, "A dog.")
    page.wait_for(f"{STATUS} === 'More sentences wait than this server takes: ask again in 1 s. Trying again in 1 s.'")
    wait_for_text(page, "A DOG.")


def test_a_lost_connection_is_said_and_when_it_is_back_the_translation_comes(page: Browser, stand: StandIn) -> None:
    conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.ask("Network.emulateNetworkConditions", offline=True, **conditions)
    write(page, "A dog.")
    page.wait_for(f"{STATUS}.startsWith('The server does not answer')")
    page.ask("Network.emulateNetworkConditions", offline=False, **conditions)
    wait_for_text(page, "A DOG.")


def test_a_refusal_is_a_sentence_and_can_be_tried_again(page: Browser, stand: StandIn) -> None:
    stand.refusals.append((400, "<img src=x onerror=window.caught=1>: no"))
    write(page, "A dog.")
    page.wait_for(f"{STATUS} === '<img src=x onerror=window.caught=1>: no.'")
    page.click("#retry")
    wait_for_text(page, "A DOG.")
    assert page.value("window.caught === undefined")


def test_five_thousand_words_come_part_by_part_and_all_of_them(page: Browser, stand: StandIn) -> None:
    stand.seconds = 0.02
    text = "\n".join(" ".join(f"word{line}x{place}" for place in range(50)) + "." for line in range(100))
    stand.char_limit = 100_000
    visit(page, stand)
    write(page, text)
    page.wait_for("!document.getElementById('progress').hidden && document.querySelectorAll('.word').length > 50")
    wait_for_text(page, text.upper())
    assert max(len(body["q"]) for body in stand.asked) <= 1000
    asked = len(stand.asked)
    page.value("document.getElementById('source').setSelectionRange(1e6, 1e6)")
    page.type(" And more.")
    wait_for_text(page, text.upper() + " AND MORE.")
    assert len(stand.asked) == asked + 1  # what did not change was not sent again


def test_what_takes_long_can_be_cancelled(page: Browser, stand: StandIn) -> None:
    stand.seconds = 0.3
    write(page, "\n".join(f"word{line} " * 120 for line in range(20)))
    page.wait_for("document.querySelectorAll('.word').length > 100 && !document.getElementById('cancel').hidden")
    page.click("#cancel")
    assert page.value(STATUS) == "Cancelled: what was translated so far is shown."
    asked = len(stand.asked)
    page.value("new Promise(done => setTimeout(done, 1000))")
    assert len(stand.asked) == asked


def test_a_line_without_end_is_cut_where_it_may_be(page: Browser, stand: StandIn) -> None:
    text = "x" * 2500 + " \U0001f600" * 900
    write(page, text)
    wait_for_text(page, text.upper())
    assert max(len(body["q"].encode("utf-16-le")) // 2 for body in stand.asked) <= 1000


def test_a_paste_that_is_too_long_is_a_sentence(page: Browser, stand: StandIn) -> None:
    stand.char_limit = 100
    visit(page, stand)
    write(page, "x" * 101)
    page.wait_for(f"{STATUS} === 'The text has 101 characters, and this server takes 100: translate it in parts.'")
    assert stand.asked == []
    write(page, "A dog.")
    wait_for_text(page, "A DOG.")


def test_a_key_is_asked_for_and_sent(page: Browser, stand: StandIn) -> None:
    assert page.value("document.getElementById('key-field').hidden")
    stand.key = "open sesame"
    visit(page, stand)
    write(page, "A dog.")
    page.wait_for(f"{STATUS} === 'This server needs a key.'")
    page.value("document.getElementById('key').focus()")
    page.type("open sesame")
    page.press(*ENTER)
    page.press("Tab", 9)
    wait_for_text(page, "A DOG.")
    assert "sesame" not in page.value("JSON.stringify(localStorage)")


def test_what_is_translated_is_spoken(page: Browser, stand: StandIn) -> None:
    write(page, "A dog.")
    page.wait_for("document.getElementById('said').textContent === 'A DOG.'")
    write(page, "A dog. " * 50)
    page.wait_for("document.getElementById('said').textContent === 'The translation is there.'")


def test_parts_of_any_text_are_short_and_joined_the_text(page: Browser, stand: StandIn) -> None:
    trial = r"""import('/static/chunks.js').then(({ splitChunks, MAX_CHUNK_CHARS }) => {
        const signs = ['word ', 'x'.repeat(300), '. ', '\n', '\u{1f600}', '\u0301', '\r', ' ', '犬。', '\ud800'];
        let seed = 1;
        const draw = (most) => (seed = (seed * 48271) % 2147483647) % most;
        for (let number = 0; number < 300; number++) {
            const text = Array.from({ length: draw(400) }, () => signs[draw(signs.length)]).join('');
            const parts = splitChunks(text, 'en');
            if (parts.join('') !== text) return `lost: ${text}`;
            if (parts.some((part) => !part || part.length > MAX_CHUNK_CHARS)) return `long: ${text}`;
        }
        return 'all';
    })"""
    assert page.value(trial) == "all"


def test_hostile_html_is_text(page: Browser, stand: StandIn) -> None:
    text = '</div><img src=x onerror="window.caught=1"><script>window.caught=1</script>&lt;b&gt; {{7*7}} ${1}'
    write(page, text)
    wait_for_text(page, text.upper())
    page.wait_for("document.querySelectorAll('#history li').length === 1")
    assert page.value("[window.caught, document.images.length, document.scripts.length].join()") == ",0,1"
    assert page.texts("#history .again span")[0] == text


def test_a_word_shows_what_it_attends_to(page: Browser, stand: StandIn) -> None:
    write(page, "The old dog sleeps. A cat runs.\nSave")
    wait_for_text(page, "THE OLD DOG SLEEPS. A CAT RUNS.\nSAVE")
    page.click(".word", 5)
    page.wait_for("document.querySelectorAll('#attention-words li').length > 0")
    asked = {"source": "en", "target": "de", "text": "A cat runs.", "translation": "A CAT RUNS."}
    assert stand.asked[-1] == asked
    assert page.texts("#attention-title") == ["What “CAT” attends to"]
    assert page.texts("#attention-text") == ["A cat runs."]
    assert page.texts("#attention-words bdi")[0] == "cat"
    assert page.texts("#attention-words .number")[0] == "67 %"
    assert page.texts(".word.shown") == ["CAT"]
    page.click("#attention-close")
    assert page.value("document.getElementById('attention').hidden")


def test_unknown_pieces_are_shown_as_they_were_written(page: Browser, stand: StandIn) -> None:
    write(page, "Two x7 y8 dogs run")
    wait_for_text(page, "TWO X7 Y8 DOGS RUN")
    page.click(".word", 3)
    page.wait_for("document.querySelectorAll('#attention-words li').length > 0")
    assert page.texts("#attention-text") == ["Two x7 y8 dogs run"]
    assert page.texts("#attention-words bdi")[0] == "dogs"
    page.click(".word", 2)
    page.wait_for("document.getElementById('attention-title').textContent === 'What “Y8” attends to'")
    page.wait_for("document.querySelectorAll('#attention-words li').length > 0")
    assert {"x7", "y8"} >= {*page.texts("#attention-words bdi")[:1]}


def test_words_are_reached_by_keyboard(page: Browser, stand: StandIn) -> None:
    write(page, "The old dog")
    wait_for_text(page, "THE OLD DOG")
    page.value("document.getElementById('translation').focus()")
    for _ in range(2):
        page.press(*RIGHT)
    assert page.texts(".word.current") == ["OLD"]
    assert page.texts("#said") == ["OLD"]
    page.press(*ENTER)
    page.wait_for("document.querySelectorAll('#attention-words li').length > 0")
    assert page.texts("#said") == ["“OLD” attends most to “old”."]


def test_alternatives_are_asked_for_where_they_are_looked_at(page: Browser, stand: StandIn) -> None:
    write(page, "A dog")
    wait_for_text(page, "A DOG")
    assert "alternatives" not in stand.asked[-1]
    page.click("#alternatives-box summary")
    page.wait_for("document.querySelectorAll('#alternatives li').length === 3")
    assert page.texts("#alternatives li") == ["A DOG 0", "A DOG 1", "A DOG 2"]
    write(page, "A dog\nA cat")
    page.wait_for("document.getElementById('alternatives-note').textContent !== ''")
    assert page.texts("#alternatives li") == []


def test_a_glossary_is_sent_and_kept(page: Browser, stand: StandIn) -> None:
    page.click("#glossary-box summary")
    page.click("#glossary-add")
    page.type("dog")
    page.press("Tab", 9)
    page.type("Hund")
    write(page, "A dog")
    wait_for_text(page, "A Hund")
    assert stand.asked[-1]["glossary"] == {"dog": "Hund"}
    visit(page, stand)
    write(page, "The dog")
    wait_for_text(page, "THE Hund")
    assert page.texts("#glossary-count") == ["1 term"]
    page.value("document.getElementById('glossary-box').open = true")
    page.click("#glossary button")
    wait_for_text(page, "THE DOG")


def test_history_is_kept_here_alone_restored_and_deleted(page: Browser, stand: StandIn) -> None:
    write(page, "A dog")
    page.wait_for("document.querySelectorAll('#history li').length === 1")
    visit(page, stand)
    page.click("#history-box summary")
    assert page.texts("#history .again span") == ["A dog", "A DOG"]
    page.click("#history .again")
    wait_for_text(page, "A DOG")
    page.click("#history-clear")
    assert page.texts("#history li") == []
    page.click("#history-on")
    write(page, "A cat")
    wait_for_text(page, "A CAT")
    page.value("new Promise(done => setTimeout(done, 3000))")
    assert page.texts("#history li") == []
    assert "history" not in str(stand.asked)


def test_languages_are_chosen_and_swapped(page: Browser, stand: StandIn) -> None:
    write(page, "A dog")
    wait_for_text(page, "A DOG")
    page.click("#swap")
    page.wait_for("document.getElementById('source').value === 'A DOG'")
    page.value("new Promise(done => setTimeout(done, 500))")
    assert (stand.asked[-1]["source"], stand.asked[-1]["target"]) == ("de", "en")
    assert page.value("[...document.getElementById('target-language').options].map(o => o.text).join()") == "English"
    visit(page, stand)
    assert page.value("document.getElementById('source-language').value") == "de"


def test_where_no_language_is_known_none_is_chosen(page: Browser, stand: StandIn) -> None:
    stand.languages = [{"code": "und", "name": "unknown", "targets": ["und"]}]
    visit(page, stand)
    write(page, "A dog")
    wait_for_text(page, "A DOG")
    assert page.value("document.getElementById('pair').hidden")
    assert (stand.asked[-1]["source"], stand.asked[-1]["target"]) == ("und", "und")


def test_text_from_right_to_left_stands_so(page: Browser, stand: StandIn) -> None:
    write(page, "مرحبا بالعالم")
    wait_for_text(page, "مرحبا بالعالم")
    direction = "getComputedStyle(document.getElementById('{}')).direction"
    assert page.value(f"[{direction.format('source')}, {direction.format('translation')}].join()") == "rtl,rtl"


def test_files_are_opened_and_saved(page: Browser, stand: StandIn, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    document = page.ask("DOM.getDocument")["root"]["nodeId"]
    node = page.ask("DOM.querySelector", nodeId=document, selector="#file")["nodeId"]
    for content, sentence in (
        (bytes([233]), "letter.txt is no text in UTF-8: save it as UTF-8, and open it again."),
        (b"a\0b", "letter.txt is no text: open a .txt file."),
        (b"x" * 200_001, "letter.txt has 200,001 bytes, and this server takes 50,000 characters: split it."),
    ):
        file.write_bytes(content)
        page.ask("DOM.setFileInputFiles", files=[str(file)], nodeId=node)
        page.wait_for(f"document.getElementById('notice').textContent === {sentence!r}")
    file.write_bytes("\ufeffDear café,\r\nhello".encode())
    page.ask("DOM.setFileInputFiles", files=[str(file)], nodeId=node)
    wait_for_text(page, "DEAR CAFÉ,\nHELLO")
    assert page.value("document.getElementById('notice').hidden")
    page.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("#save")
    page.value("new Promise(done => setTimeout(done, 1000))")
    assert (tmp_path / "letter.de.txt").read_text("utf-8") == "DEAR CAFÉ,\nHELLO"


def test_a_translation_is_copied(page: Browser, stand: StandIn) -> None:
    write(page, "A dog")
    wait_for_text(page, "A DOG")
    page.click("#copy")
    page.wait_for("document.getElementById('copy').textContent === 'Copied'")
    write(page, "")
    page.value("document.getElementById('source').focus()")
    page.ask("Input.dispatchKeyEvent", type="keyDown", key="v", code="KeyV", commands=["paste"])
    wait_for_text(page, "A DOG")


def test_colours_are_kept(page: Browser, stand: StandIn) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    page.value("theme.value = 'light', theme.dispatchEvent(new Event('change'))")
    light = page.value(colour)
    page.value("theme.value = 'dark', theme.dispatchEvent(new Event('change'))")
    assert page.value(colour) != light
    visit(page, stand)
    assert page.value(colour) != light


def test_the_other_tasks_have_forms(page: Browser, stand: StandIn, tmp_path: Path) -> None:
    stand.models = [TRANSLATOR, *OTHERS]
    visit(page, stand)
    assert page.texts("[role=tab]") == ["Translate", "Write", "Label", "Images"]
    page.click("[role=tab]", 1)
    page.value("document.querySelector('#write textarea').focus()")
    page.type("Once")
    page.click("#write button")
    page.wait_for("document.querySelector('.written').textContent === 'Once and so <b>it</b> goes on'")
    page.press("Tab", 9)
    page.click("[role=tab]", 2)
    page.value("document.querySelector('#label textarea').focus()")
    page.type("A film\nA dog")
    page.click("#label button")
    page.wait_for("document.querySelectorAll('#label h2').length === 2")
    assert page.texts("#label bdi")[:2] == ["positive", "<i>negative</i>"]
    page.value("document.querySelector('#label select').value = 'atis'")
    page.click("#label button")
    page.wait_for("document.querySelectorAll('.tagged').length === 2")
    assert page.texts(".tagged .tag") == ["O", "–", "O", "–"]
    page.click("[role=tab]", 3)
    page.click("#describe button")
    page.wait_for("document.querySelector('#describe .notice').textContent === 'Choose an image first.'")
    picture = tmp_path / "dog.svg"
    picture.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    document = page.ask("DOM.getDocument")["root"]["nodeId"]
    node = page.ask("DOM.querySelector", nodeId=document, selector="#describe input")["nodeId"]
    page.ask("DOM.setFileInputFiles", files=[str(picture)], nodeId=node)
    page.click("#describe button")
    page.wait_for("document.querySelectorAll('#describe li').length === 1")
    assert page.texts("#describe li") == ["a dog <runs>"]


def test_writing_can_be_stopped(page: Browser, stand: StandIn) -> None:
    stand.models, stand.seconds = OTHERS, 0.5
    visit(page, stand)
    page.click("#write button")
    page.wait_for("document.querySelector('.written').textContent.includes('so')")
    page.click("#write button", 1)
    page.value("new Promise(done => setTimeout(done, 1500))")
    assert "on" not in page.texts(".written")[0]


@pytest.mark.parametrize("width", [360, 760, 1280])
def test_nothing_is_wider_than_the_screen(page: Browser, stand: StandIn, width: int) -> None:
    stand.models = [TRANSLATOR, *OTHERS]
    page.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    visit(page, stand)
    write(page, "Donaudampfschifffahrtsgesellschaftskapitän" * 5 + "\nA dog")
    page.wait_for(f"{DONE} && document.querySelectorAll('.word').length > 1")
    page.value("for (const box of document.querySelectorAll('details')) box.open = true")
    page.value("document.getElementById('glossary-add').click()")
    for tab in range(4):
        page.click("[role=tab]", tab)
        assert page.value("document.documentElement.scrollWidth <= innerWidth")


def find_axe() -> Path | None:
    """The script of axe-core: $AXE_CORE, or of a Python package that brings it."""
    if os.environ.get("AXE_CORE"):
        return Path(os.environ["AXE_CORE"])
    for name in ("axe_playwright_python", "axe_core_python"):
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            return next(Path(found.origin).parent.rglob("axe.min.js"), None)
    return None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page: Browser, stand: StandIn, theme: str) -> None:
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not installed (set AXE_CORE to its axe.min.js)")
    stand.models = [TRANSLATOR, *OTHERS]
    visit(page, stand)
    page.value(f"theme.value = '{theme}', theme.dispatchEvent(new Event('change'))")
    write(page, "The old dog sleeps.")
    wait_for_text(page, "THE OLD DOG SLEEPS.")
    page.click(".word", 1)
    page.wait_for("document.querySelectorAll('#attention-words li').length > 0")
    page.wait_for("document.querySelectorAll('#history li').length === 1")
    page.value("for (const box of document.querySelectorAll('details')) box.open = true")
    page.value("document.getElementById('glossary-add').click()")
    page.value(axe.read_text("utf-8") + "; 0")
    for tab, name in enumerate(("translate", "write", "label", "describe")):
        page.click("[role=tab]", tab)
        if name in ("write", "label"):
            page.click(f"#{name} button")
        places = "each => [each.id, each.nodes[0].html].join(': ')"
        assert page.value(f"axe.run().then(found => found.violations.map({places}))") == [], name
