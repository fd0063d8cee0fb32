"""Hugging Face `datasets` with a column of images, from a folder or by name."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError, listed
from tfm.data.formats import huggingface
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.lines import one_line


def read_image_column(
    path: str, split: str | None, image: str, columns: Sequence[str], *, online: bool = False
) -> Iterator[CaptionedImage]:
    """The images of a column, each with its captions: a text, or a list of texts, of each of `columns`, or a class.

    online: whether the dataset may be downloaded. Raises DataError naming the dataset, and the row (from 1).
    """
    import datasets  # takes a second

    dataset = huggingface.open_split(path, split, online=online)
    if missing := [each for each in (image, *columns) if each not in dataset.column_names]:
        raise DataError(f"there is no column {missing[0]!r}; it has {listed(dataset.column_names)}", file=path)
    if not isinstance(dataset.features[image], datasets.Image):
        raise DataError(f"column {image!r} does not hold images, but {dataset.features[image]}"[:200], file=path)
    features = {column: dataset.features[column] for column in columns}
    with huggingface.damage_told(path, "whole dataset"):
        # Not decoded by `datasets`: that would believe every file.
        table = dataset.select_columns([image, *columns]).cast_column(image, datasets.Image(decode=False))
        for number, row in enumerate(table, 1):
            name = f"{path}, row {number}"
            texts = [text for column in columns for text in _texts(row[column], features[column], column, name)]
            yield CaptionedImage(name, _content(row[image], name), tuple(texts), f"row {number}")


def _content(cell: Any, name: str) -> Path | bytes:
    """The bytes of an image, or its file on this machine."""
    if cell is None:
        raise DataError("has no image", file=name)
    if cell["bytes"] is not None:
        return bytes(cell["bytes"])
    if "://" in cell["path"]:
        raise DataError(f"its image is not on this machine: {listed([cell['path']])}", file=name)
    return Path(cell["path"])


def _texts(value: Any, feature: Any, column: str, name: str) -> list[str]:
    """The texts of a cell; a number that stands for a class is its name."""
    names = getattr(feature, "names", None)
    if names is not None:
        if value is None or not 0 <= value < len(names):
            raise DataError(f"has no class in {column!r}", file=name)
        return [names[value]]
    found = value if isinstance(value, list) else [value]
    for text in found:
        if text is not None and not isinstance(text, str):
            raise DataError(f"{column!r} holds {str(text)[:40]}, not text", file=name)
    return [one_line(text or "") for text in found]
