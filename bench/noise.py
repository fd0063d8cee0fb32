"""`python -m bench noise`: what trained models lose on text with typing errors, and what each costs to use."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.options import Json
from bench.processes import MIB, run_module

TYPO_RATES = (0.0, 0.05, 0.1, 0.15, 0.2)


def noise(
    runs: Annotated[list[str], typer.Argument(metavar="[NAME=]RUN...", help="Finished runs of one test set.")],
    rates: Annotated[
        list[float] | None, typer.Option("--noise", metavar="SHARE", help="Of characters; repeatable (0 to 0.2).")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", metavar="N", min=1, help="Seeds of the errors, averaged.")] = 3,
    beam: Annotated[int, typer.Option("--beam", metavar="W", min=1, help="Of models that translate.")] = 1,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the curves there.")] = None,
    as_json: Json = None,
) -> None:
    """What runs lose on mistyped text; their size and speed."""
    from bench.report import table_reporter, write_json  # here, as it loads rich

    shares = sorted({*(rates or TYPO_RATES), 0.0})
    out, results = table_reporter(), list[dict[str, Any]]()
    for run in runs:
        name, _, folder = run.rpartition("=")
        process = run_module("bench.noise_run", {"run": folder, "rates": shares, "draws": draws, "beam": beam})
        results.append({"name": name or Path(folder).name, **process.answer(), "peak": process.peak})
        out.line(f"{results[-1]['name']}: {', '.join(f'{score:.2f}' for score in mean_scores(results[-1]))}")
    if len({each["texts"] for each in results}) > 1:
        out.warn("these runs have different test sets, whose scores do not compare")
    print("\n".join(noise_table(results, shares)))
    if plot is not None:
        from tfm.pipeline.artifacts.files import write_text_atomically

        write_text_atomically(plot, draw_noise(results, shares))
    write_json(as_json, "noise", {"runs": runs, "rates": shares, "draws": draws, "beam": beam}, results)


def mean_scores(result: dict[str, Any]) -> list[float]:
    """The score of a run at each rate: the mean over the seeds of the errors."""
    return [statistics.fmean(scores) for scores in result["scores"]]


def noise_table(results: Sequence[dict[str, Any]], rates: Sequence[float]) -> list[str]:
    """In Markdown, a row a run: size, speed, memory, and the score at each rate, with what is lost at the last."""
    heads = ["run", "parameters", "tokens a sentence", "sentences a CPU second", "peak memory, MiB"]
    heads += [f"{results[0]['figure']}, {rate:.0%}" for rate in rates] + [f"lost at {rates[-1]:.0%}"]
    rows = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for result in results:
        scores = mean_scores(result)
        size = f"{result['parameters']:,}", f"{result['tokens']:.1f}", f"{result['sentences_per_second']:,.0f}"
        cells = [result["name"], *size, f"{result['peak'] / MIB:,.0f}", *(f"{score:.2f}" for score in scores)]
        rows.append(f"| {' | '.join([*cells, f'{scores[0] - scores[-1]:.2f}'])} |")
    return rows


def draw_noise(results: Sequence[dict[str, Any]], rates: Sequence[float]) -> str:
    """The score of each run over the share of mistyped characters."""
    from bench.report import curves_svg

    shares = [100 * rate for rate in rates]
    curves = [(each["name"], shares, mean_scores(each)) for each in results]
    return curves_svg(curves, "characters mistyped, %", results[0]["figure"])
