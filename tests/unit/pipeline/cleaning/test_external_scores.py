"""Scores by a command of the user's: each pair has its own, also after a command that printed too many or too few."""

import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.cleaning import cleaner, late_scores
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter, Reporter
from tfm.pipeline.stages.clean import clean

NUM_PAIRS = 20
SCORER = """
import json, os, sys
if "STARTS" in os.environ:
    open(os.environ["STARTS"], "a").write("x")
numbers = (len(json.loads(line)["hypothesis"].split()) for line in sys.stdin)
if os.environ.get("SCORER") == "one before":
    print(0, flush=True)
for row, number in enumerate(numbers):
    if os.environ.get("SCORER") == "one too few" and row == 3:
        continue
    print(number, flush=True)
    while os.environ.get("SCORER") == "endless":
        print(1)
"""


def write_texts(folder: Path) -> None:
    """Pairs, of which pair n has a target of n + 1 words."""
    for name, line in (("source", "a"), ("target", "b ")):
        lines = "".join(f"{line * number}{number}\n" for number in range(NUM_PAIRS))
        (folder / name).write_text(lines, "utf-8")


def clean_by_command(folder: Path, reporter: Reporter | None = None, **limits: float) -> list[float]:
    """The scores of all pairs, of which pair n has a target of n words; the command is the same each time."""
    write_texts(folder)
    corpus = CorpusConfig(source=str(folder / "source"), target=str(folder / "target"))
    off = dict.fromkeys(("ratio", "copies", "letters"))
    scorer = {"name": "words", "command": [sys.executable, "-c", SCORER], "min": 0, "limit": 60} | limits
    config = CleanConfig.model_validate({**off, "external": [scorer]})
    out = folder / "clean"
    data, reporter = DataConfig(train=(corpus,)), reporter or NullReporter()
    clean(config, data, out, whole_corpora=True, command=(), reporter=reporter)
    scores: list[float] = pq.read_table(out / "scores.parquet")["words"].to_pylist()
    return scores


@pytest.mark.parametrize("fault", ["one before", "one too few", "endless"])
def test_scores_of_a_command_that_printed_another_number_of_them_are_not_kept(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables of the command are no input of the stage, which goes on with what was kept."""
    monkeypatch.setattr(late_scores, "ROWS_PER_SAVE", 4)
    monkeypatch.setenv("SCORER", fault)
    with pytest.raises(DataError, match=r"clean\.external: words printed"):
        clean_by_command(tmp_path)
    monkeypatch.delenv("SCORER")
    assert clean_by_command(tmp_path) == [number + 1 for number in range(NUM_PAIRS)]


def test_a_command_that_is_not_there_is_named_before_pairs_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaner, "iterate_chunks", lambda *_, **__: pytest.fail("pairs were read"))
    monkeypatch.setattr(sys, "executable", "no such python")
    with pytest.raises(DataError, match="words cannot be started: there is no command 'no such python'; install it"):
        clean_by_command(tmp_path)


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of one byte for each start of the command, in the current folder, which is a new one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STARTS", str(tmp_path / "starts"))
    (tmp_path / "starts").touch()
    return tmp_path / "starts"


def test_other_limits_cut_the_same_scores(starts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is not started again, nor needed; and the texts are those of a cleaning from the beginning."""
    for folder in ("one", "other"):
        Path(folder).mkdir()
    everything = [number + 1 for number in range(NUM_PAIRS)]
    assert clean_by_command(Path("one")) == everything
    with monkeypatch.context() as gone:
        gone.setattr(shutil, "which", lambda name: None)
        assert clean_by_command(Path("one"), min=5) == everything
    assert clean_by_command(Path("one"), min=5, max=9) == everything
    assert starts.stat().st_size == 1
    assert clean_by_command(Path("other"), min=5, max=9) == everything
    for name in ("train.0.source.txt", "dropped.jsonl", "scores.parquet"):
        assert (Path("one/clean") / name).read_bytes() == (Path("other/clean") / name).read_bytes()
    # of other pairs there are other scores, and with another limit of time there is nothing to do
    assert starts.stat().st_size == 2
    assert clean_by_command(Path("one"), min=5, max=9, limit=50) == everything
    assert starts.stat().st_size == 2


def test_scores_that_are_kept_of_a_cleaning_that_failed_are_used(starts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command is not started where nothing is left to score, nor where another limit cuts the same scores."""
    with pytest.raises(DataError, match="no training pair is left; dropped: words: 20"):
        clean_by_command(Path(), min=100)
    assert starts.stat().st_size == 1
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert clean_by_command(Path(), min=3) == [number + 1 for number in range(NUM_PAIRS)]
    assert starts.stat().st_size == 1


def test_scores_of_other_pairs_are_not_used(starts: Path) -> None:
    """A command scores anew where another limit of the command before it lets other pairs pass."""
    write_texts(Path())
    data = DataConfig(train=(CorpusConfig(source="source", target="target"),))
    off = dict.fromkeys(("ratio", "copies", "letters"))
    scorers = [{"name": name, "command": [sys.executable, "-c", SCORER], "min": 0} for name in ("first", "second")]
    columns = []
    for limit in (10, 5, 5):
        config = CleanConfig.model_validate({**off, "external": [scorers[0] | {"min": limit}, scorers[1]]})
        clean(config, data, Path("clean"), whole_corpora=True, command=(), reporter=NullReporter())
        columns.append(pq.read_table("clean/scores.parquet")["second"].to_pylist())
    assert columns[0] == [None] * 9 + [number + 1 for number in range(9, NUM_PAIRS)]
    assert columns[1] == columns[2] == [None] * 4 + [number + 1 for number in range(4, NUM_PAIRS)]
    assert starts.stat().st_size == 3
