"""The mean of checkpoints is published as the recipe says; a warning says where the best one alone is better."""

import json
from pathlib import Path

import pytest

from tests.recording_reporter import Listening
from tests.tiny_training import run, training, write_dataset


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("peak", "is_worse"), [(0.003, True), (0.3, False)], ids=["weights on their way", "weights that jump about"]
)
def test_a_mean_worse_than_the_best_checkpoint_is_told(tmp_path: Path, peak: float, is_worse: bool) -> None:
    """Weights that still move in one direction have a mean that lies behind the last of them."""
    heard = Listening()
    config = training(
        max_steps=60,
        keep={"last": 3, "average": "last"},
        schedule={"name": "constant", "peak": peak, "warmup_steps": 0},
        validation={"every_steps": 20, "bleu": False, "metrics": ["wer"]},
    )
    model = run(write_dataset(tmp_path / "dataset"), tmp_path, config, reporter=heard)
    lines = [json.loads(each) for each in (tmp_path / "training/metrics.jsonl").read_text("utf-8").splitlines()]
    alone = min(each["loss"] for each in lines if each["event"] == "valid")
    figures = json.loads((model / "manifest.json").read_text("utf-8"))["figures"]["validation"]
    mean, wer = figures["loss"], figures["scores"]["wer"]["score"]
    told = [each for each in heard.warnings if 'training.keep.average = "none"' in each]
    assert (mean > alone) == is_worse == bool(told)
    if told:
        assert f"loss {mean:.4f}" in told[0]
        assert f"wer {wer:.2f}" in told[0]
        assert f"loss {alone:.4f}" in told[0]
