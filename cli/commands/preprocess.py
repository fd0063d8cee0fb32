"""`tfm preprocess`: corpora and a tokenizer to a dataset of encoded, bucketed examples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import (
    ClusterAddress,
    OutFolder,
    RecipeFile,
    RecipeOverrides,
    command_line,
    config_section,
    reject_flags,
    require_flag,
    run_recipe_stage,
)

PathPair = tuple[Path, Path]


def preprocess(
    recipe: RecipeFile = None,
    train: Annotated[
        PathPair | None, typer.Option("--train", metavar="SRC TGT", help="Aligned training files, maybe compressed.")
    ] = None,
    valid: Annotated[
        PathPair | None, typer.Option("--valid", metavar="SRC TGT", help="Aligned validation files.")
    ] = None,
    test: Annotated[PathPair | None, typer.Option("--test", metavar="SRC TGT", help="Aligned test files.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option("--tokenizer", metavar="DIR", help="What `tfm tokenize` made, or a model.")
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option("--from", metavar="LANGUAGE", help="The sources' language (eng), for several languages."),
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="LANGUAGE", help="The targets' language (deu).")] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option("--batch-tokens", metavar="N", help="Maximum padded tokens of a batch, on its larger side."),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option("--max-length", metavar="N", help="Drop training examples with more pieces than this.")
    ] = None,
    max_ratio: Annotated[
        float | None,
        typer.Option(
            "--max-ratio", metavar="X", help="Drop training examples with a larger length ratio of the sides."
        ),
    ] = None,
    cluster: ClusterAddress = None,
    sets: RecipeOverrides = None,
    out: OutFolder = None,
) -> None:
    """Check, split, encode and bucket the corpora.

    Missing validation and test data are split off the training corpus at random: 80/10/10.
    """
    languages = {"source_language": source_language, "target_language": to}
    flags = {
        "data.train": [_corpus_settings(train, languages)] if train else None,
        "data.valid": _corpus_settings(valid, languages) if valid else None,
        "data.tests": {"test": _corpus_settings(test, languages)} if test else None,
        "data.batch_tokens": batch_tokens,
        "data.limits.max_length": max_length,
        "data.limits.max_ratio": max_ratio,
    }
    if recipe is not None:
        recipe_flags: dict[str, object] = {"--train": train, "--valid": valid, "--test": test, "--tokenizer": tokenizer}
        recipe_flags |= {"--from": source_language, "--to": to}
        reject_flags(recipe_flags, "not allowed with --recipe, which names it")
        run_recipe_stage("preprocess", recipe, sets, flags, out, cluster=cluster)
        return
    require_flag(train, "--train")
    tokenizer_folder, folder = require_flag(tokenizer, "--tokenizer"), require_flag(out, "--out")
    from tfm.cli.console import make_reporter
    from tfm.data.config import DataConfig
    from tfm.pipeline.stages.preprocess import preprocess as preprocess_stage

    config = config_section(DataConfig, sets, flags)
    preprocess_stage(
        config, tokenizer_folder, folder, command=command_line(), reporter=make_reporter(), cluster=cluster
    )


def _corpus_settings(pair: PathPair, languages: Mapping[str, str | None]) -> dict[str, str]:
    language_settings = {key: code for key, code in languages.items() if code is not None}
    return {"format": "text", "source": str(pair[0]), "target": str(pair[1]), **language_settings}
