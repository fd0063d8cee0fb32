"""Credentials on a command line are in nothing that is written or printed, and workers get them out of sight."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.cli.user import tfm, write_lines
from tfm.cli.app import _resume_hint, app
from tfm.cli.commands.recipes.search import _worker_arguments
from tfm.data.credentials import redact_command_line
from tfm.pipeline.artifacts.artifact import open_artifact

TYPED = (
    *("--storage", "postgresql://user:hush@host/db", "--set", "a.password=hush", "https://hush@host/x?sig=hush"),
    "hf_hushhushhushhushhush",
)


def everything_below(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def test_no_artifact_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = write_lines(tmp_path / "texts", ["a b c d", "a b"])
    monkeypatch.setattr(sys, "argv", ["tfm", *TYPED])
    words = ("tokenize", texts, "--kind", "word", "--vocab-size", "20", "--out", tmp_path / "out")
    assert tfm(*words).code == 0
    assert b"hush" not in everything_below(tmp_path)
    assert open_artifact(tmp_path / "out").command[:3] == ["tfm", "--storage", "postgresql://***@host/db"]
    shown = tfm("inspect", tmp_path / "out").out + tfm("inspect", tmp_path / "out", "--json").out
    assert "***@host/db" in shown
    assert "hush" not in shown


def test_the_command_to_repeat_is_printed_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tfm", *TYPED])
    assert "hush" not in _resume_hint()
    assert "not printed" in _resume_hint()
    monkeypatch.setattr(sys, "argv", ["tfm", "train"])
    assert _resume_hint() == ":\n  tfm train"


def test_an_error_does_not_name_them() -> None:
    for words in (
        ("inspect", "https://user:hush@host/x"),
        ("evaluate", "--hypotheses", "https://user:hush@host/x", "--reference", "https://host/?token=hush"),
        ("recipe", "none.toml", "--set", "evaluation.secret=hush"),
        ("translate", "s3://key:hush@bucket/model", "text"),
    ):
        done = tfm(*words)
        assert done.code != 0
        assert "hush" not in done.out + done.err, words


def test_no_option_of_ours_looks_like_one() -> None:
    def options(command: object) -> Iterator[str]:
        for each in getattr(command, "params", ()):
            yield from (name for name in each.opts if name.startswith("--"))
        for each in getattr(command, "commands", {}).values():
            yield from options(each)

    known = set(options(typer.main.get_command(app)))
    assert "--batch-tokens" in known
    for name in known:
        assert redact_command_line([name, "1", f"{name}=1"]) == [name, "1", f"{name}=1"]


def test_workers_get_a_storage_from_the_environment() -> None:
    words = ["search", "a.toml", "--storage", "x://u:hush@h/d", "--workers", "2", "--set", "a=b"]
    assert _worker_arguments(words) == ["search", "a.toml", "--set", "a=b"]
    assert _worker_arguments(["search", "--storage=x://u:hush@h/d", "--workers=2"]) == ["search"]


@pytest.mark.slow
def test_a_search_with_a_password_in_its_storage(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """SQLite ignores a parameter of its URI that it does not know."""
    space = '[search.space]\n"training.schedule.peak" = { values = [0.001, 0.01] }\n'
    Path("s.toml").write_text(f'[search]\nbase = "tiny.toml"\nmethod = "grid"\n{space}', "utf-8")
    words = ["search", "s.toml", "--workers", "2", "--storage", "sqlite:///file:t.db?uri=true&password=hush"]
    monkeypatch.setenv("TFM_STORAGE", "")  # what the command sets is taken back
    monkeypatch.setattr(sys, "argv", ["tfm", *words])
    done = tfm(*words)
    assert done.code == 0, done.err
    assert Path("t.db").exists()
    assert b"hush" not in everything_below(Path())
    assert "hush" not in done.out + done.err + "".join(capfd.readouterr())
    assert open_artifact(Path("runs/s/search")).command[-1].endswith("password=***")
