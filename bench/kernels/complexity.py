"""`python -m bench complexity`: time and memory of a mixing layer as sentences grow, compared with the formulas of
Vaswani et al. 2017."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import Json, Rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FIGURES = ("seconds", "peak")
NUM_FITTED = 3  # lengths from which an exponent is taken, the largest
Figures = Mapping[str, Sequence[float]]
"""Of one layer: "seconds" and "peak" (bytes), one a length."""


@dataclass(frozen=True)
class Layer:
    """A layer of the lecture's table (Vaswani et al. 2017, table 1): what [model] says for it, and what theory says.

    n tokens, d wide; r a window of attention, k the words a convolution sees.
    """

    model: Mapping[str, object]
    operations: str
    sequential: str
    path: str


def make_layers(window: int, reach: int) -> dict[str, Layer]:
    """The layers, by name."""
    return {
        "full attention": Layer({}, "n^2 d", "1", "1"),
        "the same, written out": Layer({"score": "dot"}, "n^2 d", "1", "1"),
        f"attention, window r = {window}": Layer({"window": window}, "r n d", "1", "n / r"),
        "recurrent (LSTM)": Layer({"mixing": "recurrent"}, "n d^2", "n", "n"),
        f"convolution, k = {2 * reach + 1}": Layer({"mixing": "convolution", "window": reach}, "k n d^2", "1", "n / k"),
    }


def complexity(
    shortest: Annotated[int, typer.Option("--shortest", metavar="N", min=8, help="Tokens of the first sentence.")] = 64,
    longest: Annotated[
        int, typer.Option("--longest", metavar="N", min=8, help="Twice as many each time, up to.")
    ] = 4096,
    dim: Annotated[int, typer.Option("--dim", metavar="D", min=8, help="Width of the layer.")] = 128,
    heads: Annotated[int, typer.Option("--heads", metavar="H", min=1, help="Heads of attention.")] = 4,
    window: Annotated[int, typer.Option("--window", metavar="R", min=1, help="Attention sees so far, each way.")] = 32,
    reach: Annotated[int, typer.Option("--reach", metavar="R", min=1, help="A convolution sees so far.")] = 1,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="X", min=0.001, help="Time for each figure of a round, at least.")
    ] = 0.5,
    rounds: Rounds = 3,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw both over n, on log axes: .svg or .png.")
    ] = None,
    json: Json = None,
) -> None:
    """Attention, recurrence, convolution: cost as n grows.

    One mixing layer of an encoder, as the builder makes it, forward and backward on one sentence of n tokens, in fp32.
    Full attention takes torch's kernel, which keeps no weights, and as `written out` the equation, which keeps all n^2
    of them. Time is the median over rounds of the fastest passes. Memory is the most that torch's allocator holds at
    once beyond what it held before. The exponents are fitted to the three longest sentences: the b of a n^b.
    """
    from bench.report import table_reporter, write_json

    lengths = doubling_lengths(shortest, longest)
    if len(lengths) < NUM_FITTED:
        raise typer.BadParameter(
            f"an exponent needs {NUM_FITTED} lengths: {2 ** (NUM_FITTED - 1)} times --shortest, or more"
        )
    if plot is not None and plot.suffix not in (".svg", ".png"):
        raise typer.BadParameter("a plot is a .svg or a .png", param_hint="--plot")
    stack = {"layers": 1, "dim": dim, "heads": heads, "feed_forward_dim": dim}
    models = {
        name: {**layer.model, "encoder": stack, "decoder": stack} for name, layer in make_layers(window, reach).items()
    }
    figures, threads = measure_layers(models, lengths, seconds, rounds)
    for title, columns, rows in make_tables(figures, lengths, window, reach):
        table_reporter().table(f"{title}; d = {dim}, {threads} threads", columns, rows)
    if plot is not None:
        draw_figures(figures, lengths, plot)
    options = {"lengths": lengths, "models": models, "seconds": seconds, "rounds": rounds, "threads": threads}
    write_json(json, "complexity", options, figures)


def doubling_lengths(shortest: int, longest: int) -> list[int]:
    """shortest, twice that, ... up to longest."""
    return [shortest << step for step in range(max(longest // shortest, 1).bit_length())]


def measure_layers(
    models: Mapping[str, Mapping[str, object]], lengths: Sequence[int], seconds: float, rounds: int
) -> tuple[dict[str, Figures], int]:
    """The figures of each layer, one round of each in turn, each a process of its own; and its threads."""
    from bench.processes import run_module
    from bench.report import table_reporter

    turns_by_layer: dict[str, list[list[dict[str, float]]]] = {name: [] for name in models}
    for turn in range(rounds):
        for name, model in models.items():
            options = {"model": model, "lengths": lengths, "seconds": seconds}
            answer = run_module("bench.kernels.layers", options).answer()
            turns_by_layer[name].append(answer["found"])
            last = turns_by_layer[name][-1][-1]["seconds"]
            table_reporter().line(f"round {turn + 1} of {rounds}: {name}: {1000 * last:.3g} ms at n = {lengths[-1]:,}")
    figures_by_layer: dict[str, Figures] = {}
    for name, turns in turns_by_layer.items():
        of_lengths = list(zip(*turns, strict=True))
        figures_by_layer[name] = {
            key: [statistics.median(each[key] for each in of) for of in of_lengths] for key in FIGURES
        }
    return figures_by_layer, answer["threads"]


def fit_exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """b of a n^b, fitted by least squares of logarithms to the longest lengths."""
    x, y = ([math.log(each) for each in some[-NUM_FITTED:]] for some in (lengths, values))
    return statistics.linear_regression(x, y).slope


Table = tuple[str, list[str], list[list[object]]]


def make_tables(
    figures_by_layer: Mapping[str, Figures], lengths: Sequence[int], window: int, reach: int
) -> list[Table]:
    """Tables of the exponents, measured and of theory; of milliseconds; of MiB."""
    theory = make_layers(window, reach)
    columns = ["layer", "operations", "sequential", "longest path", "time grows as", "memory grows as"]
    rows: list[list[object]] = []
    for name, figures in figures_by_layer.items():
        complexities = (theory[name].operations, theory[name].sequential, theory[name].path)
        grows = (fit_exponent(lengths, figures[key]) for key in FIGURES)
        rows.append([name, *(f"O({each})" for each in complexities), *(f"n^{each:.2f}" for each in grows)])
    result: list[Table] = [
        (f"a layer, forward and backward, n = {lengths[-NUM_FITTED]:,} to {lengths[-1]:,}", columns, rows)
    ]
    for title, key, unit in (("milliseconds", "seconds", 1e-3), ("MiB at most", "peak", 2**20)):
        cells: dict[str, list[object]] = {
            n: [f"{v / unit:,.2f}" for v in figures_of_layer[key]] for n, figures_of_layer in figures_by_layer.items()
        }
        rows = [[name, *each] for name, each in cells.items()]
        result.append((title, ["n", *(f"{each:,}" for each in lengths)], rows))
    return result


def draw_figures(figures_by_layer: Mapping[str, Figures], lengths: Sequence[int], file: Path) -> None:
    """Time and memory over n, on log axes."""
    import matplotlib
    from matplotlib.figure import Figure

    from tfm.pipeline.reports.training_curves import PLOT_STYLE

    with matplotlib.rc_context(PLOT_STYLE):  # type: ignore[arg-type]
        figure = Figure(figsize=(10, 4.2), layout="constrained")
        panels = figure.subplots(1, 2)
        for axes, (key, unit, title) in zip(
            panels, (("seconds", 1e-3, "milliseconds"), ("peak", 2**20, "MiB at most")), strict=True
        ):
            draw_panel(
                axes, {name: [value / unit for value in each[key]] for name, each in figures_by_layer.items()}, lengths
            )
            axes.set_title(f"{title}, forward and backward", loc="left")
        metadata = {"Date": None, "Creator": None} if file.suffix == ".svg" else {"Software": None}
        figure.savefig(file, metadata=metadata, dpi=150)


def draw_panel(axes: "Axes", values: Figures, lengths: Sequence[int]) -> None:
    """One set of log axes, a line a layer, each with the exponent fitted to its end."""
    for name, line in values.items():
        axes.plot(lengths, line, marker=".", linewidth=1.3, label=f"{name}: n^{fit_exponent(lengths, line):.2f}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [f"{each:,}" for each in lengths])
    axes.set_xlabel("n")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left")
