"""The texts of a model's test and validation sets are found wherever its run lies."""

from pathlib import Path

import pytest

from tests.tiny_training import run, training, write_dataset
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.manifest import Input
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.synthesis.held_out import read_held_out_texts


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was made by a path relative to the working directory, which is another one now."""
    monkeypatch.chdir(tmp_path)
    dataset = write_dataset(Path("run") / "dataset")
    run(dataset, Path("run"), training(max_steps=1))
    monkeypatch.chdir("/")
    return tmp_path / "run"


def test_a_run_that_was_moved_knows_its_validation_set(made: Path) -> None:
    line = load_dataset(made / "dataset").valid.texts()[0][0]
    for place in (made, made.parent / "moved"):
        if place != made:
            made.rename(place)
        held_out = read_held_out_texts([Input.from_artifact(place / "model")], [], NullReporter())
        assert held_out.missing == ()
        assert held_out.contains([line, "no such line"]).tolist() == [True, False]


def test_another_dataset_beside_a_model_is_not_taken_for_its_own(made: Path) -> None:
    (made / "dataset").rename(made.parent / "away")
    write_dataset(made / "dataset", num_train=20)
    held_out = read_held_out_texts([Input.from_artifact(made / "model")], [], NullReporter())
    assert held_out.missing == ("run/dataset",)
    assert not len(held_out.keys)


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_file_that_training_and_validation_data_are_cut_from_is_no_test_set(is_cleaned: bool) -> None:
    """Its training part may be translated, as for distillation; the lines of the others are left out one by one."""
    file, other = ({"fingerprint": name, "path": f"{name}.txt", "lineage": {}} for name in ("cut", "own"))
    train = {"train: cut.txt": file}
    clean = {"fingerprint": "c", "path": "clean", "lineage": {"stage": "clean", "fingerprint": "c", "inputs": train}}
    inputs = {"valid: cut.txt": file, "test: own.txt": other, **({"clean": clean} if is_cleaned else train)}
    lineage = {"stage": "preprocess", "fingerprint": "d", "inputs": inputs}
    dataset = {"fingerprint": "d", "path": "nowhere", "lineage": lineage}
    model = Input("m", None, {"stage": "train", "fingerprint": "m", "inputs": {"dataset": dataset}})
    assert read_held_out_texts([model], [], NullReporter()).files == {"own": "test: own.txt"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            '<srcset setid="x" srclang="any">\n<doc docid="1">\n<seg id="1">a dog</seg>\n</doc></srcset>\n',
            "as WMT had it",
        ),
        ('{"source": "a dog", "target": "ein Hund"}\n', "has JSON in each line"),
        ("a dog\tein Hund\n\na cat\teine Katze\n", "has a tab in each line"),
        ("a dog\na\ttab in one\n", None),
        ("", None),
    ],
)
def test_a_test_set_of_another_form_is_refused_as_none_of_its_lines_would_be_found(
    content: str, reason: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "test"
    file.write_text(content, "utf-8")
    if reason is None:
        assert read_held_out_texts([], [file], NullReporter()).contains(["a dog"]).tolist() == [bool(content)]
        return
    with pytest.raises(DataError, match=reason):
        read_held_out_texts([], [file], NullReporter())
