"""What the tests of whole commands and pages share."""

from collections.abc import Iterator

import pytest

from tests.browser import Browser, browsing, find_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with one tab; its tests are skipped where no Chromium is installed."""
    executable = find_browser()
    if executable is None:
        pytest.skip("there is no Chromium here to show the page in")
    with browsing(executable, tmp_path_factory.mktemp("browser")) as opened:
        yield opened
