"""`python -m bench decode`: output tokens a second of a model, beside CTranslate2 and others with its weights."""

import json as json_module
import os
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.options import Device, Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Contestant, Figures

PEERS_FOLDER = Path(__file__).parent.parent / "peers" / "decoding"
PROGRAMS = {
    "tfm": "bench.decoding.decode_tfm",
    "ctranslate2": "bench.peers.decoding.decode_ctranslate2",
    "bergamot": "bench.peers.decoding.decode_bergamot",
}
"""By contestant, what our own Python runs."""
PLACES = {"ctranslate2": "", "huggingface": "bin/python", "bergamot": "worker/bergamot-translator-worker.wasm"}
"""By peer, the file that has to be in the folder that is given with it; CTranslate2 has none."""
PEER_METAVAR = "ctranslate2, huggingface=VENV or bergamot=PACKAGE"


def decode(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `tfm train` made.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Text, one sentence a line, also .gz.")],
    reference: Annotated[
        Path | None, typer.Option("--reference", metavar="FILE", help="Also BLEU, against this text.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="PEER",
            help="ctranslate2 (extra: export), huggingface=VENV or bergamot=PACKAGE, of npm; several by several.",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option("--vocabulary", metavar="FILE.model", help="Bergamot's: the tokenizer's, as it was.")
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option("--precision", metavar="NAME", help="Ours: fp32, bf16, int8; several by several."),
    ] = None,
    shortlist: Annotated[
        Path | None, typer.Option("--shortlist", metavar="DIR", help="Ours also with what `tfm shortlist` made.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", metavar="NAME", help="The peers' arithmetic: float32, bfloat16; ctranslate2: int8.")
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
    device: Device = "cpu",
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Output tokens a second, beside CTranslate2 and others.

    All decode from token ids to token ids, with the same weights: CTranslate2 reads what `tfm export` makes of the
    model, and `generate` of Hugging Face has an M2M100 that is given them (pre-norm with sinusoids alone). A process
    loads the model, translates 256 sentences to warm up, and is timed on all lines. All have the same limit of length
    and stop as their beams do, at W finished hypotheses. Bergamot's engine, which node runs by one thread, reads and
    writes text, has its own batches and limit, and begins without the vector of `<s>`: post-norm models with
    sinusoids, one table of pieces and a SentencePiece vocabulary whose `</s>` is 0 and whose `<unk>` is 1.
    """
    from bench.processes import run_tfm
    from bench.report import contest, write_json
    from tfm.pipeline.model_io.model_folder import resolve_model_folder

    processes, rivals = workers_and_threads(layout), parse_peers(against or [])
    if "huggingface" in rivals and kind not in ("float32", "bfloat16", "float16"):
        raise typer.BadParameter(f"{kind}: huggingface has float32, bfloat16 and float16", param_hint="--type")
    if "bergamot" in rivals and (vocabulary is None or not vocabulary.is_file()):
        raise typer.BadParameter("give bergamot the SentencePiece model of the vocabulary", param_hint="--vocabulary")
    if "bergamot" in rivals and shutil.which("node") is None:
        raise typer.BadParameter(
            "bergamot needs the program node, which no folder of PATH has: install Node.js", param_hint="--against"
        )
    model = resolve_model_folder(model).resolve()
    lines, references = read_lines(source, reference, limit)
    options: dict[str, Any] = {"type": kind, "layout": processes, "longest": longest}
    options |= {"beam": 1 if one_at_a_time else beam, "batch": 1 if one_at_a_time else batch}
    options |= {"one_at_a_time": one_at_a_time, "device": device}
    options |= {"shortlist": None if shortlist is None else str(shortlist.resolve())}
    with TemporaryDirectory() as temporary:
        request = options | {"model": str(model), "lines": lines, "engine": f"{temporary}/engine"}
        if "ctranslate2" in rivals:
            run_tfm("export", model, "--to", "ctranslate2", "--out", request["engine"])
        if "bergamot" in rivals:
            request |= {"marian": f"{temporary}/marian", "package": str(rivals["bergamot"])}
            request |= {"vocabulary": str(vocabulary)}
            run_tfm("export", model, "--to", "huggingface", "--out", request["marian"])
        if "huggingface" in rivals:
            request |= huggingface_request(model, lines)
        kinds = [""] if shortlist is None else ["", " shortlist"]
        names = [*(f"tfm {each}{more}" for each in precision or ["fp32"] for more in kinds), *rivals]
        outputs: dict[str, list[list[int]]] = {}
        summaries = contest(
            f"{len(lines):,} lines" + ("" if one_at_a_time else f", beam {beam}, {batch} a batch"),
            add_predictions([make_contestant(name, request, outputs, rivals.get(name)) for name in names], predict),
            rounds=rounds,
            unit="ms a sentence" if one_at_a_time else "output tokens/s",
            extra=lambda figures: score_outputs(model, outputs, references),
        )
    settings = {"model": model, "source": source, "lines": len(lines), "rounds": rounds, **options}
    write_json(json, "decode", settings, summaries)


def parse_peers(against: Sequence[str]) -> dict[str, Path | None]:
    """The peers by NAME or NAME=FOLDER, with their folders. Raises typer's usage error for one there is not."""
    peers: dict[str, Path | None] = {}
    for text in against:
        name, _, words = text.partition("=")
        folder = Path(words).expanduser().absolute() if words else None
        place = PLACES.get(name)
        if place is None or bool(place) != (folder is not None) or not (folder is None or (folder / place).exists()):
            raise typer.BadParameter(f"{text}: write {PEER_METAVAR}, a folder", param_hint="--against")
        peers[name] = folder
    return peers


def huggingface_request(model: Path, lines: Sequence[str]) -> dict[str, Any]:
    """Make the request to Hugging Face: weights, sizes, ids. Raises RecipeError for a model that it does not have."""
    from bench.training.workload import ModelSize
    from tfm.data.artifact_tokenizers import load_tokenizer_pair
    from tfm.model.config import ModelConfig
    from tfm.pipeline.errors import RecipeError
    from tfm.pipeline.training_config import TrainingConfig
    from tfm.tokenizer.special import EOS_ID

    config = ModelConfig.model_validate_json((model / "config.json").read_text("utf-8"))
    source, target = load_tokenizer_pair(model)
    size = ModelSize.from_config(config, TrainingConfig(), target.vocab_size)
    if not size.norm_first or config.positions != "sinusoidal" or not config.scale_embedding:
        raise RecipeError("huggingface: it has pre-norm models with sinusoids and scaled embeddings alone")
    ids = [[*each, EOS_ID] for each in source.encode_batch(lines)]
    weights = str(model / "model.safetensors")
    return {"weights": weights, "size": asdict(size), "positions": config.max_length, "sources": ids}


def make_contestant(
    name: str, request: dict[str, Any], outputs: dict[str, list[list[int]]], folder: Path | None
) -> "Contestant":
    """Make a contestant that decodes and stores the ids of its last round in `outputs`; folder: the peer's, if any."""
    from bench.compare import Contestant
    from bench.processes import run, run_module
    from bench.training.workload import venv_python

    def decode_file() -> "Figures":
        program, *options = name.split()
        if program in PROGRAMS:
            engine_options = {
                "precision": options[0] if options else "",
                "shortlist": request["shortlist"] if options[1:] else None,
            }
            process = run_module(PROGRAMS[program], request | engine_options)
        else:
            with TemporaryDirectory() as temporary:
                command = [venv_python(folder), PEERS_FOLDER / f"decode_{name}.py"]
                process = run(command, folder=Path(temporary), text=json_module.dumps(request))
        answer = process.answer()
        outputs[name] = answer["found"]
        if request["one_at_a_time"]:
            return {"rate": 1000 * statistics.median(answer["seconds"]), "peak": process.peak}
        tokens = sum(len(ids) + 1 for ids in answer["found"] if ids)
        return {"rate": tokens / sum(answer["seconds"]), "tokens": tokens, "peak": process.peak}

    return Contestant(name, decode_file)


def score_outputs(
    model: Path, outputs: dict[str, list[list[int]]], references: Sequence[str] | None
) -> dict[str, dict[str, object]]:
    """Columns of BLEU and of its difference from the first one's; none without references."""
    if references is None:
        return {}
    from tfm.data.artifact_tokenizers import load_tokenizer_pair
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.scoring.metrics.registry import bleu

    _, target = load_tokenizer_pair(model)
    scores = {
        name: bleu(target.decode_batch(ids), [references], EvaluationConfig()).score for name, ids in outputs.items()
    }
    first = next(iter(scores.values()))
    return {
        "BLEU": {name: f"{score:.2f}" for name, score in scores.items()},
        "difference": {name: f"{score - first:+.2f}" for name, score in scores.items()},
    }


def read_lines(source: Path, reference: Path | None, limit: int) -> tuple[list[str], list[str] | None]:
    """The first lines that are not blank, and the references of just these."""
    from bench.processes import ProcessError
    from tfm.data.lines import open_lines

    sources = list(open_lines(source))
    rows = [row for row, line in enumerate(sources) if line.strip()][:limit]
    lines = [sources[row] for row in rows]
    if reference is None:
        return lines, None
    references = list(open_lines(reference))
    if len(references) != len(sources):
        raise ProcessError(f"{source} has {len(sources)} lines, {reference} has {len(references)}")
    return lines, [references[row] for row in rows]


def workers_and_threads(layout: str) -> tuple[int, int]:
    """2x1 as numbers. Raises typer's usage error for what is none."""
    workers, _, threads = layout.partition("x")
    if not (workers.isdecimal() and threads.isdecimal()):
        raise typer.BadParameter(f"{layout}: write WORKERSxTHREADS, as in 2x1", param_hint="--layout")
    return int(workers), int(threads)
