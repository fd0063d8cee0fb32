"""`python -m bench startup`: seconds from the start to the end of a process."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bench.options import Json, Predict, Rounds, add_predictions

TRANSLATED_LINE = "A man runs.\n"


def startup(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="Also time the translation of one line by this model.")
    ] = None,
    rounds: Rounds = 5,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Seconds of whole processes of `tfm`.

    They are `tfm --help`, `tfm train --help`, and with MODEL `tfm translate MODEL` of one line from stdin. The floor,
    first in the table, is what Python itself takes to start and end.
    """
    from bench.compare import Contestant, Figures
    from bench.processes import TFM, run
    from bench.report import contest, write_json
    from tfm.pipeline.model_io.model_folder import resolve_model_folder

    commands: dict[str, list[str | Path]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "tfm --help": [*TFM, "--help"],
        "tfm train --help": [*TFM, "train", "--help"],
    }
    if model is not None:
        commands["tfm translate MODEL"] = [*TFM, "translate", resolve_model_folder(model).resolve()]

    def timed(command: list[str | Path]) -> Figures:
        return {"rate": run(command, text=TRANSLATED_LINE).seconds}

    contestants = [Contestant(name, partial(timed, command)) for name, command in commands.items()]
    contestants = add_predictions(contestants, predict)
    summaries = contest("start-up", contestants, rounds=rounds, unit="seconds", say_ratios=False)
    write_json(json, "startup", {"model": model, "rounds": rounds}, summaries)
