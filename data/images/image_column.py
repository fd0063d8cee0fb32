"""Hugging Face `datasets` with a column of images, from a folder or by name."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from tfm.data.errors import DataError, format_names
from tfm.data.formats import huggingface
from tfm.data.formats.arrow_files import read_arrow
from tfm.data.formats.class_labels import class_name, feature_class_names, holds_text, unused_names_problem
from tfm.data.formats.hub.hub_folder import DataFiles
from tfm.data.formats.parquet import read_parquet
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.lines import join_lines, open_maybe_compressed
from tfm.data.safe_files import resolve_path_inside

IMAGES_PER_BATCH = 16


def read_image_column(
    path: str,
    split: str | None,
    image: str,
    columns: Sequence[str],
    classes: Sequence[str] = (),
    *,
    online: bool = False,
) -> Iterator[CaptionedImage]:
    """The images of a column, each with its captions: a text, or a list of texts, of each of `columns`, or a class.

    Args:
        path: a folder, or the name of a dataset.
        split: which split; None: the only one.
        image: the column of images.
        columns: those of captions or classes.
        classes: the names of classes that are integers; empty: those that the dataset has.
        online: whether the dataset may be downloaded.

    Raises:
        DataError: naming the dataset, and the row (from 1).
    """
    import datasets  # takes a second

    columns_to_read = [image, *columns]
    opened_split = huggingface.open_split(path, split, online=online)
    with huggingface.corruption_as_data_error(path, "whole dataset"):
        tables = _read_tables(opened_split, columns_to_read, path)
        head = next(tables)
        if isinstance(opened_split, DataFiles):
            features = datasets.Features.from_arrow_schema(head.schema)
        else:
            features = opened_split.features
        _check_columns(features, image, columns, path)
        names_by_column = {**huggingface.class_names_of_split(opened_split), **feature_class_names(features.to_dict())}
        names_by_column |= dict.fromkeys(columns, classes) if classes else {}
        number = 0
        for table in chain([head], tables):
            for row in _records_of_table(table.select(columns_to_read)):
                number += 1
                name = f"{path}, row {number}"
                text_column = next((column for column in columns if holds_text(row[column])), None) if classes else None
                if text_column is not None:
                    raise DataError(f"row {number}: {unused_names_problem(text_column)}", file=path)
                texts = [
                    text
                    for column in columns
                    for text in _cell_texts_or_class_names(
                        row[column], column, names_by_column.get(column), path, number
                    )
                ]
                content = _image_content(row[image], name, Path(path))
                yield CaptionedImage(name, content, tuple(texts), f"row {number}")


def _read_tables(split: huggingface.OpenedSplit, columns_to_read: Sequence[str], path: str) -> Iterator[pa.Table]:
    """The rows of a split as tables of bounded size, the first without rows; images are not decoded."""
    if not isinstance(split, DataFiles):
        yield split.data.schema.empty_table()
        # Not decoded by `datasets`: that would believe every file.
        dataset = split.select_columns([each for each in columns_to_read if each in split.column_names])
        yield from dataset.with_format("arrow").iter(batch_size=IMAGES_PER_BATCH)
        return
    if split.kind not in ("parquet", "arrow"):
        raise DataError(f"its {split.kind} files hold no images; Parquet and Arrow files may", file=path)
    for file in split.files:
        if split.kind == "arrow":
            yield from read_arrow(file)
            continue
        with open_maybe_compressed(file) as stream:
            yield from read_parquet(
                cast(BinaryIO, stream), lambda names: [each for each in columns_to_read if each in names]
            )


def _check_columns(features: Mapping[str, Any], image: str, columns: Sequence[str], path: str) -> None:
    import datasets

    if missing := [each for each in (image, *columns) if each not in features]:
        raise DataError(f"there is no column {missing[0]!r}; it has {format_names(features)}", file=path)
    if not isinstance(features[image], datasets.Image) and not _holds_image_files(features[image]):
        raise DataError(f"column {image!r} does not hold images, but {features[image]}"[:200], file=path)


def _holds_image_files(feature: Any) -> bool:
    """Whether a column has image files without saying so, as in files of pandas: only bytes, or bytes and a name."""
    if isinstance(feature, Mapping):
        return "bytes" in feature and _holds_image_files(feature["bytes"])
    return getattr(feature, "dtype", None) in ("binary", "large_binary")


def _records_of_table(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table one by one, so that only one image is copied at a time."""
    table.validate(full=True)
    for index in range(len(table)):
        yield table.slice(index, 1).to_pylist()[0]


def _image_content(cell: Any, name: str, folder: Path) -> Path | bytes:
    """The bytes of an image, or its file: in the folder of the dataset, or in the cache of Hugging Face."""
    if isinstance(cell, bytes):
        return cell
    if cell is None or (cell["bytes"] is None and cell.get("path") is None):
        raise DataError("has no image", file=name)
    if cell["bytes"] is not None:
        return bytes(cell["bytes"])
    path = str(cell["path"])
    if "://" in path:
        raise DataError(f"its image is not on this machine: {format_names([path])}", file=name)
    if not folder.exists():  # by name: a download, kept where Hugging Face's libraries keep them
        import datasets

        folder = Path(datasets.config.HF_CACHE_HOME)
    if os.path.isabs(path) and "\0" not in path:
        path = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    return resolve_path_inside(folder, path, file=Path(name))


def _cell_texts_or_class_names(value: Any, column: str, names: Sequence[str] | None, path: str, row: int) -> list[str]:
    """The texts of a cell; an integer is the name of a class."""
    values = value if isinstance(value, list) else [value]
    texts = []
    for text in values:
        if text is None and names:
            raise DataError(f"row {row}: column {column!r} is empty, so the row has no class", file=path)
        if isinstance(text, int):
            texts.append(class_name(text, names, column=column, file=path, row=row))
        elif text is not None and not isinstance(text, str):
            raise DataError(f"{column!r} holds {str(text)[:40]}, not text", file=f"{path}, row {row}")
        else:
            texts.append(join_lines(text or ""))
    return texts
