"""`python -m bench sharding`: memory and speed of processes with whole weights, and with parts of them."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bench.options import Json

MODES = ("none", "optimizer", "full", "full, recompute")


def sharding(
    dim: Annotated[int, typer.Option("--dim", metavar="N", min=8, help="Width of the model.")] = 1024,
    layers: Annotated[int, typer.Option("--layers", metavar="N", min=1, help="Layers of each stack.")] = 6,
    ranks: Annotated[int, typer.Option("--ranks", metavar="N", min=2, help="Processes.")] = 2,
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=64, help="Tokens of a batch.")] = 2048,
    updates: Annotated[int, typer.Option("--updates", metavar="N", min=1, help="Updates after the first.")] = 3,
    modes: Annotated[
        list[str] | None, typer.Option("--mode", metavar="NAME", help=f"One of: {'; '.join(MODES)}; may be repeated.")
    ] = None,
    json: Json = None,
) -> None:
    """Memory and speed of sharded training, by processes.

    A Transformer is trained by Adam on generated ids, by processes of one thread each. Memory is the largest resident
    one of a process; tokens are those of targets, of all processes.
    """
    from bench.processes import MIB, run, run_module
    from bench.report import table_reporter, write_json

    results = []
    with TemporaryDirectory() as temporary:
        dataset = Path(temporary).resolve() / "dataset"
        run_module(
            "bench.corpora.growth_dataset", {"folder": str(dataset), "rows": 20_000, "median": 20, "texts": False}
        )
        for mode in modes or MODES:
            request = {
                "dataset": str(dataset),
                "model": {
                    "max_length": 128,
                    **{
                        stack: {"layers": layers, "dim": dim, "heads": max(dim // 64, 1), "feed_forward_dim": 4 * dim}
                        for stack in ("encoder", "decoder")
                    },
                },
                "training": {
                    "max_steps": 1000,
                    "batch_tokens": tokens,
                    "precision": "fp32",
                    "device": "cpu",
                    "shard": mode.partition(",")[0],
                    "recompute": mode.endswith("recompute"),
                    "validation": {"every_steps": 1000},
                },
                "updates": updates,
                "out": str(Path(temporary).resolve() / mode.replace(", ", "-")),
            }
            launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
            file = Path(temporary) / "asked.json"
            file.write_text(dumps(request), encoding="utf-8")
            os.environ["OMP_NUM_THREADS"] = "1"
            answer = run([sys.executable, *launch, "-m", "bench.training.sharding_tfm", file]).answer()
            results.append({"mode": mode, **answer})
            table_reporter().line(f"{mode}: {answer['memory'] // MIB:,} MiB, {answer['rate']:,.0f} target tokens/s")
    first = results[0]
    table_reporter().table(
        f"{ranks} processes, {first['parameters']:,} parameters, Adam",
        ["training.shard", "peak MiB a process", "of the first", "target tokens/s", "of the first"],
        [
            [
                result["mode"],
                f"{result['memory'] / MIB:,.0f}",
                f"{result['memory'] / first['memory']:.2f}",
                f"{result['rate']:,.0f}",
                f"{result['rate'] / first['rate']:.2f}",
            ]
            for result in results
        ],
    )
    write_json(json, "sharding", {"dim": dim, "layers": layers, "ranks": ranks, "tokens": tokens}, results)


def dumps(document: object) -> str:
    """The document as JSON."""
    from json import dumps as to_json

    return to_json(document)
