"""Captions or labels of image files by a trained model, as the translate stage makes translations of a text."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tfm.data.errors import escape_control_characters
from tfm.data.lines import open_lines
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish
from tfm.pipeline.config import DecodingConfig, Device
from tfm.pipeline.inference.image_files import decode_images
from tfm.pipeline.inference.translation import translate_images
from tfm.pipeline.inference.translation_records import IMAGES_UNIT, Translation, write_translations
from tfm.pipeline.runtime.progress import Reporter


def plan_image_translation(
    model: Path,
    files: Sequence[Path],
    config: DecodingConfig,
    out: Path,
    *,
    prefixes: Path | None = None,
    forced: Path | None = None,
    ensemble: Sequence[Path] = (),
) -> Plan:
    """Return the plan of `translate_image_files`.

    Args:
        model: the folder of the model.
        files: the images.
        config: the [decoding] part of a recipe.
        out: the folder of the captions.
        prefixes: the file of prefixes; None for none.
        forced: the file of forced phrases; None for none.
        ensemble: the folders of the other models of the ensemble.
    """
    inputs = {"model": Input.from_artifact(model, "train")}
    inputs |= {f"model {number}": Input.from_artifact(folder, "train") for number, folder in enumerate(ensemble, 2)}
    inputs |= {f"image {number}": Input.from_file(file) for number, file in enumerate(files, 1)}
    inputs |= {
        name: Input.from_file(file) for name, file in (("prefixes", prefixes), ("forced", forced)) if file is not None
    }
    return Plan("translate", out, {"decoding": config.as_json()}, inputs, seed=1)


def translate_image_files(
    model: Path,
    files: Sequence[Path],
    config: DecodingConfig,
    out: Path,
    *,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    prefixes: Path | None = None,
    forced: Path | None = None,
    ensemble: Sequence[Path] = (),
) -> None:
    """Caption or label image files, as `translate_file` translates a text; source.txt has the names of the files.

    Args:
        model: the folder of the model.
        files: the images.
        config: the [decoding] part of a recipe.
        out: the folder of the captions.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        prefixes: a file with the prefix of each caption, line by line; None for none.
        forced: a file with the forced phrases of each caption, between tabs; None for none.
        ensemble: the folders of models that work together with the first.
    """
    plan = plan_image_translation(model, files, config, out, prefixes=prefixes, forced=forced, ensemble=ensemble)
    if is_fresh(plan, reporter):
        return
    from tfm.pipeline.model_io.ensemble import load_ensemble

    with publish(plan, command=command) as draft:
        loaded = load_ensemble([model, *ensemble], device, reporter=reporter)
        images = decode_images(files, loaded.require_image_transform())
        starts, words = (None if file is None else open_lines(file) for file in (prefixes, forced))
        with reporter.bar("translating", len(files), "images") as bar:

            def translate_all(_: Iterable[str]) -> Iterator[list[Translation]]:
                return translate_images(
                    loaded, images, config, reporter=reporter, prefixes=starts, forced=words, on_done=bar.advance
                )

            names = (escape_control_characters(str(file), keep="") for file in files)
            write_translations(draft, "hypotheses", "source", names, translate_all, reporter, unit=IMAGES_UNIT)
