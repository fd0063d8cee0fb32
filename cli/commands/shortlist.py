"""`tfm shortlist`: the pieces by which translations may go on, learned from alignments."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import command_line

MAX_PIECES = 1 << 16


def shortlist(
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="A dataset/, or the folder of its run: its training pairs count.")
    ],
    links: Annotated[
        Path,
        typer.Option(
            "--links",
            metavar="FILE",
            help="Links between the words of each training pair (0-0 1-2), as `tfm align MODEL DATASET` prints them.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the shortlist.")],
    linked: Annotated[
        int,
        typer.Option(
            "--linked", metavar="N", min=1, max=MAX_PIECES, help="Target pieces that are kept of each source piece."
        ),
    ] = 50,
    frequent: Annotated[
        int,
        typer.Option(
            "--frequent", metavar="N", min=0, max=MAX_PIECES, help="Most frequent target pieces, kept in any sentence."
        ),
    ] = 100,
) -> None:
    """Make a shortlist: for each piece of a source the target pieces that its translations are made of.

    tfm align RUN DATASET > links.txt, tfm shortlist DATASET --links links.txt --out DIR, and then

    tfm translate RUN FILE --set decoding.shortlist=DIR

    A small model is faster by it, as it computes the probabilities of a few hundred pieces in place of all.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.shortlist import make_shortlist

    folder = dataset / "dataset" if (dataset / "dataset").is_dir() else dataset
    make_shortlist(
        folder,
        links,
        out,
        num_linked=linked,
        num_frequent=frequent,
        command=command_line(),
        reporter=make_reporter(),
    )
