"""Curricula of learning to execute (Zaremba and Sutskever 2014): an LSTM reads programs and writes what they print."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.runs import read_score, run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRATEGIES = ("baseline", "naive", "mixed", "combined")
SIZES = ((1, 1), (2, 1), (1, 2), (2, 2))


def recipe(strategy: str) -> str:
    """The recipe of a strategy."""
    return f"recipes/claims/curriculum-{strategy}.toml"


def measure(sets: Sequence[str] = ()) -> Found:
    """Outputs that are wholly right, in percent, by strategy and (digits, nesting) of the programs; and of validation,
    whose programs are the largest, the share of characters predicted rightly after the right ones.
    """
    exact: dict[str, list[float]] = {}
    characters: dict[str, float] = {}
    for strategy in STRATEGIES:
        run = run_recipe(recipe(strategy), "lstm", *sets)
        scores = exact_by_test(run)
        exact[strategy] = [scores[f"digits_{digits}_nested_{nesting}"] for digits, nesting in SIZES]
        characters[strategy] = 100 * read_score(run, "valid.accuracy")
    return {"sizes": [list(size) for size in SIZES], "exact": exact, "characters": characters}


def exact_by_test(run: Path) -> dict[str, float]:
    """The exact match of every test set of a run, by its name."""
    first = json.loads((run / "scores" / "scores.json").read_text("utf-8"))
    tests = {first["split"]: first, **first["others"]}
    return {name: float(each["metrics"]["exact_match"]["score"]) for name, each in tests.items()}


def size_label(digits: int, nesting: int) -> str:
    """Say how large the programs are."""
    return f"{digits} digit{'s' * (digits > 1)}, {nesting} operation{'s' * (nesting > 1)}"


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {
        f"{strategy}, {size_label(*size)}": f"{value:.1f} %"
        for strategy, values in data["exact"].items()
        for size, value in zip(data["sizes"], values, strict=True)
    }
    return texts | {f"characters of {strategy}": f"{value:.1f} %" for strategy, value in data["characters"].items()}


def draw(data: Found) -> "Figure":
    """Bars of exact outputs for each strategy, by size of the programs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(data["exact"])
    for index, (strategy, values) in enumerate(data["exact"].items()):
        axes.bar([number + index * width for number in range(len(values))], values, width, label=strategy)
    labels = [size_label(*size) for size in data["sizes"]]
    axes.set_xticks([number + 1.5 * width for number in range(len(labels))], labels)
    axes.set_title("programs whose output is right, %", loc="left")
    axes.grid(alpha=0.25, axis="y")
    axes.legend(frameon=False, ncols=2)
    return figure


CLAIM = Claim("a curriculum that mixes difficulties helps an LSTM to learn to execute", measure, figures, draw)
