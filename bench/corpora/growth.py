"""`python -m bench growth`: the start of a training, its memory and its pauses, by the rows of its dataset."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bench.options import Json

MODEL = {
    "max_length": 128,
    "encoder": {"layers": 1, "dim": 32, "heads": 2, "feed_forward_dim": 64},
    "decoder": {"layers": 1, "dim": 32, "heads": 2, "feed_forward_dim": 64},
}
TRAINING = {"log_every": 1000, "threads": 1, "parallel": "threads", "precision": "fp32"}
BLOCK = 128
VOCAB, BATCH_TOKENS = 8_000, 4_096


def growth(
    rows: Annotated[
        list[int] | None, typer.Option("--rows", metavar="N", min=1, help="Rows of a dataset; may be repeated.")
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", metavar="N", min=1, help="Epochs of the training.")] = 30,
    updates: Annotated[int, typer.Option("--updates", metavar="N", min=1, help="Updates after the first.")] = 60,
    median: Annotated[float, typer.Option("--median", metavar="N", min=1, help="Tokens of a side.")] = 10.0,
    texts: Annotated[bool, typer.Option("--texts", help="Instead: running text of a language model.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Where to write; default: a temporary folder.")
    ] = None,
    json: Json = None,
) -> None:
    """Start, memory and pauses of training by rows of data.

    The datasets have generated lengths and ids, the training a small model and many epochs, whose updates are counted
    before the first. A dataset is read once before, as its first verification reads it whole; memory is resident and
    anonymous: the mapped file does not count.
    """
    from bench.processes import MIB, run_module
    from bench.report import table_reporter, write_json

    request = {"model": MODEL, "training": {**TRAINING, "max_epochs": epochs}, "updates": updates}
    if texts:
        text_model = {**MODEL, "architecture": "decoder_only", "task": "language_model", "block": BLOCK}
        request["model"] = {key: value for key, value in text_model.items() if key != "encoder"}
    results: list[dict[str, float]] = []
    for count in rows or [10_000, 100_000, 1_000_000]:
        with TemporaryDirectory(dir=folder) as temporary:
            dataset = Path(temporary).resolve() / "dataset"
            size = {"rows": count, "median": median, "vocab": VOCAB, "batch_tokens": BATCH_TOKENS}
            run_module("bench.corpora.growth_dataset", {"folder": str(dataset), "texts": texts, **size})
            num_bytes = sum(file.stat().st_size for file in dataset.rglob("*.arrow"))
            run_tfm_inspect(dataset)
            answer = run_module("bench.corpora.growth_tfm", {**request, "dataset": str(dataset)}).answer()
        results.append({"rows": count, "file": num_bytes, **answer})
        table_reporter().line(f"{count:,} rows: first update after {answer['start']:.1f} s")
    table_reporter().table(
        f"a training of {epochs} epochs",
        ["rows", "file MiB", "first update s", "memory MiB", "pause between epochs s", "updates/s"],
        [
            [
                f"{int(result['rows']):,}",
                f"{result['file'] / MIB:,.0f}",
                f"{result['start']:.1f}",
                f"{result['memory'] / MIB:,.0f}",
                f"{result['pause']:.2f}",
                f"{result['rate']:.1f}",
            ]
            for result in results
        ],
    )
    write_json(json, "growth", {"epochs": epochs, "median": median, "texts": texts, "updates": updates}, results)


def run_tfm_inspect(dataset: Path) -> None:
    """Verify a dataset, once its files are old enough for their hashes to be remembered."""
    import time

    from bench.processes import run_tfm
    from tfm.pipeline.artifacts.files import MIN_CACHEABLE_AGE_NS

    time.sleep(1.1 * MIN_CACHEABLE_AGE_NS / 1e9)
    run_tfm("inspect", dataset)
