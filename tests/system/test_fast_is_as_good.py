"""What makes training fast costs no quality: the fast and the plain arithmetic end within the spread of their seeds."""

import json
import statistics
from pathlib import Path

import pytest

from tests.system.test_learning import ROOT, tfm

pytestmark = pytest.mark.slow

SHORT = (
    "training.max_steps=200",
    "training.max_epochs=none",
    "training.validation.every_steps=200",
    "training.validation.bleu=false",
)
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
    if (out / "model").exists():
        return last_loss(out)
    sets = (*SHORT, f"training.precision={precision}", f"model.dropout.attention={attention_dropout}", f"seed={seed}")
    words = [word for each in sets for word in ("--set", each)]
    tfm("train", "--recipe", str(ROOT / "recipes" / "demo.toml"), *words, "--out", str(out), cwd=folder)
    return last_loss(out)


def last_loss(run: Path) -> float:
    lines = [json.loads(line) for line in (run / "training" / "metrics.jsonl").read_text().splitlines()]
    return float([line["loss"] for line in lines if line["event"] == "valid"][-1])


def assert_as_good(fast: list[float], plain: list[float]) -> None:
    """In the mean no worse than the plain way by more than its own seeds differ."""
    print(f"plain {plain}, fast {fast}")
    assert statistics.mean(fast) - statistics.mean(plain) <= max(plain) - min(plain)


def test_bf16_products_end_where_fp32_ends(folder: Path) -> None:
    plain, fast = ([validation_loss(folder, precision, 0.0, seed) for seed in SEEDS] for precision in ("fp32", "bf16"))
    assert_as_good(fast, plain)


def test_the_fused_kernel_ends_where_the_equation_ends(folder: Path) -> None:
    # a rate so small that nothing is dropped, but the equation is taken
    plain, fast = ([validation_loss(folder, "fp32", rate, seed) for seed in SEEDS] for rate in (1e-9, 0.0))
    assert_as_good(fast, plain)
