"""A program that has loaded all of `tfm` once and runs each command it is given as a process of its own, which may
be killed after a time or at a call, or limited in the size of its files; and a client for it.

A request and an answer are JSON, a line each.
"""

import ctypes
import importlib
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOADED = (
    "tfm.cli.app", "tfm.cli.console", "tfm.cli.commands.tokenize", "tfm.cli.commands.preprocess",
    "tfm.cli.commands.train", "tfm.cli.commands.translate", "tfm.cli.commands.evaluate", "tfm.cli.commands.recipes.run",
    "tfm.pipeline.stages.tokenize", "tfm.pipeline.stages.preprocess", "tfm.pipeline.stages.train",
    "tfm.pipeline.stages.translate", "tfm.pipeline.stages.evaluate",
    "tfm.pipeline.training.session", "tfm.pipeline.decoding.decode", "tfm.pipeline.scoring.perplexity",
    "sacrebleu", "matplotlib.figure", "matplotlib.backends.backend_svg",
)  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, or minus the signal; `calls`: to the file system, if they were counted."""

    code: int
    out: str
    err: str
    seconds: float
    calls: int


class Forked:
    """The program, started. `before`: a command that ends by running the one that comes after it."""

    def __init__(self, folder: Path, *, shim: Path | None = None, before: Sequence[str | Path] = ()) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment |= {} if shim is None else {"LD_PRELOAD": str(shim)}
        command = [*map(str, before), sys.executable, "-m", "tests.forked", *([] if shim is None else [str(shim)])]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, cwd=folder, env=environment, **pipes)

    def tfm(
        self,
        *words: str | Path,
        kill_after: float | None = None,
        at_call: int = 0,
        fails: bool = False,
        file_size: int | None = None,
    ) -> Ended:
        """Run a command: killed after a time, or at a call (`fails`: that call fails); with files of limited size."""
        limits = {"kill_after": kill_after, "at_call": at_call, "fails": fails, "file_size": file_size}
        return Ended(**self._ask({"words": [str(word) for word in words], **limits}))

    def shell(self, *words: str | Path) -> str:
        """What another program, run beside the commands, prints."""
        done = self._ask({"shell": [str(word) for word in words]})
        assert done["code"] == 0, done
        return str(done["out"])

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer


def serve(shim: str | None) -> None:
    """Answer requests until stdin ends."""
    for module in LOADED:
        importlib.import_module(module)
    counter = mmap.mmap(-1, 8)
    for line in sys.stdin:
        request = json.loads(line)
        if "shell" in request:
            done = subprocess.run(request["shell"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            answer = {"code": done.returncode, "out": done.stdout, "err": done.stderr}
        else:
            counter[:] = bytes(8)
            (out, child_out), (err, child_err) = os.pipe(), os.pipe()
            process = os.fork()
            if not process:
                become_command(request, counter, shim, child_out, child_err)
            os.close(child_out)
            os.close(child_err)
            answer = ended(process, request["kill_after"], out, err, counter)
        print(json.dumps(answer), flush=True)


def become_command(request: dict[str, Any], counter: mmap.mmap, shim: str | None, out: int, err: int) -> None:
    """In a child: be `tfm` with these words, never to return."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    if request["file_size"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["file_size"], resource.RLIM_INFINITY))
    sys.argv = ["tfm", *request["words"]]
    if shim is not None:
        place = ctypes.byref(ctypes.c_long.from_buffer(counter))
        ctypes.CDLL(shim).kill_at(place, ctypes.c_long(request["at_call"]), request["fails"])
    from tfm.cli.app import main

    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    sys.stdout.flush()
    os._exit(code)  # taking all that was loaded down again takes a second


def ended(process: int, kill_after: float | None, out: int, err: int, counter: mmap.mmap) -> dict[str, Any]:
    """Wait for a child, and kill it when its time is over. What it prints must fit into a pipe."""
    began = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    seconds = time.monotonic() - began
    texts = []
    for stream in (out, err):
        with open(stream, encoding="utf-8", errors="replace") as file:
            texts.append(file.read())
    calls = int.from_bytes(counter[:], sys.byteorder)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "out": texts[0], "err": texts[1], "seconds": seconds, "calls": calls}


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else None)
