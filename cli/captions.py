"""`tfm translate` of models that read images: captions or labels of image files."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfm.cli.options import DeviceName, command_line
from tfm.cli.streams import print_data, print_json

if TYPE_CHECKING:
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.inference.translation_records import Translation
    from tfm.pipeline.model_io.loaded_model import LoadedModel


def reads_images(model: Path, step: str | None) -> bool:
    """Return whether the model, or the training of which a checkpoint is asked for, reads images.

    Raises DataError if there is no model: an image would be read as a text, and refused as no UTF-8.
    """
    from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, read_manifest
    from tfm.pipeline.model_io import model_folder

    if step is not None:
        return model_folder.reads_images(model / "training" / "tokenizer")
    folder = model_folder.resolve_model_folder(model)
    if not (folder / MANIFEST_FILE).exists():
        read_manifest(folder, folder)
    return model_folder.reads_images(folder)


def image_arguments(file: Path | None, more_files: list[Path] | None, model: Path) -> list[Path]:
    """Return the image files that are named, or lie in folders that are.

    Args:
        file: the first name; None or `-` for none.
        more_files: further names.
        model: the model, for the message.

    Raises:
        typer.BadParameter: no file is named.
    """
    from tfm.pipeline.inference.image_files import list_image_files

    if file is None or file == Path("-"):
        raise typer.BadParameter(f"{model} reads images: name files, or folders of them", param_hint="IMAGE")
    return list_image_files([file, *(more_files or ())])


def print_captions(
    load: "Callable[[], LoadedModel]",
    files: list[Path],
    config: "DecodingConfig",
    prefixes: Iterable[str] | None,
    forced: Iterable[str] | None,
    jsonl: bool,
) -> None:
    """Print the caption or label of each image.

    Args:
        load: () -> the model.
        files: the image files.
        config: the [decoding] part of a recipe.
        prefixes: prefixes, one an image; None for none.
        forced: forced phrases, one line an image; None for none.
        jsonl: whether to print JSON lines.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.inference.image_files import decode_images
    from tfm.pipeline.inference.translation import translate_images

    loaded = load()
    images = decode_images(files, loaded.require_image_transform())
    translations = translate_images(loaded, images, config, reporter=make_reporter(), prefixes=prefixes, forced=forced)
    for number, (file, captions) in enumerate(zip(files, translations, strict=True), 1):
        print_hypotheses(number, str(file), captions, config, jsonl)


def caption_images_to_folder(
    models: list[Path],
    files: list[Path],
    config: "DecodingConfig",
    prefix_and_forced: tuple[Path | None, Path | None],
    out: Path,
    device: DeviceName,
) -> None:
    """Caption or label images into an artifact.

    Args:
        models: folders of the models, the others of an ensemble after the first.
        files: the image files.
        config: the [decoding] part of a recipe.
        prefix_and_forced: the files of prefixes and of forced words; None for none.
        out: the folder of the artifact.
        device: name of the device.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.stages.translate_images import translate_image_files

    prefixes, forced = prefix_and_forced
    common_arguments = {
        "command": command_line(),
        "reporter": make_reporter(),
        "device": device,
        "ensemble": models[1:],
    }
    translate_image_files(models[0], files, config, out, **common_arguments, prefixes=prefixes, forced=forced)  # type: ignore[arg-type]


def print_hypotheses(
    line_number: int, source: str, translations: "Sequence[Translation]", config: "DecodingConfig", jsonl: bool
) -> None:
    """Print the hypotheses of a source.

    Args:
        line_number: number of the source, from 1.
        source: the source, for JSON.
        translations: its hypotheses, best first.
        config: the [decoding] part of a recipe.
        jsonl: whether to print a JSON line.
    """
    from tfm.pipeline.inference.translation_records import translations_as_json

    if jsonl:
        print_json(translations_as_json(source, translations))
        return
    lines = "\n".join(f"{line_number}\t{each.score:.6f}\t{each.text}" for each in translations)
    print_data(lines if config.n_best > 1 else translations[0].text)
