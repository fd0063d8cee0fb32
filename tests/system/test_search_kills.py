"""A search whose workers are killed: nothing is lost but updates since a checkpoint, and no trial is run twice."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import RECIPE, ROOT, write_corpora

pytestmark = [pytest.mark.slow, pytest.mark.promise("search")]
KILLS = 20
FILE = """
[search]
base = "tiny.toml"
method = "tpe"
pruning = "median"
trials = {trials}
keep = 2

[search.space]
"training.schedule.peak" = {{ low = 0.001, high = 0.1, log = true }}
"model.norm" = {{ choices = ["pre", "post"] }}
"model.encoder.heads" = {{ values = [1, 2, 3] }}
"""
SETS = (
    *("--set", "training.validation.every_steps=10", "--set", "training.max_steps=60"),
    *("--set", "training.validation.bleu=false", "--set", "training.save_every=5"),
)


def prepare(folder: Path, trials: int) -> None:
    write_corpora(folder)
    (folder / "tiny.toml").write_text(RECIPE.format(folder=folder), encoding="utf-8")
    (folder / "s.toml").write_text(FILE.format(trials=trials), encoding="utf-8")


DIES = """
import os, signal, sys, threading
from tfm.cli.app import main
from tfm.pipeline.tuning.journal import JournalFile

_, lines, seconds, *words = sys.argv
sys.argv = ["tfm", *words]
append, written = JournalFile.append_logs, []

def append_and_count(self, logs):
    append(self, logs)
    written.extend(logs)
    if len(written) >= int(lines):
        threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()

JournalFile.append_logs = append_and_count
main()
"""
"""The command, killed so many seconds after it has written so many lines: an onlooker may be too late to see them."""


def start(
    folder: Path, *words: str, stdout: int = subprocess.DEVNULL, dies: Sequence[float] = ()
) -> "subprocess.Popen[bytes]":
    program = ["-c", DIES, *map(str, dies)] if dies else ["-m", "tfm.cli.app"]
    command = [sys.executable, *program, "search", "s.toml", *SETS, *words]
    environment = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.PIPE)


def finish(folder: Path, *words: str) -> list[dict[str, Any]]:
    process = start(folder, *words)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode()
    found: list[dict[str, Any]] = json.loads((folder / "runs/s/search/trials.json").read_text("utf-8"))["trials"]
    return found


def num_written(folder: Path) -> int:
    """Lines of the journal, each of which is something that happened."""
    journal = folder / "runs/s/trials.journal"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def said(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("configuration", "ended", "value", "validations", "updates")
    return [{key: each[key] for key in keys} for each in trials]


def test_killed_twenty_times_it_finds_what_it_would_have_found(tmp_path: Path, record_property: Any) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        prepare(folder, 8)
    expected = finish(one)
    written, draw = num_written(one), random.Random(5)
    for _ in range(KILLS):  # by what it has written down, so that a fast machine is not done before
        process = start(other, dies=(draw.randint(1, written // KILLS), draw.uniform(0, 0.1)))
        _, err = process.communicate(timeout=600)
        assert process.returncode == -signal.SIGKILL, err.decode()
    assert said(finish(other)) == said(expected)
    record_property("kills", KILLS)


def test_two_workers_share_the_trials_and_one_may_die(tmp_path: Path) -> None:
    prepare(tmp_path, 8)
    workers = [start(tmp_path), start(tmp_path)]
    time.sleep(8)
    workers[0].kill()
    for each in workers:
        _, err = each.communicate(timeout=600)
    assert workers[1].returncode == 0, err.decode()
    found = finish(tmp_path)
    assert [each["number"] for each in found] == list(range(8))
    assert all(each["ended"] in ("finished", "pruned", "impossible") for each in found)
    logs = [(tmp_path / "runs/s/trials" / f"{each['number']:04}" / "log.txt").read_text("utf-8") for each in found]
    for each, log in zip(found, logs, strict=True):
        assert log.count("training: continues after") <= 1
        assert log.count("published as") == (each["ended"] == "finished" and not each["reason"])


def test_workers_of_one_command(tmp_path: Path) -> None:
    prepare(tmp_path, 4)
    process = start(tmp_path, "--workers", "2", "--json", stdout=subprocess.PIPE)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode()
    assert len(json.loads(out)["trials"]) == 4  # one document: the workers print none
