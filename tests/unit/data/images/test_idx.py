"""IDX files, MNIST's format, written here by numpy."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from tfm.data.errors import DataError
from tfm.data.images import idx
from tfm.data.images.idx import read_idx

VALUES = np.random.default_rng(1).integers(0, 256, (5, 3, 4)).astype(np.uint8)
LABELS = np.array([3, 0, 9, 1, 3], np.uint8)


def spelled(values: np.ndarray, kind: int = 8) -> bytes:  # type: ignore[type-arg]
    return struct.pack(f">HBB{values.ndim}I", 0, kind, values.ndim, *values.shape) + values.tobytes()


def write(folder: Path, images: bytes, labels: bytes = spelled(LABELS), ending: str = "") -> tuple[Path, Path]:
    pack = gzip.compress if ending else bytes
    for name, content in (("images", images), ("labels", labels)):
        (folder / f"{name}{ending}").write_bytes(pack(content))
    return folder / f"images{ending}", folder / f"labels{ending}"


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("at_once", [1, 25, 1 << 20])
def test_images_and_labels_are_read_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, at_once: int
) -> None:
    monkeypatch.setattr(idx, "READ_BLOCK_BYTES", at_once)
    files = write(tmp_path, spelled(VALUES), ending=ending)
    found = list(read_idx(*files))
    assert np.array_equal([each.content for each in found], VALUES)
    assert [each.captions for each in found] == [("3",), ("0",), ("9",), ("1",), ("3",)]
    assert found[2].name == f"{files[0]}, image 3"


def test_classes_have_names(tmp_path: Path) -> None:
    files = write(tmp_path, spelled(VALUES))
    classes = "T-shirt Hose Pullover Kleid Mantel Sandale Hemd Schuh Tasche Stiefel".split()
    assert [each.captions[0] for each in read_idx(*files, classes)] == ["Kleid", "T-shirt", "Stiefel", "Hose", "Kleid"]
    with pytest.raises(DataError, match="labels: label 3 is 9, but `classes` has 9 names, counted from 0"):
        list(read_idx(*files, classes[:9]))


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (b"", spelled(LABELS), "images: is not an IDX file"),
        (b"\x89PNG\r\n", spelled(LABELS), "images: is not an IDX file: it does not begin with two zero bytes"),
        (spelled(LABELS), spelled(LABELS), r"images: has 1 dimension, so it does not hold images \(3 dimensions\)"),
        (spelled(VALUES), spelled(VALUES), r"labels: has 3 dimensions, so it does not hold labels \(1 dimension\)"),
        (spelled(VALUES, kind=13), spelled(LABELS), "images: holds items of type 0x0d; only bytes"),
        (spelled(VALUES)[:9], spelled(LABELS), "images: ends within its header"),
        (spelled(VALUES)[:-1], spelled(LABELS), "images: is cut off: its header says 5 items, and it holds 4"),
        (spelled(VALUES) + b"\0", spelled(LABELS), "images: holds more than the 5 items that its header says"),
        (spelled(VALUES), spelled(LABELS)[:-2], "labels: is cut off: its header says 5 items, and it holds 3"),
        (spelled(VALUES), spelled(LABELS[:4]), "labels: holds 4 labels, but .*images holds 5 images"),
        (spelled(VALUES[:, :0]), spelled(LABELS), "images: its images are of 0 x 4 pixels"),
    ],
)
def test_what_is_damaged_is_said(tmp_path: Path, images: bytes, labels: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said):
        list(read_idx(*write(tmp_path, images, labels)))


def test_a_header_that_promises_too_much_takes_no_memory(tmp_path: Path) -> None:
    head = struct.pack(">HBBIII", 0, 8, 3, 4_000_000_000, 28, 28)
    labels = struct.pack(">HBBI", 0, 8, 1, 4_000_000_000)
    with pytest.raises(DataError, match=r"images\.gz: is cut off: its header says 4,000,000,000 items, and it holds 0"):
        list(read_idx(*write(tmp_path, head, labels, ".gz")))
    with pytest.raises(DataError, match="images: its images are of 1000000 x 1000000 pixels"):
        list(read_idx(*write(tmp_path, struct.pack(">HBBIII", 0, 8, 3, 5, 10**6, 10**6))))


def test_a_gzip_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    images, labels = write(tmp_path, spelled(VALUES), ending=".gz")
    labels.write_bytes(labels.read_bytes()[:-5])
    with pytest.raises(DataError, match=r"labels\.gz: not a complete gzip file"):
        list(read_idx(images, labels))
