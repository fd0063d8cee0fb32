"""Manifests of others: what none of ours says is refused, whatever its checksums."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_artifact import make, plan_of, rewritten
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import DataError

pytestmark = pytest.mark.promise("hostile")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "thing"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gone", "there is nothing here"),
        ("folder", "is not an artifact of tfm (it has no manifest.json)"),
        ("text", "is not an artifact of tfm (it is a file)"),
        ("r.toml", "is not an artifact of tfm (it is a recipe: give the folder of its run, such as runs/NAME)"),
    ],
)
def test_without_a_manifest_there_is_no_artifact(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "folder" / "model").mkdir(parents=True)
    (tmp_path / "text").touch()
    (tmp_path / "r.toml").touch()
    with pytest.raises(DataError) as caught:
        open_artifact(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {problem}"


def test_folders_that_cannot_be_read_hold_nothing(tmp_path: Path) -> None:
    make(plan_of(tmp_path / "closed" / "thing"))
    (tmp_path / "closed").chmod(0)
    try:
        with pytest.raises(DataError, match="is not an artifact of tfm"):
            open_artifact(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_a_folder_of_artifacts_names_them(folder: Path) -> None:
    make(plan_of(folder))
    with pytest.raises(DataError) as caught:
        open_artifact(folder.parent)
    assert str(caught.value).endswith(f"(it has no manifest.json); it holds {folder}")
    for number in range(9):
        make(plan_of(folder.with_name(f"a\x07{number}")))
    with pytest.raises(DataError) as caught:
        open_artifact(folder.parent)
    names = ", ".join(f"{folder.parent}/a\\x07{number}" for number in range(6))
    assert str(caught.value).endswith(f"; it holds {names}, ...")


ENTRY = {"size": 0, "sha256": "0" * 64}


@pytest.mark.parametrize(
    "changes",
    [
        *(
            {"files": {name: ENTRY}}
            for name in ("/etc/passwd", "../x", "a/../../x", "", "a//b", "manifest.json", "a\\b")
        ),
        {"files": {"a.txt": {"size": -1, "sha256": "0" * 64}}},
        {"files": {"a.txt": {"size": True, "sha256": "0" * 64}}},
        {"files": {"a.txt": {"size": 3, "sha256": "zz"}}},
        {"files": []},
        {"files": {"a.txt": 3}},
        {"tfm_format": 2},
        {"tfm_format": None},
        {"seed": "1"},
        {"stage": None},
        {"command": [1]},
        {"inputs": {"x": {"fingerprint": 3, "path": None, "lineage": {}}}},
        {"inputs": {"x": {"fingerprint": "f", "path": 3, "lineage": {}}}},
        {"fingerprint": "0" * 64},
        {"config": 3},
    ],
    ids=str,
)
def test_a_hostile_manifest_is_refused(folder: Path, changes: dict[str, Any]) -> None:
    make(plan_of(folder))
    rewritten(folder)
    open_artifact(folder)
    rewritten(folder, **changes)
    with pytest.raises(DataError, match=r"manifest\.json: "):
        open_artifact(folder)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 200_000,
        b"{}",
        b"[]",
        b"3",
        b"9" * 10_000,
        b"\xff\xfe",
        b'{"tfm_format": 1}',
        b'{"tfm_format":' * 90_000,
    ],
    ids=lambda data: repr(data[:12]),
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(data)
    with pytest.raises(DataError, match=r"manifest\.json: "):
        open_artifact(tmp_path)


def test_a_giant_manifest_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "manifest.json", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(DataError, match="larger than any file that tfm reads here"):
        open_artifact(tmp_path)


@given(st.binary(max_size=300))
def test_any_bytes_for_a_manifest_give_an_error_of_ours(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "manifest.json").write_bytes(data)
    with pytest.raises(DataError):
        open_artifact(folder)
