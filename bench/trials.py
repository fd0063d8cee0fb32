"""`python -m bench trials`: ways to search a real recipe, each with as many seconds, over several seeds."""

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from bench.options import Json

METHODS: Mapping[str, tuple[str, str]] = {
    "random": ("random", "none"),
    "tpe": ("tpe", "none"),
    "tpe, median": ("tpe", "median"),
    "tpe, hyperband": ("tpe", "hyperband"),
}
"""Each way: method and pruning."""
DEFAULT_SEARCH = Path("recipes/search/small.toml")


class SearchResult(NamedTuple):
    """The result of one search: the best validation loss, the number of trials, and of those that were finished."""

    loss: float
    trials: int
    finished: int


def trials(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A search, whose limit holds for each way.")
    ] = DEFAULT_SEARCH,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=1)] = 5,
    way: Annotated[list[str] | None, typer.Option("--way", metavar="NAME", help="Only this way; repeatable.")] = None,
    as_json: Json = None,
) -> None:
    """Random search beside TPE, pruned or not, at equal seconds."""
    ways = {name: METHODS[name] for name in way or METHODS}
    results: dict[str, list[SearchResult]] = {name: [] for name in ways}
    with TemporaryDirectory() as folder:
        for seed in range(1, seeds + 1):
            for name, (method, pruning) in ways.items():  # in turn, so that a busy hour is everybody's
                results[name].append(run_search(file, method, pruning, seed, Path(folder)))
                typer.echo(f"seed {seed}, {name}: {results[name][-1]}", err=True)
    if as_json is not None:
        as_json.write_text(
            json.dumps({name: [each._asdict() for each in some] for name, some in results.items()}) + "\n"
        )
    print("\n".join(results_table(results)))


def run_search(file: Path, method: str, pruning: str, seed: int, root: Path) -> SearchResult:
    """One search, from its beginning to its limit."""
    from tfm.pipeline.runtime.progress import NullReporter
    from tfm.pipeline.tuning.config import load_search
    from tfm.pipeline.tuning.results import summarize_trials
    from tfm.pipeline.tuning.search import open_search
    from tfm.pipeline.tuning.worker import WorkerJob, run_worker

    content = load_search(file).model_dump(mode="json", exclude_none=True)
    content |= {"base": str((file.parent / content["base"]).resolve()), "method": method, "pruning": pruning}
    content |= {"seed": seed, "name": f"{method}-{pruning}-{seed}", "keep": 1}
    copy = root / f"{content['name']}.toml"
    copy.write_text(as_toml(content), encoding="utf-8")
    search = open_search(copy, root=root / "runs")
    run_worker(WorkerJob(search.trials, search.base, search.sets, ("bench",), NullReporter()))
    trials = summarize_trials(search.trials)
    assert trials.best is not None
    assert trials.best.value is not None
    return SearchResult(trials.best.value, len(trials.trials), len(trials.ranked))


def as_toml(content: Mapping[str, object]) -> str:
    """A search as its file: keys with values, and tables within tables in one line each."""
    space = content["space"]
    assert isinstance(space, Mapping)
    keys = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
    lines = ["[search]", *(f"{key} = {_toml_value(value)}" for key, value in keys.items()), "[search.space]"]
    return "\n".join([*lines, *(f'"{key}" = {_toml_value(value)}' for key, value in space.items())]) + "\n"


def _toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{key}" = {_toml_value(each)}' for key, each in value.items()) + " }"
    return json.dumps(value)  # numbers, texts, lists, true and false are written as in JSON


def results_table(results: Mapping[str, Sequence[SearchResult]]) -> list[str]:
    """One row a way: the best loss over seeds, and how many trials there were time for."""
    rows = [f"{'':16}{'best loss':>10}{'lowest':>10}{'highest':>10}{'trials':>8}{'finished':>10}"]
    for name, seed_results in results.items():
        losses = [each.loss for each in seed_results]
        middle = f"{statistics.fmean(losses):10.4f}{min(losses):10.4f}{max(losses):10.4f}"
        counts = [statistics.fmean(each[index] for each in seed_results) for index in (1, 2)]
        rows.append(f"{name:16}{middle}{counts[0]:8.1f}{counts[1]:10.1f}")
    return rows
