"""Scores of the artifact that is made again are read only from a table of such scores."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.pipeline.cleaning.previous_scores import PreviousScores

IS_NEEDED = np.array([True, False, True])
DROPPED_BY = [None, "length", None]
COLUMNS = {"dropped_by": pa.array(DROPPED_BY, pa.string()), "words": pa.array([1.0, None, 3.0])}


def read_scores(folder: Path, columns: dict[str, pa.Array]) -> np.ndarray | None:
    pq.write_table(pa.table(columns), folder / "scores.parquet")
    return PreviousScores(folder, ["length", "words"], {"words"}).read("words", IS_NEEDED)


@pytest.mark.parametrize("dropped_by", [COLUMNS["dropped_by"], COLUMNS["dropped_by"].dictionary_encode()])
def test_scores_of_the_same_pairs_are_read(dropped_by: pa.Array, tmp_path: Path) -> None:
    scores = read_scores(tmp_path, COLUMNS | {"dropped_by": dropped_by})
    assert scores is not None
    np.testing.assert_array_equal(scores, [1, np.nan, 3])


@pytest.mark.parametrize(
    "columns",
    [
        {"words": COLUMNS["words"]},
        {"dropped_by": COLUMNS["dropped_by"]},
        COLUMNS | {"words": pa.array(["1", None, "3"])},
        COLUMNS | {"words": pa.array([[1.0], None, [3.0]])},
        COLUMNS | {"dropped_by": pa.array([None, 1, None], pa.int64())},
        COLUMNS | {"dropped_by": pa.array([None, ["length"], None])},
        COLUMNS | {"dropped_by": pa.array(["length", None, None])},
        {name: column.slice(0, 2) for name, column in COLUMNS.items()},
        {name: pa.concat_arrays([column, column]) for name, column in COLUMNS.items()},
    ],
    ids=["no rule", "no score", "texts", "lists", "numbers", "names in lists", "other pairs", "fewer", "more"],
)
def test_other_tables_are_not(columns: dict[str, pa.Array], tmp_path: Path) -> None:
    assert read_scores(tmp_path, columns) is None
