"""Learning rates and numbers of updates of every schedule, with batches gathered and without, a second time."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import tfm
from tests.meaning import campaign, scripts
from tests.meaning import plain_counts as plain

pytestmark = [pytest.mark.slow, pytest.mark.meaning("rates")]
EPOCHS, WARMUP, SEED, BUDGET = 7, 5, 4, 150
SCHEDULES = ("constant", "noam", "inverse_sqrt", "cosine", "linear", "step", "warmup_stable_decay", "plateau")
SET = {
    "peak": 0.003,
    "warmup_steps": WARMUP,
    "final": 0.0005,
    "decay_steps": 6,
    "hold_steps": 2,
    "factor": 0.7,
    "patience": 1,
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer and a dataset, and the recipe of both."""
    folder = tmp_path_factory.mktemp("rates")
    corpora = scripts.write(folder / "corpora", scripts.SCRIPTS["kana"])
    recipe = campaign.write_recipe(folder / "rates.toml", corpora.folder, "char")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for stage in ("tokenize", "preprocess"):
            said = tfm(stage, "--recipe", recipe, "--set", f"data.batch_tokens={BUDGET}")
            assert said.code == 0, said.err
    return folder


def lengths_of(folder: Path) -> list[tuple[int, int]]:
    """Both lengths of each training pair, end tokens counted, as another library reads the dataset."""
    from datasets import load_from_disk

    train = load_from_disk(str(folder / "runs" / "rates" / "dataset" / "train"))
    return [(len(one) + 1, len(other) + 1) for one, other in zip(train["source"], train["target"], strict=True)]


@pytest.mark.parametrize("accumulate", [1, 16])
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_of_every_update(
    prepared: Path, tmp_path: Path, name: str, accumulate: int, record_property: Any
) -> None:
    asked = {f"training.schedule.{key}": value for key, value in SET.items() if key in KEYS[name]}
    asked |= {"training.schedule.name": name, "training.max_epochs": EPOCHS, "training.log_every": 1}
    asked |= {"training.validation.bleu": False, "training.accumulate": accumulate, "training.precision": "fp32"}
    asked |= {f"model.{side}.{key}": value for side in ("encoder", "decoder") for key, value in SMALL.items()}
    words = campaign.settings(asked)
    dataset = prepared / "runs" / "rates" / "dataset"
    said = tfm("train", "--data", dataset, "--device", "cpu", "--seed", str(SEED), *words, "--out", tmp_path)
    assert said.code == 0, said.err
    run = campaign.Run(tmp_path, said)
    lines, losses = run.metrics("train"), {line["step"]: line["loss"] for line in run.metrics("valid")}
    total = plain.num_updates(lengths_of(prepared), BUDGET, SEED, EPOCHS, accumulate)
    assert [line["step"] for line in lines] == list(range(1, total + 1))
    for line in lines:
        step = line["step"]
        if name == "plateau":
            known = [loss for at, loss in sorted(losses.items()) if at < step]
            wanted = plain.plateau_rate(step, known, SET)
        else:
            wanted = plain.rate(name, step, total, SET, SMALL["dim"])
        assert line["learning_rate"] == pytest.approx(wanted, rel=1e-12), step
    if name in ("cosine", "linear", "warmup_stable_decay"):
        assert lines[-1]["learning_rate"] == pytest.approx(SET["final"], rel=1e-12)
    record_property("updates", total)


COMING_DOWN = {"peak", "warmup_steps", "final"}
KEYS: dict[str, set[str]] = {
    "constant": {"peak", "warmup_steps"},
    "noam": {"peak", "warmup_steps"},
    "inverse_sqrt": {"peak", "warmup_steps"},
    "cosine": COMING_DOWN,
    "linear": COMING_DOWN,
    "step": {"peak", "warmup_steps", "decay_steps", "hold_steps", "factor"},
    "warmup_stable_decay": {*COMING_DOWN, "decay_steps"},
    "plateau": {*COMING_DOWN, "factor", "patience"},
}
SMALL = {"layers": 1, "dim": 16, "heads": 2, "feed_forward_dim": 16}
