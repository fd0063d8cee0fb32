"""Trained models of the claims: made by `tfm run`, which skips what is there, and read.

A model computes with one thread, and as many are trained at a time as there are cores: what comes out depends on
neither their number nor their order.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from bench.processes import ROOT, run_tfm
from bench.report import table_reporter

RUNS_FOLDER = Path("runs")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}

Result = TypeVar("Result")


def run_recipe(recipe: str, variant: str, *sets: str) -> Path:
    """Run a recipe with some settings; what is up to date is not made again.

    Args:
        recipe: its file, from the top of the repository.
        variant: what tells this run from others of the recipe, for its name.
        sets: settings, KEY=VALUE.

    Returns:
        The folder of the run.
    """
    name = f"claim-{Path(recipe).stem}-{variant}"
    words = [word for setting in (*sets, f"name={name}") for word in ("--set", setting)]
    process = run_tfm("run", ROOT / recipe, *words, variables=ONE_THREAD)
    table_reporter().line(f"{name}: {process.seconds:.0f} s")
    return RUNS_FOLDER / name


def map_runs(function: Callable[..., Result], points: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], Result]:
    """The result of function(*point) by point, where the function runs a recipe; a core computes each."""
    from tfm.pipeline.runtime.cpu import num_processors

    with ThreadPoolExecutor(num_processors()) as pool:
        return dict(zip(points, pool.map(lambda point: function(*point), points), strict=True))


def read_score(run: Path, figure: str) -> float:
    """A figure of a run, such as test.bleu."""
    import tfm

    return float(tfm.read_run(run).figures[figure].score)
