"""`tfm plan` beside torch's counter of operations, which runs through a training of the same recipe."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from tests.cli.user import RECIPE, tfm, write_corpora
from tfm.pipeline.training.update import GradientComputer

STARTED = ('training.init_from="runs/tiny"', "training.lora.rank=3")
CASES: dict[str, Sequence[str]] = {
    "epochs": (),
    "accumulated": ("training.accumulate=3",),
    "growing": ("training.batch_growth={factor = 2, steps = [3, 5]}",),
    "R-Drop": ("training.r_drop=1.0",),
    "recomputed": ("training.recompute=true",),
    "adapters": STARTED,
    "decoder": ("model.architecture=decoder_only",),
    "flat": ("training.layout=flat",),
    "masked": ("model.architecture=encoder_only", "model.task=masked_language_model"),
    "spans": (
        "model.task=span_corruption",
        "model.max_length=32",
        "data.limits.max_length=31",
        "tokenizer.sentinels=4",
    ),
    "shards": ("data.shard_rows=40",),
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The operations of each update that is done."""
    found: list[float] = []
    compute = GradientComputer._accumulate_gradients

    def count(self: GradientComputer, *given: Any) -> str | None:
        with FlopCounterMode(display=False) as counter:
            problem = compute(self, *given)
        found.append(counter.get_total_flops())
        return problem

    monkeypatch.setattr(GradientComputer, "_accumulate_gradients", count)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_operations_of_an_update_are_those_that_torch_counts(
    case: str, counted: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpora(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = RECIPE.format(folder=".").replace("dim = 16, heads = 2, feed_forward_dim = 16", "dim = 64, heads = 2")
    Path("tiny.toml").write_text(text.replace("max_steps = 10", "max_epochs = 2"), "utf-8")
    settings = "training.parallel=threads", *CASES[case]
    sets, of_data = (
        [word for each in settings if each.startswith(sections) for word in ("--set", each)]
        for sections in ("", ("data.", "tokenizer."))
    )
    for stage in ("tokenize", "preprocess"):
        assert tfm(stage, "--recipe", "tiny.toml", *of_data).code == 0
    if case == "adapters":
        assert tfm("train", "--recipe", "tiny.toml").code == 0
        counted.clear()
    done = tfm("plan", "tiny.toml", *sets, "--on", "H100", "--json")
    assert done.code == 0, done.err
    planned = json.loads(done.out)
    trained = tfm("train", "--recipe", "tiny.toml", *sets, "--out", "out")
    assert trained.code == 0, trained.err
    assert planned["corpus"]["updates"] == len(counted)
    assert planned["flop_per_update"] == pytest.approx(sum(counted) / len(counted), rel=0.1)
