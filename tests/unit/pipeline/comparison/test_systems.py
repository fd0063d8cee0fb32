"""What systems said: read from their runs, verified, and only held against each other on the same texts."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_artifact import rewritten, signed
from tests.tiny_runs import add_texts, make_run
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.comparison.systems import (
    NO_TRANSLATIONS_REASON,
    OTHER_TRANSLATIONS_REASON,
    OTHER_VERSION_REASON,
    SegmentValues,
    read_system,
    text_mismatch_reason,
)
from tfm.pipeline.errors import DataError
from tfm.pipeline.scoring.evaluation.segments import Segments

ARABIC = Segments("عربي", ["Ein Hund.", ""], ["كلب", ""], [["كلب يجري", ""], ["الكلب", ""]])
MAIN = Segments("main", ["A", "B", "C"], ["EINS", "", "drei"], [["EINS", "ZWEI", "drei"]])


def noted(**changes: Any) -> list[dict[str, Any]]:
    entry = {"split": "main", "line": 1, "log_prob": -2.5, "pieces": 3, "words": 2, "external": {"länge": 7}}
    empty = {"split": "main", "log_prob": None, "pieces": None, "words": None, "external": {}}
    return [entry | changes, empty | {"line": 2}, empty | {"line": 3}]


def test_what_a_run_holds_is_read_the_main_test_set_first(tmp_path: Path) -> None:
    also = replace(ARABIC, name="a")
    tests = {each.name: each for each in (MAIN, ARABIC, also)}
    run = add_texts(make_run(tmp_path / "run"), tests, noted=noted())
    system = read_system(run, "mine")
    assert system.name == "mine"
    assert system.tests == tests
    assert list(system.tests) == ["main", ARABIC.name, "a"]
    assert system.figures == {
        "main": [SegmentValues(-2.5, 3, 2, {"länge": 7.0}), *[SegmentValues(None, None, None, {})] * 2]
    }
    assert system.notes == []


def test_figures_of_other_lines_than_the_test_set_has_are_an_error(tmp_path: Path) -> None:
    run = add_texts(make_run(tmp_path / "run"), {"main": MAIN}, noted=noted()[:2])
    with pytest.raises(DataError, match=r"segments\.jsonl: has 2 lines of main, which has 3"):
        read_system(run, "run")


def test_what_a_run_lacks_is_said(tmp_path: Path) -> None:
    bare = read_system(make_run(tmp_path / "bare"), "bare")
    assert (bare.tests, bare.figures, bare.notes) == ({}, {}, [NO_TRANSLATIONS_REASON])
    run = add_texts(make_run(tmp_path / "run"), {"main": MAIN})
    assert read_system(run, "run").notes == []
    found = open_artifact(run / "scores")
    rewritten(run / "scores", config={"evaluation": {"metrics": ["of another time"]}})
    assert read_system(run, "run").notes == [OTHER_VERSION_REASON]
    rewritten(run / "scores", config=found.config)
    rewritten(run / "translations", config={"decoding": {"beam": 9}})
    assert read_system(run, "run").notes == [OTHER_TRANSLATIONS_REASON]
    other = make_run(tmp_path / "other", seed=2)
    shutil.rmtree(run / "model")
    shutil.copytree(other / "model", run / "model")
    assert read_system(run, "run").notes == [NO_TRANSLATIONS_REASON]


def test_damage_is_an_error(tmp_path: Path) -> None:
    run = add_texts(make_run(tmp_path / "run"), {"main": MAIN})
    (run / "translations" / "main.txt").write_text("EINS\n\nvier\n")
    with pytest.raises(DataError, match=r"main\.txt.*changed"):
        read_system(run, "run")
    (run / "translations" / "main.txt").write_text("EINS\n")
    signed(run / "translations")
    shutil.rmtree(run / "scores")  # which would be of others
    with pytest.raises(DataError, match="1 line, but"):
        read_system(run, "run")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"line": 2}, "line 1 of main is missing"),
        ({"log_prob": "x"}, "could not convert"),
        ({"external": {"comet": float("nan")}}, "not finite"),
        ({"external": None}, "NoneType"),
        ({"log_prob": float("nan")}, "not finite"),
        ({"log_prob": float("-inf")}, "not finite"),
        ({"pieces": -1}, "a count below 0"),
    ],
)
def test_figures_of_segments_are_checked(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    run = add_texts(make_run(tmp_path / "run"), {"main": MAIN}, noted=noted(**changes))
    with pytest.raises(DataError, match=rf"segments\.jsonl, line 1: .*{said}"):
        read_system(run, "run")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Segments("main", MAIN.sources, ["x", "y", "z"], MAIN.references), None),
        (Segments("main", None, MAIN.hypotheses, MAIN.references), None),
        (Segments("main", ["A"], ["x"], [["EINS"]]), "main: 3 segments, not 1"),
        (Segments("main", MAIN.sources, MAIN.hypotheses, [["EINS", "ZWEI", "Drei"]]), "reference of line 3"),
        (Segments("main", ["A", "b", "C"], MAIN.hypotheses, MAIN.references), "source of line 2"),
        (Segments("main", MAIN.sources, MAIN.hypotheses, [*MAIN.references] * 2), "1 reference a segment, not 2"),
    ],
)
def test_only_the_same_texts_are_compared(other: Segments, said: str | None) -> None:
    found = text_mismatch_reason(MAIN, other)
    assert found is None if said is None else found is not None and said in found


def test_images_are_told_apart_by_their_contents() -> None:
    """Captions of other images with the same names do not compare, and of the same images under other names do."""
    named = replace(MAIN, sources_are_names=True)
    known, renamed = (replace(named, image_contents="one", sources=names) for names in (named.sources, ["x", "y", "z"]))
    assert text_mismatch_reason(known, renamed) is None
    assert text_mismatch_reason(known, replace(known, image_contents="other")) == "main: its images are others"
    assert text_mismatch_reason(known, named) is None  # made before contents were noted
    assert "source of line 1" in (text_mismatch_reason(renamed, named) or "")
