"""The languages in dataset.json: read as they were written, and not believed where they do not fit the rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tiny_training import write_dataset
from tfm.data.dataset.directions import Direction, rows_by_direction, target_languages
from tfm.data.dataset.metadata import DATASET_FILE
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "dataset", num_train=4)


def put(folder: Path, **content: object) -> None:
    about = json.loads((folder / DATASET_FILE).read_text("utf-8"))
    (folder / DATASET_FILE).write_text(json.dumps({**about, **content}))


def test_a_dataset_without_languages_has_no_directions(folder: Path) -> None:
    assert load_dataset(folder).directions == {}


def test_directions_are_those_of_the_rows(folder: Path) -> None:
    sizes = len(load_dataset(folder).train), len(load_dataset(folder).valid)
    put(
        folder,
        directions={"train": [["eng", "deu", 1], ["eng", "hin", sizes[0] - 1]], "valid": [["deu", "eng", sizes[1]]]},
    )
    found = load_dataset(folder).directions
    assert found["valid"] == (Direction("deu", "eng", sizes[1]),)
    assert target_languages(found["train"]) == ["deu", *["hin"] * (sizes[0] - 1)]


@pytest.mark.parametrize(
    "directions",
    [
        *(7, [], ["eng"], {"train": 1}, {"train": [["eng", "deu"]]}, {"train": ["abc"]}, {"train": [["eng", 3, 4]]}),
        *({"train": [["eng", "Deu", 4]]}, {"train": [["eng", "deu", -4]]}, {"train": [["eng", "deu", 4.0]]}),
        *({"train": [["eng", "deu", True]]}, {"train": [["eng", "deu", 4]]}, {"x": [["eng", "deu", 4]]}),
    ],
)
def test_what_is_no_direction_or_not_of_these_rows_is_refused(folder: Path, directions: object) -> None:
    put(folder, directions=directions)
    with pytest.raises(DataError, match="has no valid `directions`"):
        load_dataset(folder)


@pytest.mark.parametrize("factor", ["x", 0, -1, float("nan"), None, [2]])
def test_a_factor_that_is_none_is_refused(folder: Path, factor: object) -> None:
    rows = len(load_dataset(folder).train)
    put(folder, train_corpora=[{"rows": rows, "weight": 1.0, "factor": factor}])
    with pytest.raises(DataError, match="train_corpora"):
        load_dataset(folder)
    put(folder, train_corpora=[{"rows": rows, "weight": 1.0, "factor": 0.5}])
    assert load_dataset(folder).train.weights.tolist() == [0.5] * rows


def test_rows_of_a_direction_are_all_of_its_corpora() -> None:
    directions = [
        Direction("eng", "deu", 2),
        Direction("eng", "hin", 1),
        Direction("deu", "eng", 0),
        Direction("eng", "deu", 3),
    ]
    found = {name: rows.tolist() for name, rows in rows_by_direction(directions).items()}
    assert found == {"eng-deu": [0, 1, 3, 4, 5], "eng-hin": [2]}
    assert rows_by_direction(()) == {}


def test_rows_keep_their_texts_and_ids(folder: Path) -> None:
    whole = load_dataset(folder).valid
    rows = np.arange(len(whole))[::-2]
    part = whole.select_rows(rows)
    assert part.source.to_lists() == whole.source.to_lists(rows.tolist())
    assert part.target.to_lists() == whole.target.to_lists(rows.tolist())
    assert list(zip(*part.texts(), strict=True)) == [[*zip(*whole.texts(), strict=True)][row] for row in rows]
    assert part.further_references() == []
