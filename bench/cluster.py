"""`python -m bench cluster`: pairs and lines a second of a cluster's nodes, beside one process of as many threads."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import Json, Rounds

if TYPE_CHECKING:
    from bench.compare import Figures

MAX_DISTINCT_PAIRS = 1_000_000
"""Pairs that the grammar makes; a longer text repeats them."""


def cluster(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="To translate with; without one, pairs are preprocessed.")
    ] = None,
    source: Annotated[Path | None, typer.Argument(metavar="SOURCE", help="Text that MODEL translates.")] = None,
    pairs: Annotated[
        int, typer.Option("--pairs", metavar="N", min=1, help="To preprocess, of the built-in grammar.")
    ] = 1_000_000,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", min=1, help="Of one processor each.")] = 2,
    beam: Annotated[int, typer.Option("--beam", metavar="W", min=1, help="Beam width.")] = 1,
    rounds: Rounds = 1,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where to write; default: a temporary folder.")
    ] = None,
    json: Json = None,
) -> None:
    """Pairs or lines a second on a cluster, beside one process.

    Ray's nodes are on this machine and have one processor each; the one process has as many threads. A command is
    measured from its start to its end, Ray's connection with it, but not the start of the nodes. The memory of a
    cluster is that of the largest process that computes chunks, what is mapped or shared left out.
    """
    from bench.compare import Contestant
    from bench.ray_nodes import WorkerMemory, start_nodes
    from bench.report import contest, write_json

    if (model is None) != (source is None):
        raise typer.BadParameter("MODEL and SOURCE go together")
    with TemporaryDirectory(dir=folder) as temporary, start_nodes(nodes) as address:
        path = Path(temporary).resolve()
        if model is None or source is None:
            number, run, unit = pairs, preprocess_pairs(path, pairs, nodes), "pairs/s"
        else:
            number, run, unit = translate_lines(path, model.resolve(), source.resolve(), beam, nodes)

        def run_on_cluster() -> "Figures":
            with WorkerMemory() as memory:
                figures = run(("--cluster", address))
            return {**figures, "driver": figures["peak"], "peak": memory.peak}

        contestants = [Contestant("one process", lambda: run(())), Contestant(f"{nodes} nodes", run_on_cluster)]
        summaries = contest(f"{number:,}", contestants, rounds=rounds, unit=unit)
        settings = {"pairs": pairs, "model": model, "source": source, "nodes": nodes, "beam": beam, "rounds": rounds}
        write_json(json, "cluster", settings, summaries)


def preprocess_pairs(folder: Path, pairs: int, threads: int) -> "Callable[[tuple[str, ...]], Figures]":
    """Write the text and its tokenizer, and return a function that preprocesses it, given further arguments."""
    from bench.corpora.corpus import LANGUAGES
    from bench.corpora.preprocess import learn_tokenizer, prepare_corpus, run_stage

    prepare_corpus(folder, min(pairs, MAX_DISTINCT_PAIRS), sentences=1)
    for language in LANGUAGES:
        repeat_lines(folder / f"train.{language}", pairs)
    learn_tokenizer(folder)

    def run(words: tuple[str, ...]) -> "Figures":
        process = run_stage(folder, words, {"RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)})
        return {"rate": pairs / process.seconds, "seconds": process.seconds, "peak": process.peak}

    return run


def repeat_lines(file: Path, number: int) -> None:
    """Append the lines of a file to it, again and again, until there are so many."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    with file.open("a", encoding="utf-8") as added:
        for count in range(len(lines), number, len(lines)):
            added.writelines(lines[: number - count])


def translate_lines(
    folder: Path, model: Path, source: Path, beam: int, threads: int
) -> "tuple[int, Callable[[tuple[str, ...]], Figures], str]":
    """The number of lines; what translates them, given further words of the command; the unit of its rate."""
    from bench.processes import run_tfm
    from tfm.data.lines import open_lines

    number = sum(1 for _ in open_lines(source))

    def run(words: tuple[str, ...]) -> "Figures":
        with TemporaryDirectory(dir=folder) as out:
            search = ("--beam", str(beam), "--out", f"{out}/translations", *words)
            process = run_tfm("translate", model, source, *search, variables={"OMP_NUM_THREADS": str(threads)})
        return {"rate": number / process.seconds, "seconds": process.seconds, "peak": process.peak}

    return number, run, "lines/s"
