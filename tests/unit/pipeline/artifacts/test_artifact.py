"""Artifacts: whole or not there at all, and made again when and only when something changed."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_artifact import around, make, plan_of
from tfm.pipeline.artifacts.artifact import (
    Input,
    Plan,
    inspect_artifact,
    is_fresh,
    open_artifact,
    publish,
    stale_reason,
)
from tfm.pipeline.errors import DataError, WriteError
from tfm.pipeline.runtime.progress import NullReporter


class Lines(NullReporter):
    """A reporter that remembers its lines."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def line(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "thing"


def test_a_published_artifact_is_whole_and_says_how_it_was_made(folder: Path) -> None:
    make(plan_of(folder, size=(1, 2)))
    made = open_artifact(folder, "first")
    assert sorted(made.files) == ["a.txt", "sub/b.bin"]
    assert made.files["a.txt"].sha256 == hashlib.sha256(b"old").hexdigest()
    assert made.config == {"size": [1, 2]}
    assert made.figures == {"loss": "nan"}
    assert made.command == ["tfm", "make", "\udcff"]
    assert made.provenance["versions"]["python"] == sys.version.split()[0]
    assert made.provenance["versions"]["torch"] is not None
    assert made.provenance["hardware"]["cpus"] >= 1
    assert not folder.is_symlink()
    assert (folder / "sub" / "b.bin").stat().st_size == 1000
    assert around(folder) == set()


def test_publishing_again_leaves_only_the_new(folder: Path) -> None:
    for text in ("old", "new", "newer"):
        make(plan_of(folder), text)
        assert (folder / "a.txt").read_text() == text
    assert around(folder) == set()


def test_an_error_while_making_changes_nothing(folder: Path) -> None:
    def fail() -> None:
        with publish(plan_of(folder, a=1), command=[]) as draft:
            (draft.folder / "a.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert os.listdir(folder.parent) == [".thing.lock"]
    make(plan_of(folder))
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert open_artifact(folder).config == {}
    assert around(folder) == set()


def test_stale_says_what_changed(tmp_path: Path, folder: Path) -> None:
    raw = tmp_path / "raw.txt"
    raw.write_text("text")
    one = {"raw": Input.from_file(raw)}
    plan = plan_of(folder, inputs=one, model={"dim": 8, "layers": 2})
    assert stale_reason(plan) == "not made yet"
    make(plan)
    assert stale_reason(plan) is None
    assert (
        stale_reason(plan_of(folder, inputs=one, model={"dim": 8, "layers": 3}))
        == "config changed: model.layers 2 -> 3"
    )
    assert stale_reason(plan_of(folder, inputs={}, model=plan.config["model"])) == "input raw is gone"
    two = one | {"more": Input.from_value("generated")}
    assert stale_reason(plan_of(folder, inputs=two, model=plan.config["model"])) == "input more is new"
    assert stale_reason(plan_of(folder, inputs=one, seed=2, model=plan.config["model"])) == "seed changed: 1 -> 2"
    raw.write_text("another")
    changed = {"raw": Input.from_file(raw)}
    assert stale_reason(plan_of(folder, inputs=changed, model=plan.config["model"])) == "input raw changed"
    assert stale_reason(plan_of(folder, "second", inputs=one, model=plan.config["model"])) == "'first' made it"


def test_stale_names_the_key_of_one_of_several_objects(folder: Path) -> None:
    def plan(*tags: str | None) -> Plan:
        return plan_of(folder, data={"train": [{"source": "a.en" * 20, "target": "a.de", "tag": tag} for tag in tags]})

    make(plan(None, "<BT>"))
    assert stale_reason(plan(None, "<BT>")) is None
    assert stale_reason(plan(None, "<S>")) == "config changed: data.train.1.tag '<BT>' -> '<S>'"
    assert str(stale_reason(plan("<BT>"))).startswith("config changed: data.train [{")


def test_fresh_is_said_and_seen_by_make(folder: Path) -> None:
    plan, lines = plan_of(folder), Lines()
    assert not is_fresh(plan, lines)
    make(plan)
    os.utime(folder / "manifest.json", (1, 1))
    assert is_fresh(plan, lines)
    assert (folder / "manifest.json").stat().st_mtime > 1
    assert lines.said == ["thing: not made yet", f"thing: up to date, nothing to do ({folder})"]


def test_lineage_leads_back_to_the_raw_text(tmp_path: Path) -> None:
    raw = tmp_path / "raw.txt"
    raw.write_text("text")
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    make(plan_of(first, inputs={"corpus": Input.from_file(raw)}))
    make(plan_of(second, "second", inputs={"one": Input.from_artifact(first, "first")}))
    make(plan_of(third, "third", inputs={"two": Input.from_artifact(second)}))
    shutil.rmtree(first.resolve())
    report = inspect_artifact(third)
    two = report["inputs"]["two"]
    assert two["fingerprint"] == open_artifact(second).fingerprint
    one = two["lineage"]["inputs"]["one"]
    assert one["lineage"]["stage"] == "first"
    assert one["lineage"]["inputs"]["corpus"] == {
        "fingerprint": hashlib.sha256(b"text").hexdigest(),
        "path": str(raw),
        "lineage": {},
    }
    json.dumps(report)


def test_fingerprints_depend_on_all_that_makes_a_result_and_on_nothing_else(tmp_path: Path) -> None:
    def print_of(name: str, text: str = "x", **kind: Any) -> str:
        make(plan_of(tmp_path / name, **kind), text)
        return open_artifact(tmp_path / name).fingerprint

    same = print_of("a", v=1)
    assert same == print_of("b", v=1)
    others = [
        print_of("c", v=2),
        print_of("d", v=1, seed=2),
        print_of("e", "y", v=1),
        print_of("f", v=1, inputs={"i": Input.from_value("z")}),
        print_of("g", v=1, stage="other"),
    ]
    assert len({same, *others}) == 6


def test_what_is_not_ours_is_never_replaced(folder: Path, tmp_path: Path) -> None:
    def refused(reason: str) -> None:
        before = sorted(folder.parent.rglob("*"))
        with pytest.raises(WriteError, match=reason), publish(plan_of(folder), command=[]):
            pytest.fail("began to work")
        assert [path for path in sorted(folder.parent.rglob("*")) if path.name != ".thing.lock"] == [
            path for path in before if path.name != ".thing.lock"
        ]

    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("precious")
    refused("files that tfm did not write")
    shutil.rmtree(folder)
    folder.write_text("a file")
    refused("is a file")
    folder.unlink()
    folder.symlink_to(tmp_path)
    refused("link that tfm did not make")
    folder.unlink()
    make(plan_of(folder, "model"))
    refused("was made by 'model'")
    shutil.rmtree(folder)
    make(plan_of(folder))
    for name in ("notes.txt", "sub/notes.txt"):
        (folder / name).write_text("precious")
        refused(f"'{name}', which tfm did not write")
        (folder / name).unlink()
    (folder / "link").symlink_to(tmp_path)
    refused("'link', which tfm did not write")
    (folder / "link").unlink()
    (folder / "manifest.json").rename(tmp_path / "manifest.json")
    refused(r"files that tfm did not write \(there is no manifest.json of tfm\); move it away")
    (folder / "manifest.json").write_text('{"name": "an application of the web"}')
    refused("files that tfm did not write")
    (tmp_path / "manifest.json").rename(folder / "manifest.json")
    make(plan_of(folder), "new")
    assert open_artifact(folder).files["a.txt"].size == 3
    assert around(folder) == set()


def test_what_a_user_puts_there_while_the_work_goes_on_is_not_replaced_either(folder: Path) -> None:
    make(plan_of(folder))
    with (
        pytest.raises(WriteError, match=r"'notes\.txt', which tfm did not write"),
        publish(plan_of(folder, n=2), command=[]),
    ):
        (folder / "notes.txt").write_text("precious")
    assert (folder / "notes.txt").read_text() == "precious"
    assert around(folder) == set()


def test_what_is_not_ours_is_refused_before_anything_is_said_of_it(folder: Path) -> None:
    lines = Lines()
    folder.parent.mkdir(parents=True)
    folder.write_text("of a user", "utf-8")
    with pytest.raises(WriteError, match="is a file"):
        is_fresh(plan_of(folder), lines)
    folder.unlink()
    folder.mkdir()
    (folder / "notes.txt").write_text("of a user", "utf-8")
    with pytest.raises(WriteError, match="files that tfm did not write"):
        is_fresh(plan_of(folder), lines)
    assert lines.said == []


def test_an_empty_folder_may_be_replaced(folder: Path) -> None:
    folder.mkdir(parents=True)
    assert stale_reason(plan_of(folder)) == "not made yet"
    make(plan_of(folder))
    open_artifact(folder)


def test_a_copy_of_an_artifact_is_one(folder: Path, tmp_path: Path) -> None:
    make(plan_of(folder))
    shutil.copytree(folder, tmp_path / "copy")
    assert open_artifact(tmp_path / "copy").fingerprint == open_artifact(folder).fingerprint
    assert stale_reason(plan_of(tmp_path / "copy")) is None


def test_a_place_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match="cannot be written"), publish(plan_of(tmp_path / "file" / "x"), command=[]):
        pytest.fail("began to work")


@pytest.mark.parametrize("wanted", ["second", ("second", "third")])
def test_another_stage_s_artifact_is_refused(folder: Path, wanted: str | tuple[str, ...]) -> None:
    make(plan_of(folder))
    with pytest.raises(DataError, match="was made by 'first'"):
        open_artifact(folder, wanted)


def test_what_is_no_artifact_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, reason in {"absent": "there is nothing here", "": "not an artifact", "file": "not an artifact"}.items():
        with pytest.raises(DataError, match=reason):
            open_artifact(tmp_path / place)


def test_a_link_in_a_draft_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="link"), publish(plan_of(folder), command=[]) as draft:
        (draft.folder / "x").symlink_to(tmp_path)
    assert not folder.exists()
