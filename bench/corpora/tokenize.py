"""`python -m bench tokenize`: vocabularies learned and text split by them, beside the tools that people use."""

import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.options import Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Figures

PEERS_FOLDER = Path(__file__).parent.parent / "peers" / "corpora"


def tokenize(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...", help="Files, one sentence a line, also .gz.")],
    kind: Annotated[Literal["bpe", "unigram"], typer.Option("--kind", metavar="KIND", help="bpe or unigram.")] = "bpe",
    vocab_size: Annotated[int, typer.Option("--vocab-size", metavar="N", min=300, help="Pieces at most.")] = 8000,
    rounds: Rounds = 3,
    against: Annotated[
        str | None, typer.Option("--against", metavar="subword_nmt=PYTHON", help="A Python that has subword-nmt.")
    ] = None,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Lines a second split into pieces, beside three tools.

    All learn from the same files, and split them once, 1,000 lines at a time where they take several. Reading files
    and loading the vocabulary do not count, learning from start to end does. tokenizers splits by the vocabulary of
    tfm, the other two by their own.
    """
    from bench.compare import Contestant, median_figure
    from bench.report import contest, write_json
    from tfm.data.lines import open_lines

    with TemporaryDirectory() as temporary:
        folder, names = Path(temporary), []
        for number, file in enumerate(texts):
            names.append(f"text-{number}")
            (folder / names[-1]).write_text("".join(f"{line}\n" for line in open_lines(file)), encoding="utf-8")
        request = {"folder": str(folder), "texts": names, "kind": kind, "vocab_size": vocab_size}
        contestants = [
            Contestant("tfm", partial(measure_tfm, request)),
            Contestant("tokenizers", partial(measure_peer, request, "tokenizers", Path(sys.executable))),
            Contestant("sentencepiece", partial(measure_peer, request, "sentencepiece", Path(sys.executable))),
        ]
        if against is not None:
            name, _, python = against.partition("=")
            if name != "subword_nmt" or not Path(python).expanduser().exists():
                raise typer.BadParameter(f"{against}: write subword_nmt=PYTHON, an interpreter", param_hint="--against")
            contestants.append(Contestant(name, partial(measure_peer, request, name, Path(python))))
        summaries = contest(
            f"{kind} of {vocab_size:,} pieces, {', '.join(map(str, texts))}",
            add_predictions(contestants, predict),
            rounds=rounds,
            unit="lines/s",
            extra=lambda all_: {
                "seconds to learn": {
                    contestant: f"{median_figure(figures, 'learning'):.2f}" for contestant, figures in all_.items()
                }
            },
        )
    write_json(json, "tokenize", {**request, "texts": texts}, {"contestants": summaries})


def measure_tfm(request: dict[str, object]) -> "Figures":
    """`tfm tokenize`, and the text split by its tokenizer as `tfm preprocess` does."""
    from bench.processes import run_module, run_tfm

    folder, names = Path(str(request["folder"])), request["texts"]
    assert isinstance(names, list)
    with TemporaryDirectory(dir=folder) as out:
        flags = ("--kind", str(request["kind"]), "--vocab-size", str(request["vocab_size"]))
        process = run_tfm("tokenize", *names, *flags, "--out", f"{out}/tokenizer", folder=folder)
        split = run_module("bench.corpora.tokenize_tfm", {**request, "tokenizer": f"{out}/tokenizer"})
        (folder / "tokenizer.json").write_bytes((Path(out) / "tokenizer" / "tokenizer.json").read_bytes())
    return {**split.answer(), "learning": process.seconds, "peak": split.peak}


def measure_peer(request: dict[str, object], name: str, python: Path) -> "Figures":
    """A peer's script, run by a Python that has it."""
    from json import dumps

    from bench.processes import run

    process = run([python.expanduser(), PEERS_FOLDER / f"tokenize_{name}.py"], text=dumps(request))
    return {**process.answer(), "peak": process.peak}
