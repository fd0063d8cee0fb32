"""What makes training fast costs no quality: the fast and the plain arithmetic end within the spread of their seeds."""

import json
import statistics
from pathlib import Path

import pytest

from tests.system.test_learning import ROOT, tfm

pytestmark = pytest.mark.slow

SHORT = ("training.max_steps=300", "training.max_epochs=none", "training.validation.every_steps=300")
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo's dataset is."""
    made = tmp_path_factory.mktemp("fast")
    for stage in ("tokenize", "preprocess"):
        tfm(stage, "--recipe", str(ROOT / "recipes" / "demo.toml"), cwd=made)
    return made


def validation_loss(folder: Path, precision: str, attention_dropout: float, seed: int) -> float:
    """Of a short training of the demo's model; dropout on the attention's weights writes the attention out."""
    out = folder / f"{precision}-{attention_dropout}-{seed}"
    sets = (*SHORT, f"training.precision={precision}", f"model.dropout.attention={attention_dropout}", f"seed={seed}")
    words = [word for each in sets for word in ("--set", each)]
    tfm("train", "--recipe", str(ROOT / "recipes" / "demo.toml"), *words, "--out", str(out), cwd=folder)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return float([line["loss"] for line in lines if line["event"] == "valid"][-1])


def test_bf16_products_end_where_fp32_ends(folder: Path) -> None:
    plain, fast = ([validation_loss(folder, precision, 0.0, seed) for seed in SEEDS] for precision in ("fp32", "bf16"))
    spread = max(plain) - min(plain)
    difference = statistics.mean(fast) - statistics.mean(plain)
    assert difference <= spread, f"fp32 {plain}, bf16 {fast}"


def test_the_fused_kernel_ends_where_the_equation_ends(folder: Path) -> None:
    # a rate so small that nothing is dropped, but the equation is taken
    plain, fast = ([validation_loss(folder, "fp32", rate, seed) for seed in SEEDS] for rate in (1e-9, 0.0))
    assert statistics.mean(fast) == pytest.approx(statistics.mean(plain), rel=0.02)
