"""External metrics of judged texts, from the scores of their runs."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import pytest

from tests.tiny_runs import add_texts, make_run
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.judging.recorded_metrics import read_recorded_metrics
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.score import Score

REFERENCES = ["ein Satz", "كلب يجري", "NOCH einer", "zuletzt"]
COMET = "external:comet|nrefs:1|command:comet|stat:mean"


def run(folder: Path, numbers: Mapping[str, list[float]], signature: str = COMET) -> Path:
    """A run whose evaluation noted external numbers of four segments of two test sets."""
    said = [f"{folder.name}: {text}" for text in REFERENCES]
    tests = {name: Segments(name, REFERENCES, said, [REFERENCES]) for name in ("main", "other:one")}
    noted = [
        {
            "split": test,
            "line": line + 1,
            "log_prob": None,
            "pieces": None,
            "words": None,
            "external": {name: values[line] + (test != "main") for name, values in numbers.items()},
        }
        for test in tests
        for line in range(4)
    ]
    extra = {name: Score(fmean(values), signature.replace("comet", name)) for name, values in numbers.items()}
    return add_texts(make_run(folder), tests, metrics=("chrf",), noted=noted, extra=extra)


def judged(*names: str, test: str = "main", lines: tuple[int, ...] = (1, 3)) -> dict[tuple[str, str], str]:
    return {(f"{test}:{line}", name): f"{name}: {REFERENCES[line - 1]}" for name in names for line in lines}


def test_the_numbers_of_judged_texts(tmp_path: Path) -> None:
    runs = [
        run(tmp_path / "a", {"comet": [0.5, 9, 0.7, 9]}),
        run(tmp_path / "b", {"comet": [0.1, 9, 0.3, 9]}) / "model",
    ]
    found, notes = read_recorded_metrics(runs, judged("a", "b", "not a run"))
    assert notes == []
    assert found["comet"].signature.startswith(COMET)
    assert found["comet"].by_unit == {
        ("main:1", "a"): 0.5, ("main:3", "a"): 0.7, ("main:1", "b"): 0.1, ("main:3", "b"): 0.3,
    }  # fmt: skip
    assert found["comet"].by_system == pytest.approx({"a": 0.6, "b": 0.2})
    found, _ = read_recorded_metrics(runs[:1], judged("a", test="other:one"))
    assert found["comet"].by_unit == {("other:one:1", "a"): 1.5, ("other:one:3", "a"): 1.7}
    assert read_recorded_metrics([], judged("a")) == ({}, [])


def test_less_may_be_better(tmp_path: Path) -> None:
    found, _ = read_recorded_metrics(
        [run(tmp_path / "a", {"edits": [3, 0, 5, 0]}, f"{COMET}|better:lower")], judged("a")
    )
    assert found["edits"].by_system == {"a": -4}


def test_metrics_that_not_all_have_alike_are_told(tmp_path: Path) -> None:
    numbers = [1.0, 2.0, 3.0, 4.0]
    runs = [
        run(tmp_path / "a", {"comet": numbers, "mine": numbers}),
        run(tmp_path / "b", {"comet": numbers}, f"{COMET}|x"),
    ]
    found, notes = read_recorded_metrics(runs, judged("a", "b"))
    assert found == {}
    assert notes == [f"{name}: not all runs have it, computed in the same way" for name in ("comet", "mine")]


def test_runs_whose_folders_are_called_the_same(tmp_path: Path) -> None:
    """`tfm judge make` names such runs by their paths."""
    runs = [run(tmp_path / seed / "a", {"comet": [number] * 4}) for seed, number in (("1", 0.5), ("2", 0.25))]
    texts = {("main:1", str(each)): f"a: {REFERENCES[0]}" for each in runs}
    found, _ = read_recorded_metrics(runs, texts)
    assert found["comet"].by_system == {str(runs[0]): 0.5, str(runs[1]): 0.25}
    with pytest.raises(RecipeError, match="another run is given of the system a; remove one of them"):
        read_recorded_metrics(runs, judged("a"))


def test_another_run_or_another_text_is_refused(tmp_path: Path) -> None:
    own = run(tmp_path / "a", {"comet": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(RecipeError, match="nothing of a system a was judged; judged were b, c"):
        read_recorded_metrics([own], judged("b", "c"))
    with pytest.raises(DataError, match="differs from the judged text in line 1 of main"):
        read_recorded_metrics([own], {("main:1", "a"): "another text"})
    with pytest.raises(DataError, match="noted no segments of the test set third: score it again"):
        read_recorded_metrics([own], judged("a", test="third"))
    bare = make_run(tmp_path / "bare")
    with pytest.raises(DataError, match="noted no segments of the test set main"):
        read_recorded_metrics([bare], {("main:1", "bare"): "text"})
