"""A training that is given another end is the one that had it from the beginning, or it is refused and told so."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.invariants.test_resume import SignalAt
from tests.killing import Spoil, result
from tests.recording_reporter import Listening
from tests.tiny_training import run, training
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError, RecipeError, StoppedError
from tfm.pipeline.reports.run_summary import read_run
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.checkpoints import checkpoint
from tfm.pipeline.training.schedules import SCHEDULES, TOTAL_STEPS_SCHEDULES

pytestmark = [pytest.mark.promise("resume"), pytest.mark.usefixtures("no_curves")]
WITHOUT_BLEU = {"every_steps": 5, "bleu": False}


def scheduled(name: str, **changes: Any) -> Any:
    schedule = {"name": name, "peak": 0.01, "warmup_steps": 3, "decay_steps": 4}
    return training(**{"max_steps": 10, "schedule": schedule, "validation": WITHOUT_BLEU, **changes})


def everything(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("inverse_sqrt", "plateau") else pytest.mark.slow)
        for name in sorted(set(SCHEDULES) - TOTAL_STEPS_SCHEDULES)
    ],
)
@pytest.mark.few(1)
def test_a_schedule_without_an_end_goes_on_and_it_is_written_down(name: str, dataset: Path, tmp_path: Path) -> None:
    for steps in (10, 15, 20):
        said = Listening()
        run(dataset, tmp_path, scheduled(name, max_steps=steps), reporter=said)
    assert "training: resuming after step 15; changed: training.max_steps 15 -> 20" in said.lines
    run(dataset, tmp_path / "straight", scheduled(name, max_steps=20))
    assert result(tmp_path) == result(tmp_path / "straight")
    changes = ["after update 10: training.max_steps 10 -> 15", "after update 15: training.max_steps 15 -> 20"]
    assert open_artifact(tmp_path / "model").figures["changed_during_training"] == changes
    assert [note for note in read_run(tmp_path, "x").notes if "training.max_steps 10 -> 15" in note]
    assert "changed_during_training" not in open_artifact(tmp_path / "straight" / "model").figures
    assert not read_run(tmp_path / "straight", "x").notes


@pytest.mark.parametrize("name", sorted(TOTAL_STEPS_SCHEDULES))
@pytest.mark.parametrize("steps", [8, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.few(1)
def test_a_schedule_with_an_end_is_not_given_another(name: str, steps: int, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, scheduled(name), reporter=SignalAt(6, signal.SIGTERM))
    before = everything(tmp_path)
    with pytest.raises(
        RecipeError, match=rf"(?s)6 of 10 updates of a {name} .*training.max_steps = 6.*init_from.*move the folder"
    ):
        run(dataset, tmp_path, scheduled(name, max_steps=steps))
    assert everything(tmp_path) == before
    run(dataset, tmp_path, scheduled(name))
    run(dataset, tmp_path / "straight", scheduled(name))
    assert result(tmp_path) == result(tmp_path / "straight")
    said = Listening()
    with pytest.raises(RecipeError, match="10 of 10 updates"):
        run(dataset, tmp_path, scheduled(name, max_steps=20), reporter=said)
    assert not any("continues" in line for line in said.lines)


def test_a_training_under_way_is_published_as_it_is_and_still_ends_as_planned(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, scheduled("cosine"), reporter=SignalAt(6, signal.SIGTERM))
    run(dataset, tmp_path, scheduled("cosine", max_steps=6))
    figures = open_artifact(tmp_path / "model").figures
    assert (figures["updates"], figures["steps"]) == (6, [6])
    assert figures["changed_during_training"] == ["after update 6: training.max_steps 10 -> 6"]
    run(dataset, tmp_path, scheduled("cosine"))
    run(dataset, tmp_path / "straight", scheduled("cosine"))
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == (
        tmp_path / "straight" / "model" / "model.safetensors"
    ).read_bytes()
    assert "changed_during_training" not in open_artifact(tmp_path / "model").figures


def test_the_remedy_of_a_training_that_cannot_go_on_works(dataset: Path, tmp_path: Path) -> None:
    """It is told to publish what there is by `training.max_steps`, whatever the schedule."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translation, "loss", Translation.loss)  # undone with it
        Spoil(6, 99)()
        with pytest.raises(DataError, match=r"training\.max_steps = 5\)"):
            run(dataset, tmp_path, scheduled("linear", max_steps=20))
    run(dataset, tmp_path, scheduled("linear", max_steps=5))
    assert open_artifact(tmp_path / "model").figures["updates"] == 5


def test_the_same_end_said_otherwise_goes_on(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "epochs", scheduled("cosine", max_steps=None, max_epochs=2))
    total = open_artifact(tmp_path / "epochs" / "model").figures["updates"]
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, scheduled("cosine", max_steps=total), reporter=SignalAt(6, signal.SIGTERM))
    run(dataset, tmp_path, scheduled("cosine", max_steps=None, max_epochs=2))
    assert open_artifact(tmp_path / "model").figures["updates"] == total


def test_patience_may_change_whatever_the_schedule(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, scheduled("cosine"), reporter=SignalAt(6, signal.SIGTERM))
    run(dataset, tmp_path, scheduled("cosine", early_stopping={"patience": 9}))
    changes = open_artifact(tmp_path / "model").figures["changed_during_training"]
    assert changes == ["after update 6: training.early_stopping.patience None -> 9"]


def as_before(out: Path) -> None:
    """Let the checkpoints be those of a version that wrote down neither the last update nor changes."""
    for file in out.glob("training/checkpoints/*/state.json"):
        document = json.loads(file.read_text())
        del document["sha256"], document["state"]["total_steps"], document["state"]["changes"]
        document["sha256"] = checkpoint.document_sha256(document)
        file.write_text(json.dumps(document))


def test_checkpoints_of_before_go_on_and_know_their_end(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(dataset, tmp_path, scheduled("cosine"), reporter=SignalAt(6, signal.SIGTERM))
    as_before(tmp_path)
    with pytest.raises(RecipeError, match="6 of 10 updates"):
        run(dataset, tmp_path, scheduled("cosine", max_steps=20))
    run(dataset, tmp_path, scheduled("cosine"))
    run(dataset, tmp_path / "straight", scheduled("cosine"))
    assert result(tmp_path) == result(tmp_path / "straight")
