"""Pipes: whoever reads only the beginning of our output, and whoever stops writing early."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import ROOT, Stages, start, write_lines

pytestmark = pytest.mark.promise("pipe")


def head(words: tuple[str | Path, ...], folder: Path) -> tuple[str, str, int]:
    """The command's first line as `| head -1` gives it, what it says on stderr, and its exit code."""
    process = start(*words, folder=folder)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    return first, said, process.wait(60)


def test_translations_are_read_to_the_first_line(stages: Stages, tmp_path: Path, record_property: Any) -> None:
    # more than a pipe holds, so that the command is still writing
    source = write_lines(tmp_path / "long.de", ["eins zwei drei"] * 20_000)
    first, said, code = head(("translate", stages.folder, source, "--set", "decoding.max_length=1"), tmp_path)
    assert first.strip()
    assert said.strip() == ""
    assert code == 74
    record_property("pipes", 1)


@pytest.mark.parametrize("command", ["inspect", "recipe --schema", "evaluate"])
def test_nobody_reads_at_all(command: str, stages: Stages, tmp_path: Path, record_property: Any) -> None:
    text = write_lines(tmp_path / "text", ["one two three four"] * 3)
    words: dict[str, tuple[str | Path, ...]] = {
        "inspect": ("inspect", stages.folder / "model", "--json"),
        "recipe --schema": ("recipe", "--schema"),
        "evaluate": ("evaluate", "--hypotheses", text, "--reference", text, "--metric", "bleu", "--json"),
    }
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*words[command], folder=tmp_path, stdout=writer)
    os.close(writer)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert "roken pipe" not in said
    assert process.returncode == 74
    record_property("pipes", 1)


def test_who_writes_to_us_may_stop_in_the_middle_of_a_line(stages: Stages, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli.app", "translate", str(stages.folder), "-"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    whole, cut = (
        subprocess.run(command, input=text, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout
        for text in (b"eins zwei\ndrei\n", b"eins zwei\ndrei")
    )
    assert cut == whole
    assert whole.count(b"\n") == 2
    broken = subprocess.run(command, input="eins\nfün".encode()[:-1] + b"\xc3", cwd=tmp_path, env=environment,
                            capture_output=True, check=False)  # fmt: skip
    assert broken.returncode == 65
    assert b"stdin, line 2, byte" in broken.stderr
    assert b"Traceback" not in broken.stderr
