"""`tfm export`: a trained model in another engine's format."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tfm.cli.options import argv, model_folder

Format = Literal["ctranslate2"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `tfm train` made.")],
    to: Annotated[Format, typer.Option("--to", help="The engine that is to read it.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where it goes.")],
) -> None:
    """Write a model as another engine reads it (ctranslate2: `pip install "tfm[export]"`)."""
    from tfm.cli.console import reporter
    from tfm.pipeline.model_io.export import export as export_model

    export_model(model_folder(model), to, out, command=argv(), reporter=reporter())
