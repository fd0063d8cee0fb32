"""`tfm import`: a model of transformers as one of ours."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.options import command_line


def import_model(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder as `save_pretrained` writes it.")],
    out: Annotated[Path, typer.Option("--out", metavar="MODEL", help="Output folder: the model.")],
) -> None:
    """Take over a model of the library transformers.

    Classes: Marian, Pegasus, GPT-2, Llama, BERT, RoBERTa, RobertaPreLayerNorm, MegatronBERT.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.model_io.huggingface.importing import import_model as take_over

    take_over(folder, out, command=command_line(), reporter=make_reporter())
