"""A command as a separate process: its output, its duration, its peak memory.

A new process inherits the peak of its parent: Linux counts the memory that was there before the program was loaded. So
nothing here imports torch, and everything that is measured runs in processes.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TFM = (sys.executable, "-m", "tfm.cli.app")
MIB = 2**20
MISSING_PACKAGE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'\s*\Z", re.MULTILINE)
"""The end of a traceback of a program that imports a package that is not there."""
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


class ProcessError(Exception):
    """A process ended with an error."""


@dataclass(frozen=True)
class FinishedProcess:
    """The end of a process: its output, its seconds from start to end, its peak memory in bytes.

    If it started others, the peak is that of the largest one.
    """

    out: str
    err: str
    seconds: float
    peak: int

    def answer(self) -> dict[str, Any]:
        """The JSON object in its last line."""
        content = json.loads(self.out.splitlines()[-1])
        if not isinstance(content, dict):
            raise ProcessError(f"printed {content!r:.60} instead of an object")
        return content


class AnonymousMemory(threading.Thread):
    """The largest anonymous resident memory of a process, looked at fifty times a second: no mapped file counts.

    It is 0 if there is no /proc.
    """

    def __init__(self, process: int | str = "self") -> None:
        super().__init__(daemon=True)
        self.status, self.peak = Path(f"/proc/{process}/status"), 0

    def run(self) -> None:
        while (now := self._resident()) is not None:
            self.peak = max(self.peak, now)
            time.sleep(0.02)

    def _resident(self) -> int | None:
        """Bytes; none of a process that has ended, whose line is missing before its file is."""
        try:
            _, _, value = self.status.read_text(encoding="ascii").partition("RssAnon:")
        except OSError:
            return None
        return int(value.split()[0]) * 1024 if value else None


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    text: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
    on_start: Callable[[int], None] = lambda process: None,
) -> FinishedProcess:
    """Run a command to its end, `text` as its stdin, with our packages on its path; `on_start` gets its process id.

    Its environment is ours with some other variables.

    Raises ProcessError if it cannot be started, or ends with an error: with the last lines of its output, or with the
    package that its Python lacks.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **variables}
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(text.encode())
        stdin.seek(0)
        start = time.perf_counter()
        try:
            child = subprocess.Popen(command, stdin=stdin, stdout=out, stderr=err, cwd=folder, env=environment)
        except OSError as error:
            raise ProcessError(f"{command[0]}: cannot be started: {error.strerror}") from None
        on_start(child.pid)
        try:
            _, status, usage = os.wait4(child.pid, 0)  # the peak of this child, not of all so far
        except BaseException:
            child.kill()
            child.wait()
            raise
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        result = FinishedProcess(out.read().decode(), err.read().decode(), seconds, usage.ru_maxrss * _PEAK_UNIT)
    if child.returncode:
        if missing := MISSING_PACKAGE.search(result.err):
            raise ProcessError(f"{command[0]} has no package {missing[1]}: install it there")
        last = "\n  ".join((result.out + result.err).splitlines()[-12:])
        command_text = " ".join(f"{word!s:.80}" for word in command)
        raise ProcessError(f"exit code {child.returncode} of {command_text}\n  {last}")
    return result


def run_module(module: str, options: Mapping[str, object]) -> FinishedProcess:
    """Run a module of ours, which reads its options as a JSON object from stdin."""
    return run([sys.executable, "-m", module], text=json.dumps(options))


def run_tfm(
    *words: str | Path, folder: Path | None = None, text: str = "", variables: Mapping[str, str] = MappingProxyType({})
) -> FinishedProcess:
    """Run a `tfm` command."""
    return run([*TFM, *words], folder=folder, text=text, variables=variables)
