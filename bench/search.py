"""`python -m bench search`: how far from the best each method of `tfm search` ends, on problems whose best is known."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import typer

from bench.options import Json

if TYPE_CHECKING:
    from tfm.pipeline.tuning.config import SearchConfig

COLORS = {
    "grid": "#999999",
    "random": "#000000",
    "window": "#e6550d",
    "evolution": "#31a354",
    "tpe": "#3182bd",
    "gp": "#756bb1",
}
"""The methods, each with its color in the figure."""
SLOW_METHOD = "gp"
Distances: TypeAlias = Sequence[float]
"""Of each key: how far its value stands from its best value, as part of the key's range, with its sign."""


@dataclass(frozen=True)
class Problem:
    """A function of ordered keys whose least figure is 0, where all distances are.

    values: how many each key has. noise: deviation of what is added to the figures that a search sees. best: the part
    of a key's range in which its best value may lie.
    """

    keys: int
    values: int
    figure: Callable[[Distances], float]
    noise: float = 0.0
    best: tuple[float, float] = (0.0, 1.0)


def separable(u: Distances) -> float:
    """mean u_k^2: the best value of a key is the same whatever the others are."""
    return statistics.fmean(each**2 for each in u)


def interacting(u: Distances) -> float:
    """mean u_k^2 + 10 mean (u_k - u_{k-1})^2: a narrow valley, along which all keys must move together."""
    return separable(u) + 10 * statistics.fmean((one - other) ** 2 for one, other in zip(u[1:], u, strict=False))


def one_matters(u: Distances) -> float:
    """u_0^2: the other keys change nothing (Bergstra and Bengio 2012)."""
    return u[0] ** 2


def two_valleys(u: Distances) -> float:
    """min(4 mean u_k^2, 0.05 + mean (u_k - 0.7)^2 / 2): the deeper valley is narrow, and the wide one leads away."""
    return min(4 * separable(u), 0.05 + separable([each - 0.7 for each in u]) / 2)


PROBLEMS: Mapping[str, Problem] = {
    "separable": Problem(4, 16, separable),
    "interacting": Problem(4, 16, interacting),
    "one key of ten": Problem(10, 16, one_matters),
    "noisy": Problem(4, 16, separable, noise=0.05),
    "two valleys": Problem(4, 16, two_valleys, best=(0.0, 0.2)),
    "small": Problem(2, 8, interacting),
}


class Quartiles(NamedTuple):
    """Quartiles of the regrets of one method over seeds."""

    lower: float
    median: float
    upper: float


def search(
    trials: Annotated[int, typer.Option("--trials", metavar="N", min=2, help="Of each search.")] = 64,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", min=2, help="Searches of each method.")] = 20,
    slow_seeds: Annotated[
        int, typer.Option("--gp-seeds", metavar="N", min=0, help="Searches of gp, which takes a second a trial.")
    ] = 5,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw regret over trials: .svg or .png.")
    ] = None,
    json: Json = None,
) -> None:
    """How far from the best a search ends.

    The samplers of `tfm search`, driven by Optuna alone, minimise functions of ordered keys whose least figure is 0;
    where that lies is drawn again for each seed, the same for all methods. Regret is the figure, without noise, of the
    trial that looks best. The grid is tried where it has no more configurations than there are trials.
    """
    from bench.report import table_reporter, write_json

    if plot is not None and plot.suffix not in (".svg", ".png"):
        raise typer.BadParameter("a plot is a .svg or a .png", param_hint="--plot")
    out = table_reporter()
    regrets_by_problem: dict[str, dict[str, list[list[float]]]] = {}
    for name, problem in PROBLEMS.items():
        regrets_by_problem[name] = {}
        for method in COLORS:
            number = slow_seeds if method == SLOW_METHOD else seeds
            if number and (method != "grid" or problem.values**problem.keys <= trials):
                regrets_by_problem[name][method] = [
                    regrets(name, method, seed, trials) for seed in range(1, number + 1)
                ]
                out.line(
                    f"{name}, {method}: {statistics.median(each[-1] for each in regrets_by_problem[name][method]):.4f}"
                )
    out.table(f"regret after {trials} trials, over seeds", *regret_table(regrets_by_problem))
    if plot is not None:
        draw_regrets(regrets_by_problem, plot)
    write_json(json, "search", {"trials": trials, "seeds": seeds, "gp_seeds": slow_seeds}, regrets_by_problem)


def regrets(name: str, method: str, seed: int, trials: int) -> list[float]:
    """The regret after each trial of one search."""
    import numpy as np
    import optuna

    from tfm.pipeline.tuning.samplers.draws import trial_generator
    from tfm.pipeline.tuning.samplers.registry import make_sampler
    from tfm.pipeline.tuning.space import list_configurations, make_parameters, suggest_configuration

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem, config = PROBLEMS[name], make_config(PROBLEMS[name], method, seed)
    parameters, last_value = make_parameters(config.space), problem.values - 1
    draw = trial_generator(seed, 0, name)
    low, high = (round(part * last_value) for part in problem.best)
    best = [int(draw.integers(low, high + 1)) for _ in parameters]
    study = optuna.create_study()
    for configuration in list_configurations(parameters) if method == "grid" else ():
        study.enqueue_trial(configuration)
    curve: list[float] = []
    lowest = np.inf
    for number in range(trials):
        study.sampler = make_sampler(config, number)
        trial = study.ask()
        positions = [int(each) for each in suggest_configuration(parameters, trial).values()]
        figure = problem.figure(
            [(position - target) / last_value for position, target in zip(positions, best, strict=True)]
        )
        noisy = figure + problem.noise * float(trial_generator(seed, number, f"{name}, noise").standard_normal())
        study.tell(trial, noisy)
        curve.append(figure if noisy < lowest else curve[-1])
        lowest = min(lowest, noisy)
    return curve


def make_config(problem: Problem, method: str, seed: int) -> "SearchConfig":
    """Make the config of a search for the problem, with the defaults of each method."""
    from tfm.pipeline.tuning.config import SearchConfig

    space = {f"key{number}": {"values": list(range(problem.values))} for number in range(problem.keys)}
    settings = {"name": "bench", "base": "none", "method": method, "trials": 1, "seed": seed, "space": space}
    return SearchConfig.model_validate(settings)


RegretsByMethod: TypeAlias = Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
"""By problem and method: the regrets of each seed after each trial."""


def quartiles(values: Sequence[float]) -> Quartiles:
    """The median and the quartiles, by linear interpolation."""
    return Quartiles(*statistics.quantiles(values, n=4, method="inclusive"))


def regret_table(regrets_by_problem: RegretsByMethod) -> tuple[list[str], list[list[object]]]:
    """Median and quartiles of the last regrets, and in how many seeds a method ends below and above random."""
    rows: list[list[object]] = []
    for problem, methods in regrets_by_problem.items():
        for method, curves in methods.items():
            last, baseline = [each[-1] for each in curves], [each[-1] for each in methods["random"]]
            middle = quartiles(last)
            pairs = list(zip(last, baseline, strict=False))
            num_better, num_worse = (
                sum(regret < random_regret for regret, random_regret in pairs),
                sum(regret > random_regret for regret, random_regret in pairs),
            )
            wins = "–" if method == "random" else f"{num_better} : {num_worse}"
            figures = [f"{each:.4f}" for each in (middle.median, middle.lower, middle.upper)]
            rows.append([problem, method, *figures, len(last), wins])
    return ["problem", "method", "median", "lower quartile", "upper quartile", "seeds", "better : worse"], rows


def draw_regrets(regrets_by_problem: RegretsByMethod, file: Path) -> None:
    """Median regret over trials, a panel a problem; the same figures give the same bytes."""
    import matplotlib
    from matplotlib.figure import Figure

    from tfm.pipeline.reports.training_curves import PLOT_STYLE

    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(10, 6), layout="constrained")
        panels = figure.subplots(2, -(-len(regrets_by_problem) // 2), squeeze=False)
        handles = {}
        for axes, (problem, methods) in zip(panels.flat, regrets_by_problem.items(), strict=False):
            for method, curves in methods.items():
                medians = [statistics.median(each) for each in zip(*curves, strict=True)]
                numbers = range(1, len(medians) + 1)
                axes.plot(numbers, medians, color=COLORS[method], label=method, linewidth=1.4)
            axes.set_title(problem, loc="left")
            axes.set_yscale("symlog", linthresh=1e-3)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.25)
            for line, method in zip(*axes.get_legend_handles_labels(), strict=True):
                handles[method] = line
        for axes in panels[-1]:
            axes.set_xlabel("trials")
        for row in panels:
            row[0].set_ylabel("regret")
        names = [each for each in COLORS if each in handles]
        figure.legend([handles[each] for each in names], names, loc="outside lower center", ncols=6, frameon=False)
        metadata = {"Date": None, "Creator": None} if file.suffix == ".svg" else {"Software": None}
        figure.savefig(file, metadata=metadata, dpi=150)
