"""The site of the documentation: it is built without a warning, and its pages are read in a browser at three widths."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.browser import Browser
from tests.system.test_serve_page import find_axe
from tests.test_docs import ROOT

pytestmark = pytest.mark.slow
WIDTHS = (360, 768, 1280)
PAGES = (
    *("index", "start", "questions", "data/index", "lectures/exercises", "tokenizers/kinds", "results/corpora"),
    *("reference/index", "reference/recipe/model", "reference/commands/translate", "reference/python"),
)
TROUBLE = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Network.loadingFailed")
ELSEWHERE = (
    "performance.getEntriesByType('resource').map(each => each.name).filter(name => !name.startsWith(location.origin))"
)
# The theme lets the keyboard reach what scrolls if a pointer can hover, as in a browser with a window.
AXE_OPTIONS = "{rules: {'scrollable-region-focusable': {enabled: false}}}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, in a folder of its own."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("the extra docs is not installed: pip install 'tfm-toolkit[docs]'")
    built = tmp_path_factory.mktemp("site")
    words = ["build", "--strict", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(built)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return built


class QuietHandler(SimpleHTTPRequestHandler):
    """A handler of requests that writes no log."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address at which the site is served: its search needs a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def open_at(browser: Browser, address: str, page: str, width: int = 1280, scheme: str = "default") -> None:
    """Show a page at a width in a scheme of colours, and wait for its scripts."""
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.open(f"{address}/{page}.html")
    browser.wait_for("typeof component$ !== 'undefined' && document.body.dataset.mdColorScheme")
    browser.value(f"document.querySelector('.md-option[data-md-color-scheme={scheme}]').click()")
    browser.wait_for(f"document.body.dataset.mdColorScheme === '{scheme}'")
    browser.value("new Promise(done => setTimeout(done, 500))")  # colours change slowly


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways_or_complains(browser: Browser, address: str, width: int) -> None:
    for page in PAGES:
        open_at(browser, address, page, width)
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), f"{page} at {width}"
        assert [event for event in browser.events if event["method"] in TROUBLE] == [], page
        assert browser.value(ELSEWHERE) == [], f"{page} fetches from elsewhere"


def test_search_finds_a_key_of_a_recipe(browser: Browser, address: str) -> None:
    open_at(browser, address, "index")
    browser.click(".md-search__input")
    browser.type("label_smoothing")
    browser.wait_for("document.querySelectorAll('.md-search-result__link').length > 0")
    links = browser.value("[...document.querySelectorAll('.md-search-result__link')].map(each => each.href)")
    assert any("reference/recipe/training.html" in link and "label_smoothing" in link for link in links), links


def test_every_page_of_docs_is_there(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    names = [page.with_name("index.html") if page.stem == "README" else page for page in pages]
    assert [str(name) for name in names if not (site / name).is_file()] == []


@pytest.mark.parametrize("scheme", ["default", "slate"])
def test_axe_finds_nothing_serious(browser: Browser, address: str, scheme: str) -> None:
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not installed (set AXE_CORE to its axe.min.js)")
    for page in PAGES:
        open_at(browser, address, page, scheme=scheme)
        browser.value(axe.read_text("utf-8") + "; 0")
        found = browser.value(
            f"axe.run({AXE_OPTIONS}).then(done => done.violations"
            ".filter(each => ['serious', 'critical'].includes(each.impact))"
            ".map(each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))"
        )
        assert found == [], f"{page}: {found}"
