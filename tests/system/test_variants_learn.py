"""Every part that a recipe may name trains through the real loop: copying, its loss halves within 100 updates."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from model.config import Activation, DropoutConfig, ModelConfig, Norm, Normalization, Positions, Score, StackConfig
from tests.tiny_training import run, training, write_dataset

pytestmark = pytest.mark.slow

NAMES = {
    "positions": Positions,
    "score": Score,
    "activation": Activation,
    "norm": Norm,
    "normalization": Normalization,
}
VARIANTS = [(part, name) for part, names in NAMES.items() for name in get_args(names)]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset", num_train=400, batch_tokens=256)


@pytest.mark.parametrize(("part", "name"), VARIANTS, ids=lambda word: str(word))
def test_it_learns(part: str, name: str, dataset: Path, tmp_path: Path) -> None:
    stack = StackConfig(layers=1, dim=48, heads=4, feed_forward_dim=96)
    none = DropoutConfig(residual=0, embedding=0)
    model = ModelConfig.model_validate({"encoder": stack, "decoder": stack, "dropout": none, part: name})
    schedule: dict[str, Any] = {"name": "inverse_sqrt", "peak": 0.01, "warmup_steps": 10}
    validation = {"every_steps": 100, "bleu": False}
    run(dataset, tmp_path, training(max_steps=100, log_every=1, schedule=schedule, validation=validation), model=model)
    lines = (tmp_path / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    losses = [line["nll"] for line in map(json.loads, lines) if line["event"] == "train"]
    assert sum(losses[-5:]) / 5 < losses[0] / 2
