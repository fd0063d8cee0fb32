"""Scores by a command of the user's: each pair has its own, also after a command that printed too many or too few."""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.cleaning import cleaner, late_scores
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.clean import clean

NUM_PAIRS = 20
SCORER = """
import json, os, sys
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


def clean_by_command(folder: Path) -> list[float]:
    """The scores of all pairs, of which pair n has a target of n words; the command is the same each time."""
    for name, line in (("source", "a"), ("target", "b ")):
        lines = "".join(f"{line * number}{number}\n" for number in range(NUM_PAIRS))
        (folder / name).write_text(lines, "utf-8")
    corpus = CorpusConfig(source=str(folder / "source"), target=str(folder / "target"))
    off = dict.fromkeys(("ratio", "copies", "letters"))
    scorer = {"name": "words", "command": [sys.executable, "-c", SCORER], "min": 0, "limit": 60}
    config = CleanConfig.model_validate({**off, "external": [scorer]})
    out = folder / "clean"
    clean(config, DataConfig(train=(corpus,)), out, whole_corpora=True, command=(), reporter=NullReporter())
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
