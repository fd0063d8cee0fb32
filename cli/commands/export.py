"""`tfm export`: a trained model in another engine's format."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tfm.cli.options import argv
from tfm.pipeline.model_io.model_folder import model_folder

Format = Literal["ctranslate2"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A trained model.")],
    to: Annotated[Format, typer.Option("--to", help="The engine that will read it.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")],
) -> None:
    """Convert a model to the format of another engine (ctranslate2: `pip install "tfm[export]"`)."""
    from tfm.cli.console import reporter
    from tfm.pipeline.model_io.export import export as export_model

    export_model(model_folder(model), to, out, command=argv(), reporter=reporter())
