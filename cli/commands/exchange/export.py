"""`tfm export`: a trained model in another engine's format."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tfm.cli.commands.exchange.card_options import CardLanguages, CardLicense
from tfm.cli.options import command_line, reject_flags
from tfm.pipeline.model_io.model_folder import resolve_model_folder

ExportFormat = Literal["ctranslate2", "huggingface", "onnx"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A trained model.")],
    to: Annotated[ExportFormat, typer.Option("--to", help="The engine that will read it.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")],
    language: CardLanguages = None,
    license: CardLicense = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Model card: the model's name (default: that of DIR).")
    ] = None,
    quantize: Annotated[
        Literal["int8"] | None, typer.Option("--quantize", help="ONNX: the matrices in 8 bits.")
    ] = None,
) -> None:
    """Convert a model to the format of another engine.

    huggingface: a folder that transformers reads, with a model card.
    ctranslate2: needs `pip install "tfm-toolkit[export]"`.
    onnx: a folder for onnxruntime, with a script; needs `pip install "tfm-toolkit[onnx]"`.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.model_io.export import ExportOptions
    from tfm.pipeline.model_io.export import export as export_model

    card, folder = None, resolve_model_folder(model)
    if to != "onnx":
        reject_flags({"--quantize": quantize}, f"is for --to onnx, not --to {to}")
    if to == "huggingface":
        from tfm.pipeline.model_io.huggingface.card import ModelCard
        from tfm.pipeline.reports.find_scores import find_model_scores

        card = ModelCard(tuple(language or ()), license, name or out.resolve().name, find_model_scores(folder))
    else:
        card_flags = {"--language": language, "--license": license, "--name": name}
        reject_flags(card_flags, f"is for a model card, which --to {to} does not write")
    options = ExportOptions(card, quantize)
    export_model(folder, to, out, command=command_line(), reporter=make_reporter(), options=options)
