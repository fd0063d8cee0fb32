"""Hugging Face datasets with a column of images, saved to disk."""

import io
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tfm.data.errors import DataError
from tfm.data.images import image_column
from tfm.data.images.decoding import ImageSize, decode_image
from tfm.data.images.image_column import read_image_column


def png(value: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 3), (value, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


def saved(folder: Path, columns: dict[str, list[Any]], **features: Any) -> str:
    features = {"image": datasets.Image(), **features}
    datasets.Dataset.from_dict(columns, datasets.Features(features)).save_to_disk(str(folder / "set"))
    return str(folder / "set")


CELLS = [{"bytes": png(7), "path": None}, {"bytes": png(8), "path": "x.png"}]
TEXT = datasets.Value("string")


def test_captions_are_texts_or_lists_of_them(tmp_path: Path) -> None:
    columns = {"image": CELLS, "one": ["ein Haus", None], "more": [["a", "b\nc"], []]}
    path = saved(tmp_path, columns, one=TEXT, more=datasets.List(TEXT))
    found = list(read_image_column(path, None, "image", ["one", "more"]))
    assert [each.captions for each in found] == [("ein Haus", "a", "b c"), ("",)]
    assert [each.name for each in found] == [f"{path}, row 1", f"{path}, row 2"]
    pixels = [decode_image(each.content, each.name, ImageSize(3, 4, 3)).pixels for each in found]
    assert [int(each[0, 0, 0]) for each in pixels] == [7, 8]


def test_a_class_is_its_name(tmp_path: Path) -> None:
    names = datasets.ClassLabel(names=["CAT", "собака"])
    path = saved(tmp_path, {"image": CELLS, "label": [1, 0]}, label=names)
    assert [each.captions for each in read_image_column(path, "train", "image", ["label"])] == [("собака",), ("CAT",)]
    path = saved(tmp_path / "b", {"image": CELLS, "label": [1, -1]}, label=names)
    with pytest.raises(DataError, match="set: row 2: column 'label' holds -1: it says that the row has no class"):
        list(read_image_column(path, None, "image", ["label"]))


def test_an_empty_cell_of_classes_is_called_empty(tmp_path: Path) -> None:
    path = saved(tmp_path, {"image": CELLS, "label": [1, None]}, label=datasets.Value("int8"))
    with pytest.raises(DataError, match="set: row 2: column 'label' is empty, so the row has no class"):
        list(read_image_column(path, None, "image", ["label"], ("cat", "dog")))


def test_integers_are_classes(tmp_path: Path) -> None:
    path = saved(tmp_path, {"image": CELLS, "label": [1, 0]}, label=datasets.Value("int8"))
    assert [each.captions for each in read_image_column(path, "train", "image", ["label"])] == [("1",), ("0",)]
    found = read_image_column(path, "train", "image", ["label"], ("cat", "dog"))
    assert [each.captions for each in found] == [("dog",), ("cat",)]


def test_names_for_classes_that_are_texts_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, {"image": CELLS, "label": ["a", "b"]}, label=TEXT)
    with pytest.raises(DataError, match="row 1: column 'label' holds texts, which `classes` does not name"):
        list(read_image_column(path, None, "image", ["label"], ("cat", "dog")))


def test_images_may_lie_in_files(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(9))
    path = saved(tmp_path, {"image": [{"bytes": None, "path": str(tmp_path / "a.png")}], "text": ["x"]}, text=TEXT)
    (found,) = read_image_column(path, None, "image", ["text"])
    assert np.array_equal(decode_image(found.content, "a", ImageSize(3, 4, 3)).pixels[0, 0], [9, 0, 0])


OF_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
OF_BYTES = pa.struct([("bytes", pa.large_binary())])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), OF_IMAGE, OF_BYTES], ids=str)
def test_image_files_in_a_plain_column_of_parquet_are_read(tmp_path: Path, kind: pa.DataType) -> None:
    """Pandas drops what Hugging Face says of the columns of a file."""
    cells = [png(7), png(8)]
    whole = [{"bytes": each, "path": None} if pa.types.is_struct(kind) else each for each in cells]
    if kind == OF_BYTES:
        whole = [{"bytes": each} for each in cells]
    table = pa.table({"image": pa.array([*whole, None], kind), "text": ["a", "b", "c"]})
    pq.write_table(table.slice(0, 2), tmp_path / "train.parquet")
    read = list(read_image_column(str(tmp_path), None, "image", ["text"]))
    assert [(each.content, each.captions) for each in read] == [(cells[0], ("a",)), (cells[1], ("b",))]
    pq.write_table(table, tmp_path / "train.parquet")
    with pytest.raises(DataError, match="row 3: has no image"):
        list(read_image_column(str(tmp_path), None, "image", ["text"]))


def test_a_damaged_image_is_no_matter_of_datasets(tmp_path: Path) -> None:
    path = saved(tmp_path, {"image": [{"bytes": b"no image", "path": None}], "text": ["x"]}, text=TEXT)
    (found,) = read_image_column(path, None, "image", ["text"])
    with pytest.raises(DataError, match="set, row 1: is not an image"):
        decode_image(found.content, found.name, ImageSize(3, 4, 3))


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    columns = {"image": [*CELLS, None], "text": ["x"] * 3, "number": [1, 2, 3], "ratio": [0.5] * 3}
    of_ratio = datasets.Value("float64")
    path = saved(tmp_path, columns, text=TEXT, number=datasets.Value("int64"), ratio=of_ratio)
    for image, caption, said in (
        ("picture", "text", "there is no column 'picture'; it has image, text, number, ratio"),
        ("image", "caption", "there is no column 'caption'"),
        ("text", "text", "column 'text' does not hold images"),
        ("image", "ratio", "row 1: 'ratio' holds 0.5, not text"),
        ("image", "text", "row 3: has no image"),
    ):
        with pytest.raises(DataError, match=said):
            list(read_image_column(path, None, image, [caption]))
    with pytest.raises(DataError, match="row 1: its image is not on this machine: https://example"):
        image_column._image_content({"bytes": None, "path": "https://example.org/a.png"}, "set, row 1", tmp_path)
