"""`tfm run`: the five stages of one or several recipes or seeds, or cross-validation, in one command."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.options import IO_ERROR_EXIT_CODE, ClusterAddress, Device, RecipeOverrides, command_line, reject_flags
from tfm.cli.streams import print_json
from tfm.pipeline.errors import TfmError

if TYPE_CHECKING:
    from tfm.pipeline.recipes.cross_validation import CrossValidation


def run(
    recipes: Annotated[
        list[Path], typer.Argument(metavar="RECIPE...", help="The recipe (TOML); several are run one after another.")
    ],
    keep_going: Annotated[
        bool,
        typer.Option(
            "--keep-going", help="If a recipe fails, continue with the next; the exit code is that of the first error."
        ),
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="N,N,...", help="Run each recipe with each of these seeds, as NAME-N."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            metavar="N",
            min=2,
            max=1000,
            help="Cross-validation: train once for each fold, as NAME-fold-K, without the fold, and validate on it; "
            "the test sets are not scored.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --folds: print the figures as JSON.")] = False,
    cluster: ClusterAddress = None,
    device: Device = None,
    sets: RecipeOverrides = None,
) -> None:
    """Run the five stages of a recipe; those up to date are skipped.

    The table of scores goes to stdout.
    """
    if folds is None:
        reject_flags(
            {"--json": as_json}, "it prints the figures of --folds; those of a run are in its scores/scores.json"
        )
    from tfm.cli.console import make_reporter
    from tfm.pipeline.recipes.recipe_batch import load_recipes, parse_seeds

    parsed_seeds, flags = () if seeds is None else parse_seeds(seeds), {"training.device": device}
    if folds is not None:
        _cross_validate(recipes, folds, sets or (), flags, parsed_seeds, keep_going, as_json, cluster)
        return
    loaded = load_recipes(recipes, sets or (), flags, parsed_seeds)
    reporter, scores = make_reporter(), make_reporter(tables_on_stdout=True)
    failed = _recipe_runner(cluster)(
        loaded, keep_going=keep_going, command=command_line(), reporter=reporter, scores=scores
    )
    _raise_failures(failed, len(loaded))


def _recipe_runner(cluster: str | None) -> Callable[..., dict[str, Exception]]:
    """Return the function that runs recipes: in this process, or on a cluster."""
    from tfm.pipeline.recipes.recipe_batch import run_recipes, run_recipes_on_cluster

    return run_recipes if cluster is None else partial(run_recipes_on_cluster, address=cluster)


def _raise_failures(failed: Mapping[str, Exception], num_recipes: int) -> None:
    if failed:
        error = TfmError(f"{len(failed)} of {num_recipes} recipes failed: {', '.join(failed)}")
        error.exit_code = getattr(next(iter(failed.values())), "exit_code", IO_ERROR_EXIT_CODE)
        raise error


def _cross_validate(
    files: Sequence[Path],
    folds: int,
    sets: Sequence[str],
    flags: Mapping[str, object | None],
    seeds: Sequence[int],
    keep_going: bool,
    as_json: bool,
    cluster: str | None,
) -> None:
    from tfm.cli.console import make_reporter
    from tfm.pipeline.artifacts.canonical_json import to_jsonable
    from tfm.pipeline.recipes.cross_validation import FOLD_STAGES, load_folds, read_folds
    from tfm.pipeline.runtime.torchrun import rank_and_size

    folds_by_name = load_folds(files, folds, sets, flags, seeds)
    all_folds = [fold for folds_of_recipe in folds_by_name.values() for fold in folds_of_recipe]
    failed = _recipe_runner(cluster)(
        all_folds, keep_going=keep_going, command=command_line(), reporter=make_reporter(), only=FOLD_STAGES
    )
    complete_folds = {
        name: folds_of_recipe
        for name, folds_of_recipe in folds_by_name.items()
        if not failed.keys() & {fold.name for fold in folds_of_recipe}
    }
    if rank_and_size()[0] == 0:
        fold_results = [read_folds(name, each) for name, each in complete_folds.items()]
        if as_json:
            print_json([to_jsonable(validation.as_json()) for validation in fold_results], indent=1)
        else:
            for validation in fold_results:
                make_reporter(tables_on_stdout=True).table(
                    f"{validation.name}: validation of {folds} folds", *folds_table(validation)
                )
        for validation in fold_results:
            _print_metric_definitions(validation)
    _raise_failures(failed, len(all_folds))


def folds_table(validation: "CrossValidation") -> tuple[list[str], list[list[str]]]:
    """A row a fold, then the mean ± standard deviation."""
    rows = [
        [
            str(fold.number),
            f"{fold.examples:,}",
            f"{fold.updates:,}",
            *(f"{fold.figures[name]:.4f}" for name in validation.figures),
        ]
        for fold in validation.folds
    ]
    means = [
        f"{validation.mean(name):.4f} ± {validation.deviation(name):.4f}"
        if validation.no_mean_reason(name) is None
        else "–"
        for name in validation.figures
    ]
    return ["fold", "examples", "updates", *validation.figures], [*rows, ["mean", "", "", *means]]


def _print_metric_definitions(validation: "CrossValidation") -> None:
    """The signatures of the means; and which figure has none, as its folds do not compare."""
    from tfm.cli.console import make_reporter

    for name in validation.figures:
        if (reason := validation.no_mean_reason(name)) is not None:
            make_reporter().warn(f"{validation.name}: {reason}")
        elif (signature := validation.signature(name)) is not None:
            make_reporter().line(f"  {name}: {signature}")
