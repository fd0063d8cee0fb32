"""Options shared by several benches."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.compare import Contestant

Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="Rounds of each contestant, in turn.")]
Device = Annotated[
    Literal["cpu", "cuda"], typer.Option("--device", metavar="NAME", help="Of all contestants: cpu or cuda.")
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write what was found there as well.")]
Predict = Annotated[
    list[str] | None,
    typer.Option("--predict", metavar="NAME=RATIO", help="What you expect of a contestant, beside the first one."),
]


def add_predictions(contestants: Sequence[Contestant], predictions: Sequence[str] | None) -> list[Contestant]:
    """The contestants with the ratios expected of them. Raises typer's usage error for what is no NAME=RATIO."""
    by_name = {each.name: each for each in contestants}
    for text in predictions or ():
        name, _, ratio = text.rpartition("=")
        try:
            by_name[name] = replace(by_name[name], predicted=float(ratio))
        except (KeyError, ValueError):
            names = ", ".join(by_name)
            raise typer.BadParameter(f"{text}: write NAME=RATIO, of {names}", param_hint="--predict") from None
    return list(by_name.values())
