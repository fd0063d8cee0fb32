"""Two commands that want to write the same folder: one does, and the other is told who."""

import os
from pathlib import Path

import pytest

from tests.cli.user import start, tfm, write_corpora
from tfm.pipeline.artifacts.folder_lock import lock_folder

pytestmark = pytest.mark.promise("writers")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with corpora, which is the working folder."""
    write_corpora(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_whose_place_another_process_writes_names_it_and_works_once_that_ends(base: Path) -> None:
    tokenize = ("tokenize", "train.de", "train.en", "--kind", "word", "--out", base / "tokenizer")
    preprocess = (
        "preprocess",
        "--train",
        "train.de",
        "train.en",
        "--tokenizer",
        base / "tokenizer",
        "--out",
        base / "d",
    )
    for words, out in ((tokenize, base / "tokenizer"), (preprocess, base / "d")):
        with lock_folder(out):
            result = tfm(*words)
            assert result.code == 73
            assert result.out == ""
            assert f"{out}: process {os.getpid()} is writing it" in result.err
            assert not out.exists()
        assert tfm(*words).code == 0


@pytest.mark.slow
def test_of_two_commands_at_once_one_is_done_and_the_other_says_who_was_first(base: Path) -> None:
    pairs = (base / "train.de", base / "train.en")
    for pair in pairs:
        pair.write_text(pair.read_text("utf-8") * 50, "utf-8")
    words = ("tokenize", *pairs, "--kind", "bpe", "--vocab-size", "60", "--out", base / "tokenizer")
    processes = [start(*words, folder=base) for _ in range(2)]
    ends = {process.pid: (*process.communicate(timeout=120), process.returncode) for process in processes}
    codes = sorted(code for _, _, code in ends.values())
    assert codes in ([0, 73], [0, 0])  # the second may have come when the first was done: then it was fresh
    for pid, (_, err, code) in ends.items():
        (other,) = ends.keys() - {pid}
        assert code == 0 or f"process {other} is writing it" in err
    assert tfm("inspect", base / "tokenizer").code == 0
