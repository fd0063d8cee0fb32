"""`tfm tokenize`: raw text to a tokenizer."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import (
    OutFolder,
    RecipeFile,
    RecipeOverrides,
    command_line,
    config_section,
    reject_flags,
    require_flag,
    run_recipe_stage,
)


def tokenize(
    corpora: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[CORPUS...]", help="Text files, one sentence per line, maybe compressed."),
    ] = None,
    recipe: RecipeFile = None,
    file: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="Use a tokenizer of another program, and measure it on text."),
    ] = None,
    grow: Annotated[
        int | None,
        typer.Option("--grow", metavar="N", help="Add N pieces to those of --from, learned from the text."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="bpe, wordpiece, unigram, char, byte, word or codepoint.", metavar="KIND"),
    ] = None,
    vocab_size: Annotated[
        int | None,
        typer.Option("--vocab-size", metavar="N", help="Maximum number of pieces, including control tokens."),
    ] = None,
    lowercase: Annotated[
        bool | None, typer.Option("--lowercase/--no-lowercase", help="Lower-case all text first.")
    ] = None,
    normalization: Annotated[
        str | None, typer.Option("--normalization", metavar="FORM", help="none, nfc, nfd, nfkc or nfkd.")
    ] = None,
    min_frequency: Annotated[
        int | None, typer.Option("--min-frequency", metavar="N", help="Do not learn pieces that occur less often.")
    ] = None,
    sets: RecipeOverrides = None,
    out: OutFolder = None,
) -> None:
    """Learn a tokenizer from raw text, or use an existing one, which may be given more pieces.

    From the training corpora of a recipe, or from the text files CORPUS.
    """
    flags: dict[str, object] = {
        "tokenizer.file": None if file is None else str(file),
        "tokenizer.grow": grow,
        "tokenizer.kind": kind,
        "tokenizer.vocab_size": vocab_size,
        "tokenizer.lowercase": lowercase,
        "tokenizer.normalization": normalization,
        "tokenizer.min_frequency": min_frequency,
    }
    if recipe is not None:
        reject_flags({"CORPUS": corpora}, "not allowed with --recipe, which names the corpora")
        run_recipe_stage("tokenize", recipe, sets, flags, out)
        return
    files, folder = require_flag(corpora or None, "CORPUS"), require_flag(out, "--out")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.tokenize import tokenize_files
    from tfm.tokenizer.config import TokenizerConfig

    config = config_section(TokenizerConfig, sets, flags)
    tokenize_files(config, files, folder, command=command_line(), reporter=make_reporter())
