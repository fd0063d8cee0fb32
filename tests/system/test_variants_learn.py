"""Every part that a recipe may name, and every pair of them, trains through the real loop: copying, its loss halves
within 100 updates, or almost."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.combinations import Choice, configured, covering
from tests.tiny_training import run, training, write_dataset
from tfm.model.config import DropoutConfig, ModelConfig, RecurrentCell, RecurrentConfig, StackConfig

pytestmark = pytest.mark.slow

WIDTHS = StackConfig(layers=1, dim=48, heads=4, feed_forward_dim=96, key_dim=8, value_dim=16)
OTHERS: dict[str, dict[str, Any]] = {
    "gru": {"mixing": "recurrent", "recurrent": RecurrentConfig(cell="gru")},
    "values of another width than keys": {"encoder": WIDTHS, "decoder": WIDTHS},
    "adaptive softmax and inputs": {"adaptive": {"cutoffs": (7, 11), "factor": 2}},
    "dilated convolution with filters": {
        "encoder": WIDTHS.model_copy(update={"layers": 2}),
        "mixing": "convolution",
        "convolution": {"width": 3, "dilation": 3, "filters": 40},
    },
    "recurrent norms": {
        "architecture": "recurrent",
        "recurrent": RecurrentConfig(normalization="batch", attention="luong"),
        "encoder": StackConfig(layers=2, dim=48, heads=1),
        "decoder": StackConfig(layers=2, dim=48, heads=1),
    },
    "adaptive softmax": {"adaptive": {"cutoffs": (7, 11), "factor": 2, "inputs": False}, "tie": "embeddings"},
}

RECURRENT: list[dict[str, Any]] = [
    {"cell": cell, **how}
    for cell in get_args(RecurrentCell)
    for how in (
        {},
        {"reverse_source": True},
        {"bidirectional": True, "attention": "luong"},
        {"bidirectional": True, "attention": "bahdanau"},
    )
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset", num_train=400, batch_tokens=256)


@pytest.mark.parametrize("choice", covering(), ids=lambda choice: " ".join(map(str, choice.values())))
def test_every_pair_of_parts_learns(choice: Choice, dataset: Path, tmp_path: Path) -> None:
    first, last = losses(configured(choice), dataset, tmp_path)
    # the gradient of a hard look-up is not that of what it computes
    assert last < first * (0.6 if choice["lookup"] == "hard" else 0.5)


@pytest.mark.parametrize("part", OTHERS)
def test_it_learns(part: str, dataset: Path, tmp_path: Path) -> None:
    model = ModelConfig.model_validate(configured({}).model_dump() | OTHERS[part])
    first, last = losses(model, dataset, tmp_path)
    assert last < first / 2


@pytest.mark.parametrize("recurrent", RECURRENT, ids=lambda each: " ".join(map(str, each.values())))
def test_a_recurrent_model_learns(recurrent: dict[str, Any], dataset: Path, tmp_path: Path) -> None:
    stack, none = StackConfig(layers=1, dim=48, heads=1), DropoutConfig(residual=0, embedding=0)
    given = {"architecture": "recurrent", "recurrent": recurrent, "encoder": stack, "decoder": stack, "dropout": none}
    first, last = losses(ModelConfig.model_validate(given), dataset, tmp_path)
    # what is to be copied fades on its way without attention, where there are no gates, or none that see the state
    assert last < first * (0.7 if recurrent in ({"cell": "tanh"}, {"cell": "ssru"}) else 0.5)


def losses(model: ModelConfig, dataset: Path, out: Path) -> tuple[float, float]:
    """-log p of a piece at the first of 100 updates, and at the last five."""
    schedule: dict[str, Any] = {"name": "inverse_sqrt", "peak": 0.01, "warmup_steps": 10}
    more: dict[str, Any] = {"validation": {"every_steps": 100, "bleu": False}}
    if model.has_adaptive_tails:
        more["label_smoothing"] = 0.0
    run(dataset, out, training(max_steps=100, log_every=1, schedule=schedule, **more), model=model)
    lines = (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    found: list[float] = [line["nll"] for line in map(json.loads, lines) if line["event"] == "train"]
    return found[0], sum(found[-5:]) / 5
