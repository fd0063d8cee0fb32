"""`python -m bench scores`: seconds of `tfm evaluate` and `tfm compare` on files, beside sacrebleu's command."""

import random
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.options import Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Contestant

METRICS = ("bleu", "chrf", "ter")
MAX_LINES = 100_000


def scores(
    reference: Annotated[Path, typer.Argument(metavar="REFERENCE", help="Text, one sentence a line, also .gz.")],
    systems: Annotated[int, typer.Option("--systems", metavar="N", min=1, help="Outputs that are compared.")] = 1,
    rounds: Rounds = 3,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Lines a second of scores, beside sacrebleu.

    One output: BLEU, chrF and TER, `tfm evaluate` and `sacrebleu -m bleu chrf ter`. Several: the same of each with
    paired tests by approximate randomization, `tfm compare` and `sacrebleu --paired-ar`. Outputs are the reference,
    of which each leaves out and doubles other words.
    """
    from bench.report import contest, write_json
    from tfm.data.lines import open_lines

    lines = [line for line in open_lines(reference) if line.strip()][:MAX_LINES]
    with TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "reference").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        outputs = [write_output(place, lines, number) for number in range(systems)]
        contestants = add_predictions(make_contestants(place, outputs, len(lines) * systems), predict)
        title = f"{len(lines):,} lines, {systems} {'output' if systems == 1 else 'outputs'}"
        found = contest(title, contestants, rounds=rounds, unit="lines/s")
    write_json(json, "scores", {"reference": reference, "lines": len(lines), "systems": systems}, found)


def write_output(place: Path, lines: Sequence[str], number: int) -> str:
    """Write an output, and return the name of its file."""
    draw, name = random.Random(number), f"system-{number}"
    noisy = (
        " ".join(word for word in line.split() for _ in range(draw.choices((0, 1, 2), (10, 85, 5))[0])) or line
        for line in lines
    )
    (place / name).write_text("".join(f"{line}\n" for line in noisy), encoding="utf-8")
    return name


def make_contestants(place: Path, outputs: Sequence[str], num_lines: int) -> "list[Contestant]":
    """Return ours and sacrebleu's command, on the files in a folder."""
    from bench.compare import Contestant, Figures
    from bench.processes import TFM, run

    theirs: list[Any] = [sys.executable, "-m", "sacrebleu", "reference", "-i", *outputs, "-m", *METRICS]
    if len(outputs) == 1:
        asked = [word for metric in METRICS for word in ("--metric", metric)]
        ours: list[Any] = [*TFM, "evaluate", "--hypotheses", outputs[0], "--reference", "reference", *asked]
    else:
        theirs.append("--paired-ar")
        ours = [*TFM, "compare", "--reference", "reference", *(f"{name}={name}" for name in outputs)]

    def measure(command: list[Any]) -> Figures:
        done = run(command, folder=place)
        return {"rate": num_lines / done.seconds, "peak": done.peak}

    return [Contestant("tfm", lambda: measure(ours)), Contestant("sacrebleu", lambda: measure(theirs))]
