"""Regret of searches: problems whose best is where it is said to be, curves recomputed, table and figure."""

import json
from itertools import accumulate, product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.search import PROBLEMS, draw_regrets, quartiles, regret_table, regrets
from tfm.pipeline.tuning.samplers.draws import trial_generator

FOUND = {"small": {"random": [[2.0, 1.0], [4.0, 3.0], [9.0, 5.0]], "tpe": [[2.0, 0.0], [4.0, 3.0]]}}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_best_is_where_it_is_said_to_be_and_nowhere_else_is_better(name: str) -> None:
    problem = PROBLEMS[name]
    assert problem.figure([0.0] * problem.keys) == 0
    steps = [each / 15 for each in range(-15, 16, 3)]
    for u in product(steps, repeat=2):
        rest = [u[1]] * (problem.keys - 1)
        assert problem.figure([u[0], *rest]) >= 0
        assert (problem.figure([u[0], *rest]) > 0) == (u[0] != 0 or (any(rest) and name != "one key of ten"))


def test_the_figures_of_the_problems_are_their_formulas() -> None:
    u = np.array([0.2, -0.4, 0.6, 0.0])
    squares = float(np.mean(u**2))
    assert PROBLEMS["separable"].figure(u.tolist()) == pytest.approx(squares)
    assert PROBLEMS["interacting"].figure(u.tolist()) == pytest.approx(squares + 10 * np.mean(np.diff(u) ** 2))
    assert PROBLEMS["one key of ten"].figure(u.tolist()) == pytest.approx(0.04)
    assert PROBLEMS["two valleys"].figure([0.7] * 4) == pytest.approx(0.05)
    assert PROBLEMS["two valleys"].figure([0.01] * 4) == pytest.approx(0.0004)


def test_the_regret_of_a_grid_is_that_of_its_configurations_in_order() -> None:
    draws = trial_generator(3, 0, "small")
    best = [int(draws.integers(0, 8)) for _ in range(2)]
    figures = []
    for places in product(range(8), repeat=2):
        one, other = ((place - at) / 7 for place, at in zip(places, best, strict=True))
        figures.append((one**2 + other**2) / 2 + 10 * (one - other) ** 2)
    assert regrets("small", "grid", 3, 64) == pytest.approx(list(accumulate(figures, min)))


def test_noise_is_seen_by_the_search_and_not_by_the_regret() -> None:
    found = regrets("noisy", "random", 1, 30)
    assert any(later > earlier for earlier, later in zip(found, found[1:], strict=False))  # what looked better was not
    steps = {round(each * 4 * 15**2, 6) for each in found}
    assert all(each == int(each) for each in steps)  # mean of squares of 15ths: without noise


def test_the_table_has_quartiles_and_pairs_of_the_same_seed() -> None:
    assert quartiles([1.0, 3.0, 5.0]) == pytest.approx(np.percentile([1.0, 3.0, 5.0], [25, 50, 75]))
    columns, rows = regret_table(FOUND)
    assert columns[-1] == "better : worse"
    assert rows == [
        ["small", "random", "3.0000", "2.0000", "4.0000", 3, "–"],
        ["small", "tpe", "1.5000", "0.7500", "2.2500", 2, "1 : 0"],
    ]


def test_the_figure_has_every_problem_and_method_and_is_the_same_each_time(tmp_path: Path) -> None:
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        draw_regrets(FOUND, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    text = "".join(ElementTree.parse(files[0]).getroot().itertext())
    assert all(word in text for word in ("small", "random", "tpe", "trials", "regret"))


def test_the_bench_runs_and_keeps_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    words = ["search", "--trials", "5", "--seeds", "2", "--gp-seeds", "0", "--json", str(file)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())["found"]
    assert found.keys() == PROBLEMS.keys()
    assert all({*methods} == {"random", "window", "evolution", "tpe"} for methods in found.values())
    assert all(len(curve) == 5 for methods in found.values() for curves in methods.values() for curve in curves)
    assert CliRunner().invoke(app, ["search", "--plot", "x.pdf"]).exit_code == 2
