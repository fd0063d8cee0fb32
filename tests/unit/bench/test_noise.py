"""The table and plot of noise: means over the seeds of errors, what is lost, the same bytes for the same figures."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bench.noise
from bench.__main__ import app
from bench.noise import draw_noise, noise_table
from bench.processes import MIB, FinishedProcess

ANSWER: dict[str, Any] = {
    "figure": "accuracy",
    "scores": [[80.0, 80.0], [75.0, 76.0], [70.5, 71.0]],
    "texts": "abc",
    "parameters": 123456,
    "tokens": 21.53,
    "sentences_per_second": 1234.5,
}


def test_a_row_has_the_means_and_what_is_lost() -> None:
    head, line, row = noise_table([{**ANSWER, "name": "words", "peak": 300 * MIB}], [0.0, 0.1, 0.2])
    assert head.endswith("| accuracy, 0% | accuracy, 10% | accuracy, 20% | lost at 20% |")
    assert line.count("---") == head.count("|") - 1 == row.count("|") - 1
    assert row == "| words | 123,456 | 21.5 | 1,234 | 300 | 80.00 | 75.50 | 70.75 | 9.25 |"


def test_runs_are_read_named_compared_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def run_module(module: str, options: dict[str, Any]) -> FinishedProcess:
        asked.append(options)
        texts = {"texts": options["run"] if len(asked) == 2 else "abc"}
        return FinishedProcess(json.dumps({**ANSWER, **texts}), "", 1.0, 300 * MIB)

    monkeypatch.setattr(bench.noise, "run_module", run_module)
    plot, file = tmp_path / "noise.svg", tmp_path / "noise.json"
    words = ["noise", "runs/a", "B & co=runs/b", "--noise", "0.2", "--noise", "0.1", "--draws", "2"]
    done = CliRunner().invoke(app, [*words, "--plot", str(plot), "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert [each["run"] for each in asked] == ["runs/a", "runs/b"]
    assert asked[0]["rates"] == [0.0, 0.1, 0.2]
    assert "different test sets" in done.output
    found = json.loads(file.read_text())["found"]
    assert [each["name"] for each in found] == ["a", "B & co"]
    drawn = plot.read_text("utf-8")
    assert "B &amp; co" in drawn
    assert "characters mistyped, %" in drawn
    assert draw_noise(found, [0.0, 0.1, 0.2]) == drawn
