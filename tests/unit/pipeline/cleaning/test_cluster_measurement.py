"""Pairs measured on a cluster: the bytes of one process, whoever measures them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recording_reporter import Listening
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.cleaning import corpora
from tfm.pipeline.cleaning.cluster_measurement import read_measurement, write_measurement
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.measurement import ChunkMeasurement
from tfm.pipeline.cluster.local_session import LocalSession
from tfm.pipeline.stages import clean as stage
from tfm.pipeline.stages.clean import clean

WORDS = ("eins", "zwei\x00", "DREI", "vier\x0c", "fünf")
CONFIG = CleanConfig.model_validate(
    {"controls": {"action": "remove"}, "length": {"max": 7}, "boilerplate": {"max": 2}, "copies": {"percentile": 10}}
)


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    draw = np.random.default_rng(1)
    columns = [[" ".join(draw.choice(WORDS, draw.integers(0, 10))) for _ in range(300)] for _ in range(2)]
    for name, lines in (("train", columns), ("test", [side[:9] for side in columns])):
        for side, texts in enumerate(lines):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{text}\n" for text in texts), "utf-8", newline="")
    train, test = (
        CorpusConfig(source=str(tmp_path / f"{n}.0"), target=str(tmp_path / f"{n}.1")) for n in ("train", "test")
    )
    return DataConfig(train=(train,), valid=(test,), tests={"test": test})


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.few(1)
def test_the_artifact_is_that_of_one_process(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """In place of Ray, processes of this machine are given the same chunks by the same function."""
    monkeypatch.setattr(corpora, "CHUNK_ROWS", 17)
    addresses = []

    @contextmanager
    def connect(address: str, plan: Plan | None = None) -> Iterator[LocalSession]:
        addresses.append(address)
        yield LocalSession(workers, None)

    monkeypatch.setattr(stage, "connect_to_cluster", connect)
    made: dict[str, Any] = {"command": ["tfm"], "reporter": Listening()}
    clean(CONFIG, data, tmp_path / "one", **made)
    clean(CONFIG, data, tmp_path / "other", cluster="host:1", **made)
    one, other = ({each.name: each.read_bytes() for each in (tmp_path / name).iterdir()} for name in ("one", "other"))
    assert addresses == ["host:1"]
    assert {**one, "manifest.json": b""} == {**other, "manifest.json": b""}
    assert one["dropped.jsonl"].count(b"\n") > 30


def test_a_measurement_is_read_as_it_was_written() -> None:
    columns = {"ratio": np.array([0.5, np.nan, -0.0]), "boilerplate": np.array([[1, 2**64 - 1]] * 3, np.uint64)}
    changes = {0: ("a\u2028\n", "\ud800"), 2: ("", "“")}
    found = read_measurement(write_measurement(ChunkMeasurement(columns, changes)))
    assert found.changes == changes
    assert found.columns.keys() == columns.keys()
    for name, column in columns.items():
        assert found.columns[name].dtype == column.dtype
        assert found.columns[name].tobytes() == column.tobytes()
        assert found.columns[name].shape == column.shape
