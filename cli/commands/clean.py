"""`tfm clean`: training pairs that pass rules, and what was dropped, with the reason."""

from pathlib import Path
from typing import Annotated, Any

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


def clean(
    corpus: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SRC TGT]", help="Aligned text files, one sentence per line, maybe compressed."),
    ] = None,
    recipe: RecipeFile = None,
    test: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--test", metavar="SRC TGT", help="Aligned files whose texts no training pair may have."),
    ] = None,
    source_language: Annotated[
        str | None, typer.Option("--from", metavar="CODE", help="Drop sources that are not in this language (en).")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="CODE", help="Drop targets that are not in this language (de).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what each rule would drop, alone and after the others.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="With --dry-run: the same as a page, with examples.")
    ] = None,
    cluster: ClusterAddress = None,
    sets: RecipeOverrides = None,
    out: OutFolder = None,
) -> None:
    """Drop training pairs that do not pass rules: of length, ratio, letters, duplicates, language ...

    The pairs are those of a recipe with [clean], or of the two text files SRC and TGT.
    """
    flags = {"clean.language.source": source_language, "clean.language.target": to}
    if html is not None and not dry_run:
        raise typer.BadParameter("it is for --dry-run; otherwise the page is report.html in --out", param_hint="--html")
    if dry_run:
        reject_flags({"--out": out}, "not allowed with --dry-run, which writes nothing")
    if recipe is not None:
        reject_flags({"SRC TGT": corpus, "--test": test}, "not allowed with --recipe, which names the corpora")
        if not dry_run:
            run_recipe_stage("clean", recipe, sets, flags, out, cluster=cluster)
            return
        from tfm.pipeline.errors import RecipeError
        from tfm.pipeline.recipes.recipe import load_recipe

        resolved = load_recipe(recipe, sets or (), flags)
        if resolved.clean is None:
            raise RecipeError(f"{recipe}: has no [clean]: add it, with the rules that training pairs must pass")
        config, data, device = resolved.clean, resolved.data, resolved.training.device
    else:
        if len(require_flag(corpus or None, "SRC TGT")) != 2:
            raise typer.BadParameter("give two files, SRC and TGT, or --recipe", param_hint="SRC TGT")
        from tfm.data.config import DataConfig
        from tfm.pipeline.cleaning.config import CleanConfig

        device = "auto"
        config = config_section(CleanConfig, sets, flags, other_sections=("data",))
        data = config_section(DataConfig, sets, _data_flags(corpus or [], test), other_sections=("clean",))
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.clean import clean as clean_stage
    from tfm.pipeline.stages.clean import show_dry_run

    common_arguments: dict[str, Any] = {"reporter": make_reporter(), "device": device, "cluster": cluster}
    if dry_run:
        show_dry_run(config, data, html, whole_corpora=recipe is None, **common_arguments)
        return
    clean_stage(
        config, data, require_flag(out, "--out"), whole_corpora=True, command=command_line(), **common_arguments
    )


def _data_flags(corpus: list[Path], test: tuple[Path, Path] | None) -> dict[str, object]:
    train = {"format": "text", "source": str(corpus[0]), "target": str(corpus[1])}
    test_corpus = None if test is None else {"format": "text", "source": str(test[0]), "target": str(test[1])}
    return {"data.train": [train], "data.valid": None, "data.tests": {"test": test_corpus} if test_corpus else None}
