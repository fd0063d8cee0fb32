"""`python -m bench decode`: output tokens a second of a model, beside CTranslate2 with the same weights."""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bench.options import Json, Predict, Rounds, predicted

if TYPE_CHECKING:
    from bench.compare import Contestant, Figures

Peer = Literal["ctranslate2"]
PROGRAMS = {"tfm": "bench.decode_tfm", "ctranslate2": "bench.peers.decode_ctranslate2"}


def decode(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `tfm train` made.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Text, one sentence a line, also .gz.")],
    reference: Annotated[
        Path | None, typer.Option("--reference", metavar="FILE", help="Also BLEU, against this text.")
    ] = None,
    against: Annotated[Peer | None, typer.Option("--against", help="The peer (extra: export).")] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option("--precision", metavar="NAME", help="Ours: fp32, bf16, int8; several by several."),
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="NAME", help="CTranslate2's compute_type: int8, ...")
    ] = "float32",
    layout: Annotated[
        str, typer.Option("--layout", metavar="2x1", help="CTranslate2's workers x threads of each.")
    ] = f"{os.cpu_count()}x1",
    beam: Annotated[int, typer.Option("--beam", metavar="W", min=1, help="Beam width.")] = 5,
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Sentences a batch.")] = 64,
    longest: Annotated[int, typer.Option("--longest", metavar="N", min=1, help="Pieces of an output at most.")] = 200,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Lines at most.")] = 1000,
    one_at_a_time: Annotated[
        bool, typer.Option("--one-at-a-time", help="Instead: greedy, and the milliseconds of a sentence by itself.")
    ] = False,
    rounds: Rounds = 3,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Output tokens a second, beside CTranslate2.

    Both decode on the CPU, from token ids to token ids, with the same weights: CTranslate2 reads what `tfm export`
    makes of the model. A process loads the model, translates 256 sentences to warm up, and is timed on all lines. Both
    have the same limit of length and stop as their beams do.
    """
    from bench.processes import tfm
    from bench.report import contest, write_json
    from cli.options import model_folder

    processes = workers_and_threads(layout)
    model = model_folder(model).resolve()
    lines, references = read(source, reference, limit)
    options: dict[str, Any] = {"type": kind, "layout": processes, "longest": longest}
    options |= {"beam": 1 if one_at_a_time else beam, "batch": 1 if one_at_a_time else batch}
    options |= {"one_at_a_time": one_at_a_time}
    with TemporaryDirectory() as temporary:
        asked = options | {"model": str(model), "lines": lines, "engine": f"{temporary}/engine"}
        if against is not None:
            tfm("export", model, "--to", against, "--out", asked["engine"])
        names = [f"tfm {each}" for each in precision or ["fp32"]] + ([] if against is None else [against])
        outputs: dict[str, list[list[int]]] = {}
        found = contest(
            f"{len(lines):,} lines" + ("" if one_at_a_time else f", beam {beam}, {batch} a batch"),
            predicted([contestant(name, asked, outputs) for name in names], predict),
            rounds=rounds,
            unit="ms a sentence" if one_at_a_time else "output tokens/s",
            extra=lambda figures: scores(model, outputs, references),
        )
    about = {"model": model, "source": source, "lines": len(lines), "rounds": rounds, **options}
    write_json(json, "decode", about, found)


def contestant(name: str, asked: dict[str, Any], outputs: dict[str, list[list[int]]]) -> "Contestant":
    """One that decodes, and leaves the ids of its last round in `outputs`."""
    from bench.compare import Contestant
    from bench.processes import run_module

    def once() -> "Figures":
        program, _, precision = name.partition(" ")
        done = run_module(PROGRAMS[program], asked | {"precision": precision})
        found = done.answer()
        outputs[name] = found["found"]
        if asked["one_at_a_time"]:
            return {"rate": 1000 * statistics.median(found["seconds"]), "peak": done.peak}
        tokens = sum(len(ids) + 1 for ids in found["found"] if ids)
        return {"rate": tokens / sum(found["seconds"]), "tokens": tokens, "peak": done.peak}

    return Contestant(name, once)


def scores(
    model: Path, outputs: dict[str, list[list[int]]], references: Sequence[str] | None
) -> dict[str, dict[str, object]]:
    """Columns of BLEU, and of what it is more than the first one's; none without references."""
    if references is None:
        return {}
    from data.tokenizers import load_pair
    from pipeline.config import EvaluationConfig
    from pipeline.scoring.metrics import bleu

    _, target = load_pair(model)
    found = {
        name: bleu(target.decode_batch(ids), [references], EvaluationConfig()).score for name, ids in outputs.items()
    }
    first = next(iter(found.values()))
    return {
        "BLEU": {name: f"{score:.2f}" for name, score in found.items()},
        "difference": {name: f"{score - first:+.2f}" for name, score in found.items()},
    }


def read(source: Path, reference: Path | None, limit: int) -> tuple[list[str], list[str] | None]:
    """The first lines that are not blank, and the references of just these."""
    from bench.processes import Failed
    from data.lines import open_lines

    sources = list(open_lines(source))
    rows = [row for row, line in enumerate(sources) if line.strip()][:limit]
    lines = [sources[row] for row in rows]
    if reference is None:
        return lines, None
    references = list(open_lines(reference))
    if len(references) != len(sources):
        raise Failed(f"{source} has {len(sources)} lines, {reference} has {len(references)}")
    return lines, [references[row] for row in rows]


def workers_and_threads(layout: str) -> tuple[int, int]:
    """2x1 as numbers. Raises typer's usage error for what is none."""
    workers, _, threads = layout.partition("x")
    if not (workers.isdecimal() and threads.isdecimal()):
        raise typer.BadParameter(f"{layout}: write WORKERSxTHREADS, as in 2x1", param_hint="--layout")
    return int(workers), int(threads)
