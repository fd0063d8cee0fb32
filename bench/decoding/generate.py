"""`python -m bench generate`: tokens a second that a language model writes, compared with CTranslate2 and Hugging Face
with its weights."""

import json as json_module
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.options import Device, Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Contestant, Figures

PEERS_FOLDER = Path(__file__).parent.parent / "peers" / "decoding"
PEERS = {"huggingface": "generate_huggingface", "ctranslate2": "generate_ctranslate2"}


def generate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A decoder-only language model that `tfm train` made.")
    ],
    prompt: Annotated[str, typer.Option("--prompt", metavar="TEXT", help="The text that all continue.")] = "",
    texts: Annotated[int, typer.Option("--texts", metavar="N", min=1, help="Texts at a time.")] = 1,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=1, help="Pieces of each text.")] = 200,
    top_k: Annotated[int, typer.Option("--top-k", metavar="K", min=0, help="Drawn from the K best; 0: from all.")] = 0,
    greedy: Annotated[bool, typer.Option("--greedy", help="The likeliest pieces, in place of drawn ones.")] = False,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="PEER", help="ctranslate2 or huggingface, each =VENV of another Python."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", min=1, help="Generations of a round.")] = 3,
    rounds: Rounds = 3,
    device: Device = "cpu",
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Tokens a second of text, beside two peers.

    All write the same number of texts of the same number of pieces, which no end of a text cuts short, with the same
    weights in fp32: the peers read what `tfm export --to huggingface` makes of the model (GPT-2 or Llama shaped), as
    CTranslate2's converter reads it. A process loads the model, generates once to warm up, and is timed on the rest.
    Ours is torch and, where `tfm generate` would take it, numpy.
    """
    from bench.processes import run_tfm
    from bench.report import contest, write_json
    from tfm.pipeline.model_io.model_folder import resolve_model_folder

    model = resolve_model_folder(model).resolve()
    request: dict[str, Any] = {"prompt": prompt, "texts": texts, "tokens": tokens, "greedy": greedy, "top_k": top_k}
    request |= {"repeats": repeats, "device": device, "threads": os.cpu_count()}
    with TemporaryDirectory() as temporary:
        exported = Path(temporary) / "huggingface"
        if against:
            run_tfm("export", model, "--to", "huggingface", "--out", exported)
        contestants = [make_contestant("tfm", request | {"model": str(model)}, None)]
        if device == "cpu":
            contestants.append(make_contestant("tfm numpy", request | {"model": str(model)}, None))
        for text in against or []:
            name, _, folder = text.partition("=")
            if name not in PEERS:
                raise typer.BadParameter(f"{text}: peers: {', '.join(PEERS)}", param_hint="--against")
            contestants.append(
                make_contestant(name, request | {"model": str(exported)}, Path(folder) if folder else None)
            )
        summaries = contest(
            f"{texts} texts of {tokens} pieces, {'likeliest' if greedy else 'drawn'}",
            add_predictions(contestants, predict),
            rounds=rounds,
            unit="tokens/s",
        )
    write_json(json, "generate", {"model": model, **request}, summaries)


def make_contestant(name: str, request: dict[str, Any], venv: Path | None) -> "Contestant":
    """Make a contestant that generates in a separate process; venv: the environment of a peer, if not ours."""
    from bench.compare import Contestant
    from bench.processes import run, run_module
    from bench.training.workload import venv_python

    def generate_texts() -> "Figures":
        if name in PEERS and venv is not None:
            command = [venv_python(venv), PEERS_FOLDER / f"{PEERS[name]}.py"]
            process = run(command, text=json_module.dumps(request))
        elif name in PEERS:
            process = run_module(f"bench.peers.decoding.{PEERS[name]}", request)
        else:
            process = run_module(
                "bench.decoding.generate_tfm", request | {"engine": "numpy" if name == "tfm numpy" else "torch"}
            )
        answer = process.answer()
        return {"rate": answer["tokens"] / answer["seconds"], "peak": process.peak}

    return Contestant(name, generate_texts)
