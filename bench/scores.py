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
        folder = Path(temporary)
        (folder / "reference").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        outputs = [write_output(folder, lines, number) for number in range(systems)]
        contestants = add_predictions(make_contestants(folder, outputs, len(lines) * systems), predict)
        title = f"{len(lines):,} lines, {systems} {'output' if systems == 1 else 'outputs'}"
        summaries = contest(title, contestants, rounds=rounds, unit="lines/s")
    write_json(json, "scores", {"reference": reference, "lines": len(lines), "systems": systems}, summaries)


def write_output(folder: Path, lines: Sequence[str], number: int) -> str:
    """Write an output, and return the name of its file."""
    draw, name = random.Random(number), f"system-{number}"
    noisy = (
        " ".join(word for word in line.split() for _ in range(draw.choices((0, 1, 2), (10, 85, 5))[0])) or line
        for line in lines
    )
    (folder / name).write_text("".join(f"{line}\n" for line in noisy), encoding="utf-8")
    return name


def make_contestants(folder: Path, outputs: Sequence[str], num_lines: int) -> "list[Contestant]":
    """Return ours and sacrebleu's command, on the files in a folder."""
    from bench.compare import Contestant, Figures
    from bench.processes import TFM, run

    peer_command: list[Any] = [sys.executable, "-m", "sacrebleu", "reference", "-i", *outputs, "-m", *METRICS]
    if len(outputs) == 1:
        metric_flags = [word for metric in METRICS for word in ("--metric", metric)]
        tfm_command: list[Any] = [
            *TFM,
            "evaluate",
            "--hypotheses",
            outputs[0],
            "--reference",
            "reference",
            *metric_flags,
        ]
    else:
        peer_command.append("--paired-ar")
        tfm_command = [*TFM, "compare", "--reference", "reference", *(f"{name}={name}" for name in outputs)]

    def measure(command: list[Any]) -> Figures:
        process = run(command, folder=folder)
        return {"rate": num_lines / process.seconds, "peak": process.peak}

    return [Contestant("tfm", lambda: measure(tfm_command)), Contestant("sacrebleu", lambda: measure(peer_command))]
