"""Pictures of a search as SVG: best so far, parallel coordinates, slices, importance; equal results, equal bytes."""

import io
import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from tfm.pipeline.reports.training_curves import PLOT_STYLE, escape_label
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER
from tfm.pipeline.tuning.config import ParameterValue
from tfm.pipeline.tuning.results import SearchResults, TrialResult
from tfm.pipeline.tuning.space import Parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SLICES = 12
BEST_COLOR = "#e6550d"
DOT_COLOR = "#3182bd"


def _render_svg(draw: Callable[["Figure"], None], width: float, height: float) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def optimization_history_plot(results: SearchResults) -> str:
    """The figure of each finished trial, and the best up to it, over trials and over seconds of work."""
    better = min if results.metric in LOWER_IS_BETTER else max

    def draw(figure: "Figure") -> None:
        over_trials, over_seconds = figure.subplots(1, 2, sharey=True)
        ends = accumulate(each.seconds for each in results.trials)
        trials = zip(results.trials, ends, strict=True)
        points = [(each.number, end, each.value) for each, end in trials if each.value is not None]
        numbers, seconds, values = ([row[column] for row in points] for column in range(3))
        bests = list(accumulate(values, better))
        for axes, x_values, label in ((over_trials, numbers, "trials"), (over_seconds, seconds, "seconds of work")):
            axes.plot(x_values, values, ".", color=DOT_COLOR, label="a trial")
            axes.step(x_values, bests, where="post", color=BEST_COLOR, label="best so far")
            axes.set_xlabel(label)
            axes.grid(alpha=0.25)
        over_trials.set_ylabel(results.metric)
        over_trials.legend(frameon=False)

    return _render_svg(draw, 10, 3.2)


def _axis_coordinate(parameter: Parameter, value: ParameterValue) -> float:
    """Return the coordinate of a value on the axis of its key: its index in the list, or the number itself."""
    if parameter.values is None:
        assert isinstance(value, (int, float))
        return float(value)
    return float(parameter.values.index(value))


def _set_ticks(set_ticks: Callable[..., object], parameter: Parameter) -> None:
    if parameter.values is not None:
        tick_values = (
            parameter.values if len(parameter.values) <= 8 else parameter.values[:: len(parameter.values) // 4]
        )
        set_ticks(
            [parameter.values.index(each) for each in tick_values],
            [f"{each:g}" if isinstance(each, float) else escape_label(str(each)) for each in tick_values],
        )


def slice_plot(results: SearchResults, parameters: Sequence[Parameter]) -> str:
    """Draw for each key the figure of every finished trial over its value."""
    shown_parameters = list(parameters[:MAX_SLICES])
    rows = -(-len(shown_parameters) // 3)

    def draw(figure: "Figure") -> None:
        grid = figure.subplots(rows, min(3, len(shown_parameters)), sharey=True, squeeze=False)
        for axes, parameter in zip(grid.flat, shown_parameters, strict=False):
            trials = [each for each in results.ranked if parameter.key in each.configuration]
            positions = [_axis_coordinate(parameter, each.configuration[parameter.key]) for each in trials]
            axes.plot(positions, [each.value for each in trials], ".", color=DOT_COLOR)
            best = results.best
            if best is not None and parameter.key in best.configuration:
                axes.plot(
                    [_axis_coordinate(parameter, best.configuration[parameter.key])],
                    [best.value],
                    "o",
                    color=BEST_COLOR,
                )
            if parameter.values is None and parameter.log:
                axes.set_xscale("log")
            _set_ticks(axes.set_xticks, parameter)
            axes.set_xlabel(escape_label(parameter.key))
            axes.grid(alpha=0.25)
        for axes in list(grid.flat)[len(shown_parameters) :]:
            axes.set_visible(False)
        grid[0][0].set_ylabel(results.metric)

    return _render_svg(draw, 10, 2.8 * rows)


def parallel_coordinates_plot(results: SearchResults, parameters: Sequence[Parameter]) -> str:
    """A line for each finished trial through its values, one axis a key; the darker, the better its figure."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        count = len(results.ranked)
        for rank, trial in reversed(list(enumerate(results.ranked))):
            _draw_trial(axes, trial, parameters, rank / max(1, count - 1), rank == 0)
        axes.set_xticks(range(len(parameters)), [escape_label(each.key).replace(".", ".\n") for each in parameters])
        axes.set_yticks([])
        for index, parameter in enumerate(parameters):
            axes.axvline(index, color="#999999", linewidth=0.8)
            for value, height in _axis_tick_labels(parameter):
                axes.annotate(value, (index, height), fontsize=7, xytext=(3, 0), textcoords="offset points")
        axes.set_ylim(-0.05, 1.05)

    return _render_svg(draw, max(6, 1.6 * len(parameters)), 4)


def _draw_trial(axes: "Axes", trial: TrialResult, parameters: Sequence[Parameter], rank: float, best: bool) -> None:
    heights = [
        _relative_axis_coordinate(parameter, trial.configuration[parameter.key])
        if parameter.key in trial.configuration
        else None
        for parameter in parameters
    ]
    xs = [index for index, height in enumerate(heights) if height is not None]
    ys = [height for height in heights if height is not None]
    style = (
        {"color": BEST_COLOR, "linewidth": 2.0}
        if best
        else {"color": DOT_COLOR, "alpha": 0.75 - 0.65 * rank, "linewidth": 1.0}
    )
    axes.plot(xs, ys, **style)  # type: ignore[arg-type]


def _relative_axis_coordinate(parameter: Parameter, value: ParameterValue) -> float:
    """A value's place from 0 to 1 on the axis of its key."""
    if parameter.values is not None:
        return _axis_coordinate(parameter, value) / max(1, len(parameter.values) - 1)
    low, high, coordinate = parameter.low, parameter.high, _axis_coordinate(parameter, value)
    if parameter.log:
        low, high, coordinate = math.log(low), math.log(high), math.log(coordinate)
    return (coordinate - low) / (high - low)


def _axis_tick_labels(parameter: Parameter) -> list[tuple[str, float]]:
    values: Sequence[ParameterValue] = (parameter.low, parameter.high) if parameter.values is None else parameter.values
    tick_values = values if len(values) <= 8 else (values[0], values[-1])
    return [
        (
            f"{value:.4g}" if isinstance(value, float) else escape_label(str(value)),
            _relative_axis_coordinate(parameter, value),
        )
        for value in tick_values
    ]


def importance_plot(results: SearchResults) -> str:
    """Draw the importance of each key as SVG."""
    sorted_importances = sorted(results.importances.items(), key=lambda item: item[1])

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.barh(
            [escape_label(key) for key, _ in sorted_importances],
            [100 * share for _, share in sorted_importances],
            color=DOT_COLOR,
        )
        axes.set_xlabel("% of the variance, by itself; keys that every trial has")

    return _render_svg(draw, 8, 0.6 + 0.35 * len(sorted_importances))
