"""The measurement of `tfm plan` on this machine: seconds of an update and a validation, from when their lines came."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.cli.user import RECIPE, tfm, write_corpora
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.planning.corpus_size import mean_reference_length
from tfm.pipeline.planning.measurement import (
    FIRST_UPDATES,
    MAX_UPDATES,
    measure_short_training,
    num_updates_to_measure,
    peak_and_limit,
    update_seconds,
    validation_seconds,
)
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.devices import DEVICE_MEMORY

LINES = [
    (7.0, "train"),
    (8.0, "train"),
    (9.0, "train"),
    (12.5, "valid"),
    (14.0, "train"),
    (15.0, "train"),
    (16, "valid"),
]


def test_an_update_is_timed_after_another_and_a_validation_between_two() -> None:
    assert update_seconds(LINES) == 1.0
    assert validation_seconds(LINES) == pytest.approx(14.0 - 9.0 - 1.0)


def test_slow_updates_are_few_and_fast_ones_no_more_than_their_shapes_need() -> None:
    found = [num_updates_to_measure(seconds, 1000) for seconds in (0.0, 0.05, 0.5, 3.0, 100.0)]
    assert found == [MAX_UPDATES, MAX_UPDATES, 40, 6, FIRST_UPDATES]
    assert [num_updates_to_measure(0.0, updates) for updates in (1, 7, 47)] == [FIRST_UPDATES, 6, 46]


@pytest.mark.slow
def test_memory_is_that_of_a_device_where_it_has_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU stands in for a device whose memory torch reports; a model of a CPU has no such figure."""
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    for stage in ("tokenize", "preprocess", "train"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    figures = open_artifact(Path("runs/tiny/model"), "train").figures
    peak, limit = peak_and_limit(figures, 5e8)
    assert peak == 5e8
    assert limit > peak
    monkeypatch.setitem(DEVICE_MEMORY, "cpu", lambda device: {"peak_reserved": 7 * 10**9, "total": 8 * 10**10})
    assert tfm("train", "--recipe", "tiny.toml", "--out", "other").code == 0
    assert peak_and_limit(open_artifact(Path("other/model"), "train").figures, 5e8) == (7e9, 8e10)


def test_memory_of_a_gpu_is_read_by_the_names_that_torch_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 5)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=9))
    assert DEVICE_MEMORY["cuda"](torch.device("cuda")) == {"peak_reserved": 5, "total": 9}


@pytest.mark.slow
def test_a_training_of_few_updates_by_epochs_is_measured_and_tracked_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own end, its own validations and a tracker are not those of the measurement."""
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder=".").replace("max_steps = 10", "max_epochs = 1"), "utf-8")
    monkeypatch.chdir(tmp_path)
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    sets = (
        "training.validation.every_epochs=2",
        "training.early_stopping.patience=1",
        'training.trackers=["mlflow"]',
    )
    done = tfm("plan", "tiny.toml", *(word for each in sets for word in ("--set", each)), "--json")
    assert done.code == 0, done.err
    planned = json.loads(done.out)
    assert planned["corpus"]["updates"] == 5
    assert planned["seconds"]["train"] > 0
    assert "4 measured updates" in " ".join(planned["assumptions"])
    assert sorted(each.name for each in tmp_path.iterdir() if "mlflow" in each.name or "mlruns" in each.name) == []


@pytest.mark.slow
def test_validations_translate_to_the_mean_length_of_the_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model of few updates writes to the limit: what it takes is no measure of those that follow."""
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    monkeypatch.chdir(tmp_path)
    sets = ("decoding.max_length=none", "decoding.max_ratio=30")
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml").code == 0
    length = mean_reference_length(load_recipe(Path("tiny.toml"), sets))
    assert length is not None
    assert 2 < length < 20
    assert mean_reference_length(load_recipe(Path("tiny.toml"), ("training.validation.bleu=false",))) is None
    found = measure_short_training(Path("tiny.toml"), sets, length, 1000)
    assert found.updates > FIRST_UPDATES
    assert 0 < found.update_seconds < found.start_seconds
    assert found.peak_bytes > 1e8
    assert found.validation_seconds < measure_short_training(Path("tiny.toml"), sets, None, 1000).validation_seconds
