"""`python -m bench softmax`: an update's output layer and loss, full and adaptive softmax."""

from functools import partial
from typing import Annotated

import typer

from bench.options import Json, Predict, Rounds, add_predictions


def softmax(
    vocab: Annotated[int, typer.Option("--vocab", metavar="N", min=2, help="Pieces.")] = 50_000,
    dim: Annotated[int, typer.Option("--dim", metavar="N", min=1, help="Width of what enters the layer.")] = 512,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Rows of a batch.")] = 2048,
    cutoffs: Annotated[str, typer.Option("--cutoffs", metavar="N,N", help="Where clusters begin.")] = "2000,10000",
    factor: Annotated[int, typer.Option("--factor", metavar="N", min=1, help="By which clusters get narrower.")] = 4,
    bf16: Annotated[bool, typer.Option("--bf16", help="Products take bf16 operands.")] = False,
    seconds: Annotated[float, typer.Option("--seconds", metavar="X", min=0.001, help="Time for a round.")] = 2.0,
    rounds: Rounds = 3,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Seconds of a loss by the full softmax, and the adaptive one.

    Targets are drawn by Zipf's law: the piece of id i with a probability in proportion to 1 / (i + 1). Both layers have
    weights of their own, tied to no embeddings.
    """
    from bench.compare import Contestant, Figures
    from bench.processes import run_module
    from bench.report import contest, write_json

    try:
        begins = [int(each) for each in cutoffs.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{cutoffs}: write ids, as in 2000,10000", param_hint="--cutoffs") from None
    shape = {"vocab": vocab, "dim": dim, "rows": rows, "factor": factor, "bf16": bf16, "seconds": seconds}

    def timed(begins: list[int]) -> Figures:
        return {"rate": run_module("bench.kernels.softmax_loss", {**shape, "cutoffs": begins}).answer()["seconds"]}

    contestants = [
        Contestant("full", partial(timed, [])),
        Contestant("adaptive", partial(timed, begins)),
    ]
    contestants = add_predictions(contestants, predict)
    title = f"loss and gradients of {rows:,} rows, D {dim}, V {vocab:,}, cutoffs {cutoffs}"
    summaries = contest(title, contestants, rounds=rounds, unit="seconds")
    write_json(json, "softmax", {**shape, "cutoffs": begins, "rounds": rounds}, summaries)
