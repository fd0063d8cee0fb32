"""Pipes: whoever reads only the beginning of our output, and whoever stops writing early."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import ROOT, Stages, start, tfm, write_lines

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


@pytest.mark.slow
def test_translations_are_read_to_the_first_line(stages: Stages, tmp_path: Path, record_property: Any) -> None:
    # more than a pipe holds, so that the command is still writing
    source = write_lines(tmp_path / "long.de", ["eins zwei drei"] * 12_000)
    first, said, code = head(("translate", stages.folder, source, "--set", "decoding.max_length=1"), tmp_path)
    assert first.strip()
    assert said.strip() == ""
    assert code == 74
    record_property("pipes", 1)


@pytest.mark.few(1)
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


@pytest.mark.slow
def test_who_writes_to_us_may_stop_in_the_middle_of_a_line(stages: Stages, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tfm.cli.app", "translate", str(stages.folder), "-"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    cut = subprocess.run(
        command, input=b"eins zwei\ndrei", cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert cut.stdout.decode() == tfm("translate", stages.folder, "-", stdin="eins zwei\ndrei\n").out
    assert cut.stdout.count(b"\n") == 2
    broken = subprocess.run(command, input="eins\nfün".encode()[:-1] + b"\xc3", cwd=tmp_path, env=environment,
                            capture_output=True, check=False)  # fmt: skip
    assert broken.returncode == 65
    assert b"stdin, line 2, byte" in broken.stderr
    assert b"Traceback" not in broken.stderr


@pytest.mark.slow
def test_a_pipe_is_answered_line_by_line_and_a_long_one_as_a_file(stages: Stages, tmp_path: Path) -> None:
    """Another program writes a line and reads the answer before it writes the next."""
    words = ("translate", stages.folder, "--beam", "1")
    process = start(*words, folder=tmp_path, stdin=subprocess.PIPE, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    texts, answers = ["eins zwei", "drei", "", "vier fünf sechs"], []
    for text in texts:
        process.stdin.write(text + "\n")
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 60)[0], f"no answer to {text!r}"
        answers.append(process.stdout.readline())
    process.stdin.write("eins\nzwei\ndrei")  # several at once, the last without its end
    rest, said = process.communicate(timeout=60)
    assert said == ""
    lines = [*texts, "eins", "zwei", "drei"]
    alone = [tfm(*words, write_lines(tmp_path / "line", [line])).out for line in lines]
    assert [*answers, *rest.splitlines(keepends=True)] == alone
    many = write_lines(tmp_path / "many", lines * 300)
    of_file = tfm(*words, many).out
    of_pipe = start(*words, folder=tmp_path, stdin=subprocess.PIPE).communicate(many.read_text(), timeout=60)
    assert of_file == of_pipe[0] == "".join(alone) * 300


def test_a_terminal_is_told_what_is_expected_and_answered_at_once(stages: Stages, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = start("translate", stages.folder, "--beam", "1", folder=tmp_path, stdin=theirs, bufsize=1)
    os.close(theirs)
    assert process.stderr is not None
    assert process.stdout is not None
    assert process.stderr.readline() == "one text per line; Ctrl-D ends\n"
    for text in ("eins zwei", "drei"):
        os.write(ours, f"{text}\n".encode())
        assert select.select([process.stdout], [], [], 60)[0], f"no answer to {text!r}"
        assert process.stdout.readline().endswith("\n")
    os.write(ours, b"\x04")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    os.close(ours)


@pytest.mark.few(1)
@pytest.mark.parametrize("full", [False, True])
def test_talk_that_nobody_reads_stops_and_the_work_goes_on(
    corpora: Path, tmp_path: Path, full: bool, record_property: Any
) -> None:
    """`tfm tokenize ... 2>&1 | head`, and a log on a disk that is full."""
    texts = [corpora / name for name in ("train.de", "train.en")]
    words = ("tokenize", *texts, "--kind", "word", "--vocab-size", "40", "--out", tmp_path / "tokenizer")
    if full and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    if full:
        writer = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe()
        os.close(reader)
    process = start(*words, folder=tmp_path, stdout=writer, stderr=writer)
    os.close(writer)
    assert process.wait(60) == 0
    assert tfm("inspect", tmp_path / "tokenizer").code == 0
    record_property("pipes", 1)
