"""The page in front of a server with a model: each understands the other, and the policy lets the page in."""

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.browser import Browser, browsing, find_browser
from tests.cli.user import Stages
from tests.serving import Server, running_server

pytestmark = pytest.mark.slow
TEXT = 'eins zwei <b onclick="x()">drei</b>\nvier'
WRONG = ("Runtime.exceptionThrown", "Log.entryAdded")


@pytest.fixture(scope="module")
def server(stages: Stages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    languages = f"{stages.folder.name}=de:en"
    with running_server(stages.folder, "--languages", languages, "--max-chars", "200", folder=folder) as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    executable = find_browser()
    if executable is None:
        pytest.skip("there is no Chromium here to show the page in")
    with browsing(executable, tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, server: Server) -> Browser:
    browser.open(server.url)
    browser.wait_for("!document.getElementById('translate').hidden")
    browser.value("document.getElementById('source').focus()")
    return browser


def test_a_text_is_translated_as_a_program_gets_it(page: Browser, server: Server) -> None:
    status, answer = server.ask("/translate", {"q": TEXT, "source": "de", "target": "en"})
    assert status == 200
    page.type(TEXT)
    shown = f"document.getElementById('translation').textContent === {answer['translatedText']!r}"
    page.wait_for(f"document.getElementById('translation').ariaBusy === 'false' && {shown}")
    assert page.value("document.getElementById('pair').hidden") is False
    told = [event["params"] for event in page.events if event["method"] in WRONG]
    assert [each for each in told if each.get("entry", {}).get("level") != "verbose"] == []


def test_a_word_shows_what_it_attends_to(page: Browser, server: Server) -> None:
    page.type("eins zwei drei")
    page.wait_for("document.querySelectorAll('.word').length > 0")
    page.click(".word")
    page.wait_for("document.querySelectorAll('#attention-words li').length > 0")
    assert page.texts("#attention-text")[0].split() == ["eins", "zwei", "drei"]
    percents = [float(each.removesuffix(" %")) for each in page.texts("#attention-words .number")]
    assert percents == sorted(percents, reverse=True)
    assert 0 < sum(percents) <= 101


def test_alternatives_and_the_glossary_are_understood(page: Browser, server: Server) -> None:
    page.value("document.getElementById('alternatives-box').open = true")
    page.value("document.getElementById('glossary-box').open = true")
    page.click("#glossary-add")
    page.type("zwei")
    page.press("Tab", 9)
    page.type("six")
    page.value("document.getElementById('source').focus()")
    page.type("eins zwei")
    page.wait_for("document.getElementById('translation').textContent.includes('six')")
    page.wait_for("document.querySelectorAll('#alternatives li').length > 0")
    page.value("localStorage.clear()")


def test_the_server_s_limit_is_said_before_anything_is_sent(page: Browser, server: Server) -> None:
    page.type("hund " * 50)
    status = "document.getElementById('status').textContent"
    page.wait_for(f"{status} === 'The text has 250 characters, and this server takes 200: translate it in parts.'")


def test_the_page_of_the_routes_has_its_style(browser: Browser, server: Server) -> None:
    browser.open(f"{server.url}/docs")
    assert browser.texts("h1") == ["Routes of this server"]
    assert browser.value("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
