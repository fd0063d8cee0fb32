"""Which signals ask for a stop, and which of them ends a process at once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SHOW = """
import os, signal, sys, time
from tfm.pipeline.runtime.stop_signal import catch_stop_signals
with catch_stop_signals(acknowledges=False) as stop:
    for name in sys.argv[1:]:
        os.kill(os.getpid(), signal.Signals[name])
        time.sleep(0.1)
    print(stop.signal)
"""


def after(*names: str, ignored: tuple[signal.Signals, ...] = ()) -> tuple[int, str]:
    """How a process ends that gets these signals while it listens: its exit code, and the signal that it heeds."""

    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    command = [sys.executable, "-c", SHOW, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, preexec_fn=ignore)
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["SIGHUP"], (0, "SIGHUP")),
        (["SIGHUP", "SIGHUP"], (0, "SIGHUP")),
        (["SIGTERM", "SIGHUP"], (0, "SIGTERM")),
        (["SIGHUP", "SIGTERM"], (128 + signal.SIGTERM, "")),
        (["SIGINT", "SIGTERM"], (128 + signal.SIGTERM, "")),
    ],
)
@pytest.mark.few(2)
def test_a_closed_terminal_is_a_wish_and_never_an_order(names: list[str], wanted: tuple[int, str]) -> None:
    assert after(*names) == wanted


def test_what_a_process_was_started_to_ignore_stays_ignored() -> None:
    both = (signal.SIGHUP, signal.SIGINT)
    assert after("SIGHUP", "SIGINT", "SIGHUP", "SIGINT", ignored=both) == (0, "None")
    assert after("SIGHUP", "SIGINT", "SIGTERM", ignored=both) == (0, "SIGTERM")


def test_a_terminal_that_is_gone_keeps_nobody_from_stopping() -> None:
    """What would be said there is an error then."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", SHOW.replace("acknowledges=False", "")]
    process = subprocess.Popen([*command, "SIGHUP", "SIGHUP"], cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    os.close(ours)
    assert process.communicate(timeout=60)[0] == b"SIGHUP\n"
    assert process.returncode == 0
