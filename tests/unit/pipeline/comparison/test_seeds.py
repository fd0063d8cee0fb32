"""Rows of a comparison: which runs differ in their seed alone, and what their figures come to."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiny_runs import SETTINGS, add_scores, make_run
from tfm.pipeline.comparison.runs import compare_runs
from tfm.pipeline.comparison.seeds import group_by_seed, one_row_per_run
from tfm.pipeline.reports.run_summary import read_run


def rows_of(folders: list[Path]) -> list[tuple[str, list[str]]]:
    found = group_by_seed([read_run(folder, folder.name) for folder in folders])
    return [(row.name, [run.name for run in row.runs]) for row in found]


def test_runs_that_differ_in_their_seed_alone_share_a_row(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / name, seed=seed, model={"norm": norm})
        for name, seed, norm in (("pre-1", 1, "pre"), ("post-1", 1, "post"), ("pre-2", 2, "pre"), ("post-7", 7, "post"))
    ]
    assert rows_of(runs) == [("pre", ["pre-1", "pre-2"]), ("post", ["post-1", "post-7"])]
    assert [row.seeds for row in group_by_seed([read_run(run, run.name) for run in runs])] == [[1, 2], [1, 7]]
    each = one_row_per_run([read_run(run, run.name) for run in runs])
    assert [(row.name, len(row.runs)) for row in each] == [(run.name, 1) for run in runs]


@pytest.mark.parametrize(
    "other",
    [
        {"model": {"norm": "post"}},
        {"dataset": "another"},
        {"figures": {"settings": {**SETTINGS, "threads": 1}}},
        {"seed": 1},  # a run twice says nothing of chance
    ],
)
def test_runs_that_differ_in_more_or_in_nothing_stay_apart(tmp_path: Path, other: dict[str, Any]) -> None:
    runs = [make_run(tmp_path / "a-1"), make_run(tmp_path / "a-2", **{"seed": 2, **other})]
    assert rows_of(runs) == [("a-1", ["a-1"]), ("a-2", ["a-2"])]


def test_a_copy_of_one_seed_unfolds_all_and_that_is_said(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, seed=seed) for name, seed in (("a-1", 1), ("a-2", 2), ("copy", 2))]
    found = compare_runs(runs)
    assert len(found.rows) == 3
    assert found.notes == [
        "a-2, copy have the same settings and the same seed, and are no two samples: all runs of this recipe are shown "
        "apart, without a mean over seeds; leave out all but one"
    ]
    assert compare_runs(runs[:2]).notes == []


def test_a_run_that_is_not_scored_yet_stays_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"a-{seed}", seed=seed) for seed in (1, 2, 3)]
    for run in runs[:2]:
        add_scores(run, 30.0)
    assert rows_of(runs) == [("a", ["a-1", "a-2"]), ("a-3", ["a-3"])]


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (["a-1", "a-2"], "a"),
        (["a-2", "a-1"], "a-2, a-1"),  # their numbers are not their seeds
        (["a-1", "b-2"], "a-1, b-2"),
        (["x", "y"], "x, y"),
    ],
)
def test_a_row_is_called_as_its_runs_are(tmp_path: Path, names: list[str], row: str) -> None:
    runs = [make_run(tmp_path / name, seed=seed) for seed, name in enumerate(names, 1)]
    assert [name for name, _ in rows_of(runs)] == [row]


def test_no_row_has_the_name_of_another(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"a-{seed}", seed=seed) for seed in (1, 2)]
    runs.append(make_run(tmp_path / "a", model={"norm": "post"}))
    assert [name for name, _ in rows_of(runs)] == ["a-1, a-2", "a"]


def test_a_row_has_the_mean_of_its_runs_and_their_standard_deviation(tmp_path: Path) -> None:
    losses = [1.0, 2.5, 4.0]
    runs = [make_run(tmp_path / f"a-{seed}", seed=seed, loss=loss) for seed, loss in enumerate(losses, 1)]
    (row,) = compare_runs(runs).rows
    assert row.mean("valid.loss") == pytest.approx(np.mean(losses), abs=1e-12)
    assert row.deviation("valid.loss") == pytest.approx(np.std(losses, ddof=1), abs=1e-12)
    assert row.mean("test.bleu") is None
    assert row.deviation("test.bleu") is None
    (alone,) = compare_runs(runs[:1]).rows
    assert (alone.mean("valid.loss"), alone.deviation("valid.loss")) == (1.0, None)
    endless = [*runs[:2], make_run(tmp_path / "a-4", seed=4, figures={"validation": {"loss": "inf"}})]
    (row,) = compare_runs(endless).rows
    assert (row.mean("valid.loss"), row.deviation("valid.loss")) == (math.inf, None)


def test_scores_of_several_definitions_have_no_mean_and_it_is_said(tmp_path: Path) -> None:
    runs = [
        add_scores(make_run(tmp_path / f"a-{seed}", seed=seed), 30.0 + seed, signature=f"nrefs:1|tok:{tok}")
        for seed, tok in ((1, "13a"), (2, "13a"), (3, "zh"))
    ]
    (row,) = compare_runs(runs[:2]).rows
    assert row.mean("test.bleu") == 31.5
    found = compare_runs(runs)
    (row,) = found.rows
    assert (row.mean("test.bleu"), row.deviation("test.bleu")) == (None, None)
    assert row.mean("valid.loss") is not None
    assert "a: test.bleu: no mean, as a-3 has tok:zh instead of tok:13a of a-1" in found.notes


def test_rows_are_sorted_by_their_means_and_beside_a_baseline_of_several_seeds(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / f"{norm}-{seed}", seed=seed, loss=loss, model={"norm": norm})
        for norm, losses in (("pre", (1.0, 5.0)), ("post", (2.0, 2.5)))
        for seed, loss in enumerate(losses, 1)
    ]
    found = compare_runs(runs, "loss")
    assert [row.name for row in found.rows] == ["post", "pre"]
    assert found.baseline.name == "pre"
    assert [found.config_differences(row) for row in found.rows] == [{"model.norm": "post"}, {}]
    found = compare_runs(runs, "loss", group_runs=one_row_per_run)
    assert [row.name for row in found.rows] == ["pre-1", "post-1", "post-2", "pre-2"]
    assert found.config_differences(found.rows[2]) == {"model.norm": "post", "seed": 2}


@pytest.mark.parametrize("by", ["post-1", "post-1/model", "./post-1/../post-1"])
def test_the_baseline_may_be_any_run_by_any_name(tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [Path("pre-1"), Path("post-1")]
    for norm in ("pre", "post"):
        make_run(tmp_path / f"{norm}-1", model={"norm": norm})
    found = compare_runs(names, baseline=Path(by))
    assert [row.name for row in found.rows] == ["pre-1", "post-1"]
    assert found.baseline.name == "post-1"
    assert found.config_differences(found.rows[0]) == {"model.norm": "pre"}
    assert [row.name for row in compare_runs(names[:1], baseline=Path(by)).rows] == ["post-1", "pre-1"]
