"""Whatever call of a stage fails or is its last: the old artifact or the new one stands whole, and the same command
run again makes the same bytes and leaves nothing behind."""

import errno
import itertools
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import Result, tfm, write_corpora
from tests.faults import Faults, Killed, litter
from tests.tiny_stages import STAGES, done, make_runs, result_of
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.reports import training_curves

# The quick suite takes one call of so many; fewer of stages whose runs are longer.
OFTEN, SELDOM, LONGER = 7, 11, {"train": 6}
IN_OUTLINE = {"tokenize", "train"}  # stages of the quick suite
HOWS: dict[str, str | int] = {"killed": "kill", "disk full": "full", "I/O error": errno.EIO}


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    """Drawing curves and waiting for the disk take most of the time of such short runs; what is written stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(
            training_curves, "curves_svg", lambda metrics: f"<svg>{[line.get('loss') for line in metrics]}</svg>"
        )
        yield


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(folder)
    return folder


@pytest.fixture(scope="module")
def runs(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    return make_runs(corpora, tmp_path_factory.mktemp("runs") / "made")


def cases() -> Iterator[Any]:
    """Stage, with an old artifact or none, what goes wrong, and at which calls: (first, step).

    The slow suite takes every call of every stage; the quick one takes the most where a process is killed over an old
    artifact, and two stages: one that writes a file at once, and the one that trains.
    """
    kinds = itertools.product(STAGES, (True, False), HOWS)
    for number, (name, old, how) in enumerate(kinds):
        step = (OFTEN if old and how == "killed" else SELDOM) * LONGER.get(name, 1)
        mark = pytest.mark.promise("killed" if how == "killed" else "failed")
        case = f"{name}, {how}, {'with' if old else 'without'} an old one"
        if name in IN_OUTLINE:
            quick = name == "tokenize" or (old and how == "killed")
            marks = [mark] if quick else [mark, pytest.mark.slow]
            yield pytest.param(name, old, how, (1 + number % step, step), marks=marks, id=case)
        yield pytest.param(name, old, how, (1, 1), marks=[mark, pytest.mark.slow], id=f"{case}, every call")


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "old", "how", "calls"), list(cases()))
def test_whatever_goes_wrong_at_whichever_call(
    name: str,
    old: bool,
    how: str,
    calls: tuple[int, int],
    corpora: Path,
    runs: dict[tuple[str, bool], Path],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    stage, run, start = STAGES[name], tmp_path / "run", runs[name, old]
    words = stage.command(corpora, run)
    artifact = run / stage.makes

    def again() -> None:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(start, run, symlinks=True)

    again()
    before = open_artifact(artifact).fingerprint if old else None
    with Faults().patched() as counted:
        done(tfm(*words))
    expected = result_of(run, stage)
    points = range(calls[0], len(counted.calls) + 1, calls[1])
    for at in points:
        again()
        result, faults = None, Faults(at, HOWS[how])
        try:
            with faults.patched():
                result = tfm(*words)
        except Killed:
            pass
        where = f"call {at}, {faults.hit}"
        found = open_artifact(artifact).fingerprint if artifact.exists() else None
        assert found in (before, expected[0]), where
        if result is None:
            assert how == "killed", where
        else:
            is_said_and_tidied(result, faults, artifact, where, swapped=found == expected[0])
        done(tfm(*words))
        assert result_of(run, stage) == expected, where
    record_property("points", len(points))


def is_said_and_tidied(result: Result, faults: Faults, artifact: Path, where: str, *, swapped: bool) -> None:
    """How a stage ends that met an error: by the exit code, a line that names a file, and no draft left."""
    assert faults.hit is not None, where
    if result.code == 0:  # what failed was tidying up
        assert swapped, where
        return
    assert result.code in (73, 74), (where, result.err)
    assert "Traceback" not in result.err, where
    last = result.err.splitlines()[-1]
    assert re.match(r"/[^:]+: (.*No space left|.*Input/output error)", last), (where, last)
    if faults.hit not in ("unlink", "rmdir") and not swapped:
        assert litter(artifact) == [], where
