"""`tfm align`: which word of a source each word of its translation belongs to."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import Device, SourceLanguage, TargetLanguage, reject_flags, require_flag
from tfm.cli.streams import print_data, print_json
from tfm.pipeline.model_io.model_folder import model_folder

CHUNK_PAIRS = 512
MAX_ROWS = 10
"""The most heads in the table, the best ones; --json has all."""
Layer = Annotated[
    int | None,
    typer.Option("--layer", metavar="N", help="Layer of cross-attention that aligns, from 1; default: the last."),
]
Head = Annotated[
    int | None, typer.Option("--head", metavar="N", help="Head that aligns, from 1; default: the mean of the layer's.")
]
Shifted = Annotated[
    bool,
    typer.Option(
        "--shifted", help="Take the attention of the row that has read a word, not of the one that predicts it."
    ),
]


def align(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A trained model: its model/, or the folder of its run.")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="File of sources, one per line; or `grammar`: the test sentences of the built-in corpus, whose gold "
            "alignments are known.",
        ),
    ],
    target: Annotated[
        Path | None, typer.Argument(metavar="[TARGET]", help="File of their translations, line by line.")
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            help="Gold alignments (1-2 sure, 1p2 possible): print the error rates of all heads instead of alignments.",
        ),
    ] = None,
    layer: Layer = None,
    head: Head = None,
    shifted: Shifted = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the error rates as JSON.")] = False,
    to: TargetLanguage = None,
    source_language: SourceLanguage = None,
    device: Device = None,
) -> None:
    """Align the words of sentences and their translations, by the cross-attention of a model.

    Prints a line for each pair: 0-0 1-2, places of words of source and target, from 0.

    With --gold, or of `grammar`: the alignment error rate of each head, or of the one that is chosen.
    """
    from tfm.pipeline.alignment.gold import is_built_in, read_built_in, read_pair_files

    if is_built_in(source):
        reject_flags({"TARGET": target, "--gold": gold}, f"{source} has translations and gold alignments of its own")
    elif gold is None:
        reject_flags({"--json": as_json or None}, "is for error rates, which need --gold FILE")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.alignment.extraction import WordAligner, align_chunks
    from tfm.pipeline.alignment.head_scores import COLUMNS, score_heads
    from tfm.pipeline.alignment.pharaoh import format_links
    from tfm.pipeline.model_io.loaded_model import load_model

    pairs, wanted = (
        read_built_in(str(source))
        if is_built_in(source)
        else read_pair_files(source, require_flag(target, "TARGET"), gold)
    )
    loaded = load_model(model_folder(model), device or "auto").for_languages(to, source_language)
    aligner = WordAligner(loaded)
    chosen = aligner.choose_head(layer, head, shifted=shifted)
    if wanted is None:
        for links in align_chunks(aligner, iter(pairs), chosen, CHUNK_PAIRS):
            print_data(format_links(links))
        return
    is_given = layer is not None or head is not None or shifted
    scored = score_heads(aligner, pairs, wanted, [chosen] if is_given else aligner.heads())
    if as_json:
        print_json({"pairs": len(pairs), "heads": [each.as_json() for each in scored]})
        return
    title = f"Alignment error rate of heads, {len(pairs):,} pairs, {scored[0].scores['aer'].signature}"
    make_reporter(tables_on_stdout=True).table(title, COLUMNS, [each.row() for each in scored[:MAX_ROWS]])
