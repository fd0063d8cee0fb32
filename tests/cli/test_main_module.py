"""`python -m tfm` is the `tfm` command, and empty words are answered by what is wrong with them."""

import runpy
import sys

import pytest
from typer.testing import CliRunner

from tfm.cli.app import app


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tfm", "--version"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("tfm", run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("tfm")


def test_an_empty_text_is_refused_as_one(tmp_path):
    done = CliRunner().invoke(app, ["translate", str(tmp_path), ""])
    assert done.exit_code == 2
    assert "is empty: give a file, a text, or - for stdin" in " ".join(done.output.split())


def test_an_empty_prefix_is_none(tmp_path):
    done = CliRunner().invoke(app, ["translate", str(tmp_path), "a text", "--prefix", ""])
    assert "--prefixes" not in done.output
