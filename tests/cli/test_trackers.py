"""The figures of a run in MLflow and Weights & Biases, by their own packages, where these are installed."""

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, start, tfm, write_corpora

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of the services' packages


def read_records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a .wandb file: LevelDB's log format after seven bytes of its own."""
    block, position, record = 2**15, 7, b""
    while position + 7 <= len(content):
        if block - position % block < 7:
            position += block - position % block
            continue
        length, kind = struct.unpack_from("<HB", content, position + 4)
        record += content[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            yield record
            record = b""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with corpora and a recipe, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    return tmp_path


def test_mlflow_has_each_figure_once_after_a_kill(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    words = [
        *("run", "tiny.toml", "--set", 'training.trackers=["mlflow"]', "--set", "training.log_every=1"),
        *("--set", "training.save_every=10", "--set", "training.max_steps=3000"),
    ]
    process = start(*words, folder=folder)
    log = folder / "runs" / "tiny" / "training" / "metrics.jsonl"
    while process.poll() is None and not (log.exists() and len(log.read_bytes().splitlines()) > 60):
        time.sleep(0.05)
    process.kill()
    process.communicate()
    steps = 10 * (len(log.read_bytes().splitlines()) // 10) + 30
    done = start(*words[:-1], f"training.max_steps={steps}", folder=folder)
    _, err = done.communicate()
    assert done.returncode == 0, err
    client = mlflow.MlflowClient(f"sqlite:///{folder}/runs/mlflow.db")
    (experiment,) = [each for each in client.search_experiments() if each.name == "tfm"]
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.status == "FINISHED"
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for name in ("train/nll", "valid/loss"):
        history = client.get_metric_history(found.info.run_id, name)
        event, key = name.split("/")
        wanted = {line["step"]: line[key] for line in lines if line["event"] == event}
        assert {each.step: each.value for each in history} == wanted
        assert len(history) == len(wanted)
    scores = json.loads((folder / "runs/tiny/scores/manifest.json").read_text("utf-8"))
    assert found.data.tags["scores"] == scores["fingerprint"]
    assert found.data.metrics["test/main.bleu"] == scores["figures"]["main"]["bleu"]
    assert {each.path for each in client.list_artifacts(found.info.run_id)} >= {"report.html", "manifest.json"}


def test_a_server_that_is_not_there_costs_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    done = tfm("run", "tiny.toml", "--set", 'training.trackers=["mlflow"]')
    assert done.code == 0, done.err
    assert done.err.count("mlflow does not take the figures") == 1
    assert (folder / "runs" / "tiny" / "scores" / "scores.json").exists()


def test_wandb_offline_has_the_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.setenv("WANDB_MODE", "offline")
    done = start(
        *("run", "tiny.toml", "--set", 'training.trackers=["wandb"]', "--set", "training.log_every=1"), folder=folder
    )
    _, err = done.communicate()
    assert done.returncode == 0, err
    found: dict[int, float] = {}
    names = set()
    for file in sorted((folder / "runs" / "wandb").glob("offline-run-*/*.wandb")):
        names.add(file.name)
        for data in read_records(file.read_bytes()):
            record = Record()
            record.ParseFromString(data)
            items = {item.nested_key[0] if item.nested_key else item.key: item for item in record.history.item}
            if "train/nll" in items:
                found[int(json.loads(items["step"].value_json))] = json.loads(items["train/nll"].value_json)
    log = (folder / "runs/tiny/training/metrics.jsonl").read_text("utf-8")
    assert found == {
        line["step"]: line["nll"] for line in map(json.loads, log.splitlines()) if line["event"] == "train"
    }
    assert len(names) == 1  # training and evaluation are one run
