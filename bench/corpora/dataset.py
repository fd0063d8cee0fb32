"""`python -m bench dataset`: a dataset of generated lengths and ids, of any size."""

from pathlib import Path
from typing import Annotated

import typer


def dataset(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="What is written: as by `tfm preprocess`.")],
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Rows of the training split.")] = 100_000,
    median: Annotated[float, typer.Option("--median", metavar="N", min=1, help="Tokens of a side.")] = 22.0,
    vocab: Annotated[
        int, typer.Option("--vocab", metavar="N", min=100, help="Pieces, control tokens counted.")
    ] = 37_000,
    batch_tokens: Annotated[
        int, typer.Option("--batch-tokens", metavar="N", min=1, help="Tokens of a side of a batch.")
    ] = 25_000,
    texts: Annotated[bool, typer.Option("--texts", help="Instead: running text of a language model.")] = False,
) -> None:
    """Write a dataset of generated lengths and ids, for measuring without a corpus.

    The defaults are those of WMT 2014, English to German (Vaswani et al. 2017): 37,000 pieces, batches of 25,000
    tokens a side. Lengths are log-normal and correlated, ids are uniform; nothing can be learned from them.
    """
    from bench.processes import run_module

    size = {"rows": rows, "median": median, "vocab": vocab, "batch_tokens": batch_tokens, "texts": texts}
    run_module("bench.corpora.growth_dataset", {"folder": str(out.resolve()), **size})
