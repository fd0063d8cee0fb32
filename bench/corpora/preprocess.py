"""`python -m bench preprocess`: the stage compared with a bare loop of the tokenizer, and its memory."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.processes import FinishedProcess

BARE_LOOP = Path(__file__).parent.parent / "peers" / "corpora" / "bare_loop.py"
VOCAB_SIZE = 8000
MIN_PAIRS = 10_000


def preprocess(
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", min=1, help="Lines of each side.")] = 500_000,
    sentences: Annotated[
        int, typer.Option("--sentences", metavar="N", min=1, help="Of 8 words on average, on each line.")
    ] = 1,
    rounds: Rounds = 2,
    memory: Annotated[
        bool, typer.Option("--memory", help="Instead: peak memory at 10^4, 10^5, ... lines of each side.")
    ] = False,
    largest: Annotated[
        int, typer.Option("--largest", metavar="N", min=MIN_PAIRS, help="With --memory: where that ends.")
    ] = 1_000_000,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where to write; default: a temporary folder.")
    ] = None,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Lines a second of `tfm preprocess`, beside a bare loop.

    The text is of the built-in grammar, the tokenizer a BPE of 8,000 pieces. The loop reads the same files, calls the
    tokenizer's encode_batch_fast on 1,000 lines at a time and keeps nothing.
    """
    from bench.compare import Contestant, Figures
    from bench.processes import run
    from bench.report import contest, write_json

    with TemporaryDirectory() as temporary:
        path = (folder or Path(temporary)).resolve()
        if memory:
            write_json(
                json, "preprocess", {"memory": True, "sentences": sentences}, measure_growth(path, largest, sentences)
            )
            return
        prepare_corpus(path, pairs, sentences)
        learn_tokenizer(path)

        def preprocess_ours() -> Figures:
            process = run_stage(path)
            return {"rate": 2 * pairs / process.seconds, "peak": process.peak}

        def preprocess_bare() -> Figures:
            files = [path / "train.en", path / "train.de"]
            process = run([sys.executable, BARE_LOOP, path / "tokenizer" / "tokenizer.json", *files])
            return {"rate": 2 * pairs / process.seconds, "peak": process.peak}

        contestants = add_predictions(
            [Contestant("tfm preprocess", preprocess_ours), Contestant("bare loop", preprocess_bare)], predict
        )
        summaries = contest(f"{2 * pairs:,} lines", contestants, rounds=rounds, unit="lines/s")
        write_json(json, "preprocess", {"pairs": pairs, "sentences": sentences, "rounds": rounds}, summaries)


def measure_growth(path: Path, largest: int, sentences: int) -> list[dict[str, float]]:
    """Lines a second and peak memory of the stage, on ten times as much text each time."""
    from bench.processes import MIB
    from bench.report import table_reporter

    results: list[dict[str, float]] = []
    pairs = MIN_PAIRS
    while pairs <= largest:
        prepare_corpus(path, pairs, sentences)
        if not results:
            learn_tokenizer(path)
        process = run_stage(path)
        results.append(
            {"pairs": pairs, "seconds": process.seconds, "rate": 2 * pairs / process.seconds, "peak": process.peak}
        )
        table_reporter().line(f"{pairs:,} lines of each side: {process.peak // MIB:,} MiB")
        pairs *= 10
    rows = [[int(each["pairs"]), each["seconds"], round(each["rate"]), round(each["peak"] / MIB)] for each in results]
    table_reporter().table("tfm preprocess", ["lines of each side", "seconds", "lines/s", "peak MiB"], rows)
    return results


def prepare_corpus(path: Path, pairs: int, sentences: int) -> None:
    """The text files."""
    from bench.processes import run_module

    run_module("bench.corpora.corpus", {"folder": str(path), "pairs": pairs, "sentences": sentences})


def learn_tokenizer(path: Path) -> None:
    """The tokenizer, of the text that is there."""
    from bench.processes import run_tfm

    run_tfm("tokenize", "train.en", "train.de", "--vocab-size", str(VOCAB_SIZE), "--out", "tokenizer", folder=path)


def run_stage(
    path: Path, further: Sequence[str] = (), variables: Mapping[str, str] = MappingProxyType({})
) -> "FinishedProcess":
    """The whole stage, into a folder that is not there yet, with further words of its command and its environment."""
    from bench.corpora.corpus import LANGUAGES, SPLITS
    from bench.processes import run_tfm

    splits = [word for split in SPLITS for word in (f"--{split}", *(f"{split}.{each}" for each in LANGUAGES))]
    with TemporaryDirectory(dir=path) as out:
        command = ("preprocess", *splits, "--tokenizer", "tokenizer", "--out", f"{out}/dataset", *further)
        return run_tfm(*command, folder=path, variables=variables)
