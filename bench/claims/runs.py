"""Trained models of the claims: made by `tfm run`, which skips what is there, and read."""

from pathlib import Path

from bench.processes import ROOT, run_tfm
from bench.report import table_reporter

RUNS_FOLDER = Path("runs")


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
    done = run_tfm("run", ROOT / recipe, *words)
    table_reporter().line(f"{name}: {done.seconds:.0f} s")
    return RUNS_FOLDER / name


def read_score(run: Path, figure: str) -> float:
    """A figure of a run, such as test.bleu."""
    import tfm

    return float(tfm.read_run(run).figures[figure].score)
