"""Every part that a recipe may name, and every pair of them, trains through the real loop: copying, its loss halves
within 100 updates."""

import json
from pathlib import Path
from typing import Any

import pytest

from model.config import ModelConfig, RecurrentConfig, StackConfig
from tests.combinations import Choice, configured, covering
from tests.tiny_training import run, training, write_dataset

pytestmark = pytest.mark.slow

WIDTHS = StackConfig(layers=1, dim=48, heads=4, feed_forward_dim=96, key_dim=8, value_dim=16)
OTHERS: dict[str, dict[str, Any]] = {
    "gru": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="gru")},
    "values of another width than keys": {"encoder": WIDTHS, "decoder": WIDTHS},
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset", num_train=400, batch_tokens=256)


@pytest.mark.parametrize("choice", covering(), ids=lambda choice: " ".join(map(str, choice.values())))
def test_every_pair_of_parts_learns(choice: Choice, dataset: Path, tmp_path: Path) -> None:
    first, last = losses(configured(choice), dataset, tmp_path)
    assert last < first / 2


@pytest.mark.parametrize("part", OTHERS)
def test_it_learns(part: str, dataset: Path, tmp_path: Path) -> None:
    model = ModelConfig.model_validate(configured({}).model_dump() | OTHERS[part])
    first, last = losses(model, dataset, tmp_path)
    assert last < first / 2


def losses(model: ModelConfig, dataset: Path, out: Path) -> tuple[float, float]:
    """-log p of a piece at the first of 100 updates, and at the last five."""
    schedule: dict[str, Any] = {"name": "inverse_sqrt", "peak": 0.01, "warmup_steps": 10}
    validation = {"every_steps": 100, "bleu": False}
    run(dataset, out, training(max_steps=100, log_every=1, schedule=schedule, validation=validation), model=model)
    lines = (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    found: list[float] = [line["nll"] for line in map(json.loads, lines) if line["event"] == "train"]
    return found[0], sum(found[-5:]) / 5
