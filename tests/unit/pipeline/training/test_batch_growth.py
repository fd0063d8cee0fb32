"""Batches that grow: how many an update takes, and how many updates there are, counted before the first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.recording_reporter import Listening
from tests.tiny_training import run, training, write_dataset
from tfm.pipeline.errors import RecipeError, StoppedError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.tasks.task import Rows
from tfm.pipeline.training.assembly.num_updates import last_step
from tfm.pipeline.training.update import GradientComputer, PendingGradient
from tfm.pipeline.training_config import TrainingConfig

growths = st.builds(
    lambda factor, steps: {"factor": factor, "steps": sorted(steps)},
    st.integers(2, 4),
    st.sets(st.integers(1, 40), min_size=1, max_size=4),
)


def sizes(num_batches: Sequence[int], accumulate: int, growth: dict[str, Any], processes: int) -> list[int]:
    """The batches of each update of all epochs, taken one by one."""
    found = []
    for left in num_batches:
        while left:
            wanted = accumulate * processes
            for step in growth["steps"]:
                if len(found) >= step:  # so many updates are done
                    wanted *= growth["factor"]
            found.append(min(wanted, left))
            left -= found[-1]
    return found


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 3), growths, st.integers(1, 3))
def test_updates_are_counted_as_they_are_taken(
    num_batches: list[int], accumulate: int, growth: dict[str, Any], processes: int
) -> None:
    config = TrainingConfig(max_epochs=len(num_batches), accumulate=accumulate, batch_growth=growth)  # type: ignore[arg-type]
    taken = sizes(num_batches, accumulate, growth, processes)
    assert last_step(config, num_batches.__getitem__, processes) == len(taken)
    capped = config.model_copy(update={"max_steps": 5})
    assert last_step(capped, num_batches.__getitem__, processes) == min(5, len(taken))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches each update takes, as they are done."""
    found: list[int] = []
    begin = GradientComputer.start_gradient

    def counting(self: GradientComputer, group: Sequence[Rows], step: int, *, stop: bool) -> PendingGradient:
        found.append(len(group))
        return begin(self, group, step, stop=stop)

    monkeypatch.setattr(GradientComputer, "start_gradient", counting)
    return found


GROWING: dict[str, Any] = {
    "max_steps": None,
    "max_epochs": 4,
    "accumulate": 2,
    "batch_growth": {"factor": 2, "steps": [3, 6]},
    "schedule": {"name": "linear", "peak": 0.01, "warmup_steps": 2},
    "validation": {"every_epochs": 1, "bleu": False},
    "log_every": 1,
}


@pytest.mark.slow
def test_a_training_takes_them_and_goes_on_in_their_midst(dataset: Path, tmp_path: Path, taken: list[int]) -> None:
    config, talk = training(**GROWING), Listening()
    run(dataset, tmp_path / "straight", config, reporter=talk)
    whole = list(taken)
    assert whole[:3] == [2, 2, 2]
    assert max(whole[3:6]) == 4
    assert max(whole[6:]) > 4
    assert any(f"at most {len(whole)} updates" in line for line in talk.lines)
    for stop in (3, 5):
        taken.clear()
        with pytest.raises(StoppedError):
            run(dataset, tmp_path / f"{stop}", config, reporter=SignalAt(stop, 15))  # type: ignore[arg-type]
        assert len(taken) < len(whole)
        run(dataset, tmp_path / f"{stop}", config)
        assert taken == whole
        assert result(tmp_path / f"{stop}") == result(tmp_path / "straight")


def test_growth_after_the_end_is_doubted(dataset: Path, tmp_path: Path) -> None:
    talk = Listening()
    config = training(max_steps=2, batch_growth={"steps": [1, 2]}, validation={"every_steps": 2, "bleu": False})
    run(dataset, tmp_path, config, reporter=talk)
    (said,) = [each for each in talk.warnings if "batch_growth" in each]
    assert "batch_growth.steps: step 2 is never followed by an update (at most 2)" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{ steps = [5, 5] }", "steps must ascend, not 5, 5"),
        ("{ steps = [] }", "training.batch_growth.steps"),
        ("{ factor = 1, steps = [5] }", "training.batch_growth.factor"),
        ("{ factor = 2 }", "training.batch_growth.steps"),
    ],
)
def test_what_grows_nothing_is_refused(tmp_path: Path, given: str, said: str) -> None:
    recipe = tmp_path / "some.toml"
    recipe.write_text('data.path = "corpora"\n[training]\nbatch_growth = { factor = 3, steps = [4, 9] }\n', "utf-8")
    growth = load_recipe(recipe).training.batch_growth
    assert growth is not None
    assert growth.steps == (4, 9)
    recipe.write_text(f'data.path = "corpora"\n[training]\nbatch_growth = {given}\n', "utf-8")
    with pytest.raises(RecipeError, match=said):
        load_recipe(recipe)
