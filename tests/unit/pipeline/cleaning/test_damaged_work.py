"""Scores kept of a cleaning that was killed: damaged in any way they are made again, and never give other results."""

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.damage import DAMAGES, files_of
from tests.hostile import pickles
from tests.recording_reporter import Listening
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.cleaning import cleaner, corpora, measurement
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.work_folder import MeasurementFolder
from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.stages.clean import clean

pytestmark = pytest.mark.promise("damaged")
CONFIG = CleanConfig.model_validate({"length": {"max": 6}, "ratio": {"max": 3.0}, "overlap": None})


class Killed(BaseException):
    """The end at a moment that no code of ours foresees."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataConfig:
    """Return 60 pairs, of which some have control characters; they are measured by 10 at a time."""
    monkeypatch.setattr(corpora, "CHUNK_ROWS", 10)
    monkeypatch.setattr(cleaner, "SECONDS_PER_SAVE", 0)
    monkeypatch.setattr(measurement, "num_processors", lambda: 1)
    for side in "ab":
        lines = [f"{side}e\x01 " * (1 + row % 9) + str(row) for row in range(60)]
        (tmp_path / side).write_text("\n".join(lines) + "\n", "utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "b"))
    return DataConfig(train=(corpus,), valid=(corpus,), tests={})


def run(data: DataConfig, out: Path) -> dict[str, bytes]:
    clean(CONFIG, data, out, command=["tfm", "clean"], reporter=Listening())
    return {name: (out / name).read_bytes() for name in files_of(out) if name != "manifest.json"}


@pytest.fixture
def kept(data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what a cleaning leaves that is killed after 40 pairs."""
    measure, calls = measurement.ChunkMeasurer.__call__, []

    def counted(self: measurement.ChunkMeasurer, chunk: measurement.PairChunk) -> measurement.ChunkMeasurement:
        calls.append(len(chunk))
        if len(calls) == 5:
            raise Killed
        return measure(self, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(measurement.ChunkMeasurer, "__call__", counted)
        with pytest.raises(Killed):
            run(data, tmp_path / "clean")
    work = tmp_path / ".clean.work"
    assert json.loads((work / "progress.json").read_text())["rows"] == 40
    return work


def replace_by_others(file: Path) -> None:
    file.write_bytes(bytes(reversed(file.read_bytes())))


def append(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"more")


WAYS = {**DAMAGES, "others": replace_by_others, "longer": append}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", WAYS)
def test_damage_of_any_file_costs_at_most_the_work(
    data: DataConfig, kept: Path, tmp_path: Path, record_property: Any, kind: str
) -> None:
    whole, out, saved = run(data, tmp_path / "whole"), tmp_path / "clean", tmp_path / "saved"
    shutil.copytree(kept, saved)
    for name in files_of(saved):
        restore(saved, kept, out)
        WAYS[kind](kept / name)
        try:
            found, problem = run(data, out), ".clean.work"
        except (TfmError, OSError) as error:
            found, problem = whole, str(error)
        assert found == whole, name
        assert ".clean.work" in problem, name
    record_property("files", len(files_of(saved)))
    record_property("damages", len(files_of(saved)))


def restore(saved: Path, kept: Path, out: Path) -> None:
    """Begin again with what was kept."""
    for folder in (kept, out):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, kept)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["pickle", "torch zip", "torch"])
def test_nothing_of_it_is_unpickled(data: DataConfig, kept: Path, tmp_path: Path, kind: str) -> None:
    whole, saved, marker = run(data, tmp_path / "whole"), tmp_path / "saved", tmp_path / "it ran"
    shutil.copytree(kept, saved)
    for name in files_of(saved):
        restore(saved, kept, tmp_path / "clean")
        (kept / name).write_bytes(pickles(marker)[kind])
        assert run(data, tmp_path / "clean") == whole
    assert not marker.exists()


LINES = (
    b"3\n",
    b"{}\n",
    b"[" * 50_000 + b"\n",
    b"\xff\n",
    b'[0, "a"]\n',
    b'[0, 1, "a"]\n',
    b'[-1, "a", "b"]\n',
    b'[99, "a", "b"]\n',
    b'[1, "a", "b"]\n[0, "a", "b"]\n',
    b'[true, "a", "b"]\n',
    b'[1e999, "a", "b"]\n',
)


@pytest.mark.parametrize("content", LINES, ids=range(len(LINES)))
def test_changes_that_are_none_with_a_sum_that_fits_are_refused(
    data: DataConfig, kept: Path, tmp_path: Path, content: bytes
) -> None:
    (kept / "changes.jsonl").write_bytes(content)
    progress = json.loads((kept / "progress.json").read_text())
    progress["changes"] = len(content)
    progress["sha256"]["changes.jsonl"] = hashlib.sha256(content).hexdigest()
    (kept / "progress.json").write_text(json.dumps(progress))
    with pytest.raises(DataError, match="another program changed what is kept of a cleaning") as caught:
        run(data, tmp_path / "clean")
    assert "changes.jsonl" in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1.0])
def test_scores_that_are_none_with_a_sum_that_fits_end_in_results_or_an_error(
    data: DataConfig, kept: Path, tmp_path: Path, value: float
) -> None:
    progress = json.loads((kept / "progress.json").read_text())
    for file in kept.glob("*.column"):
        content = np.full(file.stat().st_size // 8, value).tobytes()
        file.write_bytes(content)
        progress["sha256"][file.name] = hashlib.sha256(content).hexdigest()
    (kept / "progress.json").write_text(json.dumps(progress))
    with suppress(TfmError):
        run(data, tmp_path / "clean")


def test_it_goes_on_from_what_is_whole(tmp_path: Path) -> None:
    def opened() -> MeasurementFolder:
        return MeasurementFolder(tmp_path / "work", "plan", {"x": 1, "keys": 2})

    work = opened()
    work.append({"x": np.arange(3.0), "keys": np.arange(6, dtype=np.uint64)}, {1: ("a", "é")})
    work.save_progress()
    work.append({"x": np.arange(2.0), "keys": np.arange(4, dtype=np.uint64)}, {0: ("lost", "b")})
    work.close()  # and never saved
    work = opened()
    assert work.rows == 3
    work.append({"x": np.arange(1.0), "keys": np.arange(2, dtype=np.uint64)}, {0: ("c", "d")})
    work.save_progress()
    work.close()
    work = opened()
    assert work.read_scores("x").tolist() == [0, 1, 2, 0]
    assert list(work.read_changes()) == [(1, "a", "é"), (3, "c", "d")]
    work.close()
