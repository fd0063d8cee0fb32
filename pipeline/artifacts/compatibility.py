"""Refuses artifacts that do not belong together, before any work."""

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tfm.data.image_config import IMAGES_FILE
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.errors import DataError
from tfm.pipeline.tasks.abilities import DEFAULT_TASK

if TYPE_CHECKING:
    from tfm.data.images.decoding import ImageSize

ORIGINAL_IDS = "original_ids.json"  # as in tokenizer.tokenizer, which is slow to import
DIGEST_DIGITS = 12  # digits of a sha256


def trained_task(model: Manifest) -> str:
    """The task that a model, which was verified, was trained for."""
    content = read_json(model.folder / "config.json", displayed_path=model.path / "config.json")
    return str(content.get("task", DEFAULT_TASK))


def check_same_tokenizer(model: Manifest, dataset: Manifest) -> None:
    """Raise DataError if a model was trained with another tokenizer than a dataset's, or with images of another
    shape; both were verified.

    The pixels of a dataset are as they were read: a model normalizes them by its own means and deviations.
    """
    check_image_shape(model, dataset)
    for name, entry in dataset.files.items():
        folder, _, file = name.rpartition("/")
        model_entry = model.files.get(file)
        if folder == "tokenizer" and file != ORIGINAL_IDS and (file != IMAGES_FILE or model_entry is None):
            model_digest, dataset_digest = (
                model_entry.sha256[:DIGEST_DIGITS] if model_entry else "missing",
                entry.sha256[:DIGEST_DIGITS],
            )
            if model_digest != dataset_digest:
                command = shlex.join(["tfm", "preprocess", "--tokenizer", _tokenizer_path(model)])
                raise DataError(
                    f"was trained with another tokenizer than that of {dataset.path} ({file}: "
                    f"{model_digest}, not {dataset_digest}); make the dataset with the model's "
                    f"(`{command}`), or run `tfm train` on this dataset",
                    file=model.path,
                )


def both_have_images(model: Manifest, dataset: Manifest) -> bool:
    """Whether a model reads images, and a dataset has some."""
    return IMAGES_FILE in model.files and f"tokenizer/{IMAGES_FILE}" in dataset.files


def check_image_shape(model: Manifest, dataset: Manifest) -> None:
    """Raise DataError if a model reads images of another shape than those of a dataset; both were verified."""
    if both_have_images(model, dataset):
        from tfm.data.images.preparation import read_image_transform  # here, as it needs numpy

        size = read_image_transform(dataset.folder / "tokenizer", dataset.path / "tokenizer").shape
        check_image_size(model, size, f"those of {dataset.path}", "make the dataset with")


def check_image_size(model: Manifest, size: "ImageSize", description: str, remedy: str) -> None:
    """Check that a model reads images of a shape.

    Args:
        model: its manifest.
        size: that shape.
        description: the things of that shape, in words.
        remedy: what to do with `data.images`, in words.

    Raises:
        DataError: the model reads images of another shape.
    """
    from tfm.data.images.preparation import read_image_transform  # here, as it needs numpy

    model_size = read_image_transform(model.folder, model.path).shape
    if model_size != size:
        colour = str(model_size.channels == 3).lower()
        keys = f"data.images = {{ height = {model_size.height}, width = {model_size.width}, colour = {colour} }}"
        raise DataError(f"reads images of {model_size}, and {description} are {size}: {remedy} {keys}", file=model.path)


def _tokenizer_path(model: Manifest) -> str:
    """The path of the tokenizer that a model was trained with, from its lineage."""
    dataset = model.inputs.get("dataset")
    dataset_inputs = dataset.lineage.get("inputs") if dataset is not None else None
    tokenizer = dataset_inputs.get("tokenizer") if isinstance(dataset_inputs, Mapping) else None
    path = tokenizer.get("path") if isinstance(tokenizer, Mapping) else None
    return str(path or "DIR")


def check_same_source_tokenizer(model: Manifest, dataset: Manifest) -> None:
    """Raise DataError if a model reads sources by another tokenizer than a dataset's; both were verified."""
    model_digest = _source_tokenizer_digest(model, "")
    dataset_digest = _source_tokenizer_digest(dataset, "tokenizer/")
    if model_digest != dataset_digest:
        raise DataError(
            f"uses another tokenizer than {dataset.path} ({model_digest}, not {dataset_digest}): "
            "make the dataset's with "
            f'tokenizer.shared = false and tokenizer.source_from = "{model.path}"',
            file=model.path,
        )


def _source_tokenizer_digest(manifest: Manifest, folder: str) -> str:
    """The beginning of the sha256 of the source's tokenizer."""
    files = (manifest.files.get(folder + name) for name in ("source.json", "tokenizer.json"))
    return next((each.sha256[:DIGEST_DIGITS] for each in files if each is not None), "missing")


def check_same_inputs(manifest: Manifest, **parts: Manifest) -> None:
    """Raise DataError if an artifact has an input of the same name as a part, but another one."""
    for name, part in parts.items():
        same_input = manifest.inputs.get(name)
        if same_input is not None and same_input.fingerprint != part.fingerprint:
            raise DataError(
                f"were made from another {name} ({same_input.fingerprint[:DIGEST_DIGITS]}) than {part.path} "
                f"({part.fingerprint[:DIGEST_DIGITS]}): run `tfm {manifest.stage}` again",
                file=manifest.path,
            )
