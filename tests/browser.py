"""A browser without a window, driven as a person does: whichever Chromium is installed, through its debugging pipe.

The protocol is JSON, each message ended by a zero byte (chromedevtools.github.io/devtools-protocol).
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
ELSEWHERE = (
    (Path("/Applications"), "*/Contents/MacOS/Google Chrome"),
    (Path("/Applications"), "*/Contents/MacOS/Chromium"),
    (Path.home() / ".cache" / "ms-playwright", "chromium-*/chrome-linux*/chrome"),
    (Path.home() / "Library" / "Caches" / "ms-playwright", "chromium-*/*/*/Contents/MacOS/Chromium"),
)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
PATIENCE = 60.0
# The browser reads commands from descriptor 3 and answers on 4; those of our pipes have other numbers.
START = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 20) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The first Chromium that is installed here."""
    found = [path for name in NAMES if (path := shutil.which(name))]
    found += [str(path) for folder, pattern in ELSEWHERE if folder.is_dir() for path in sorted(folder.glob(pattern))]
    return found[0] if found else None


class Browser:
    """One open tab. `events` holds what the browser has told unasked."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._unread = b""
        self._number = 0
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=1100, height=900, deviceScaleFactor=1, mobile=False)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, page: Path | str) -> None:
        """Show a file or an address, and wait until it is loaded; earlier events are forgotten."""
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    @contextmanager
    def in_frame(self) -> Iterator[None]:
        """Within, the commands are for the sandboxed frame of the page that was opened last, which is there by then."""
        own, told = self._session, "Target.attachedToTarget"
        self.ask("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)
        while not any(event["method"] == told for event in self.events):
            self.events.append(self._read())
        (frame,) = (event["params"]["sessionId"] for event in self.events if event["method"] == told)
        self._session = {"sessionId": frame}
        try:
            yield
        finally:
            self._session = own

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """The text of each element that a CSS selector finds."""
        found: list[str] = self.value(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")
        return found

    def hover(self, selector: str, number: int = 0, down: float = 0.5) -> tuple[float, float]:
        """Move the mouse onto one of the elements, so far down of its height; where that is."""
        element = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        self.value(f"{element}.scrollIntoView({{block: 'center'}})")
        x, y = self.value(
            f"(box => [box.left + box.width / 2, box.top + box.height * {down}])({element}.getBoundingClientRect())"
        )
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector: str, number: int = 0) -> None:
        """Click on one of the elements."""
        x, y = self.hover(selector, number)
        for event in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Type, or paste, a text where the cursor is."""
        self.ask("Input.insertText", text=text)

    def wait_for(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, f"still not so: {expression}"
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """Press a key, of this Windows key code."""
        for event in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=event, key=key, code=key, windowsVirtualKeyCode=code)

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            block = os.read(self._answers, 1 << 16)
            assert block, "the browser has gone"
            self._unread += block
        message, _, self._unread = self._unread.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


@contextmanager
def browsing(executable: str, folder: Path) -> Iterator[Browser]:
    """An open browser, whose own files lie in a folder."""
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()
    words = [executable, *FLAGS, f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", START, str(commands_out), str(answers_in), *words],
            pass_fds=(commands_out, answers_in),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(commands_out)
    os.close(answers_in)
    try:
        yield Browser(commands_in, answers_out)
    finally:
        os.close(commands_in)  # at the end of its commands it leaves
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(answers_out)
