"""The images of a split on disk: what is written is read, exactly, and nothing else is believed."""

import io
import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tfm.data.errors import DataError
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.decoding import ImageSize
from tfm.data.images.store import PIXELS_FILE, ROWS_FILE, load_images, write_images

SHAPE = ImageSize(4, 5, 3)
VALUES = np.random.default_rng(1).integers(0, 256, (7, 4, 5, 3)).astype(np.uint8)


def write(folder: Path, values: NDArray[np.uint8] = VALUES, rows: Sequence[int] = (0, 0, 2, 1, 6)) -> Path:
    with write_images(folder, SHAPE) as writer:
        for number, each in enumerate(values):
            assert writer.write(each) == number
        writer.rows = np.array(rows, np.int64)
    return folder


def test_rows_of_texts_have_their_images(tmp_path: Path) -> None:
    store = load_images(write(tmp_path))
    assert isinstance(store.pixels, np.memmap)
    assert np.array_equal(store.pixels, VALUES)
    assert store.shape == SHAPE
    assert len(store) == 5
    taken = store.take(np.array([4, 0, 1, 2, 2]))
    assert np.array_equal(taken, VALUES[[6, 0, 0, 2, 2]])
    assert taken.dtype == np.uint8
    assert not isinstance(taken, np.memmap)
    assert store.take([]).shape == (0, 4, 5, 3)
    assert [store.image_rows(each).tolist() for each in (0, 1, 3)] == [[0, 1], [3], []]


def test_numpy_alone_reads_the_files(tmp_path: Path) -> None:
    write(tmp_path)
    assert np.array_equal(np.load(tmp_path / PIXELS_FILE), VALUES)
    assert np.load(tmp_path / ROWS_FILE).tolist() == [0, 0, 2, 1, 6]


def test_figures_are_those_of_all_pixels(tmp_path: Path) -> None:
    store = load_images(write(tmp_path))
    flat = VALUES.reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(store.statistics.means, flat.mean(0), rtol=1e-14)
    np.testing.assert_allclose(store.statistics.standard_deviations, flat.std(0), rtol=1e-14)
    about = json.loads((tmp_path / IMAGES_FILE).read_text())
    assert (about["means"], about["deviations"]) == ([*store.statistics.means], [*store.statistics.standard_deviations])


def test_the_same_images_make_the_same_files(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a"), write(tmp_path / "b")
    assert {file.name for file in one.iterdir()} == {IMAGES_FILE, PIXELS_FILE, ROWS_FILE}
    assert all(file.read_bytes() == (other / file.name).read_bytes() for file in one.iterdir())


def test_images_are_not_held_in_memory(tmp_path: Path) -> None:
    shape = ImageSize(64, 64, 3)
    pixels = np.zeros((64, 64, 3), np.uint8)
    tracemalloc.start()
    with write_images(tmp_path, shape) as writer:
        for _ in range(400):  # 5 MB
            writer.write(pixels)
        writer.rows = np.arange(400)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert len(load_images(tmp_path).pixels) == 400


def images(folder: Path) -> list[CaptionedImage]:
    """Plain, transparent, damaged, of another size, and grey in memory."""

    def png(image: Image.Image) -> bytes:
        image.save(stream := io.BytesIO(), "PNG")
        return stream.getvalue()

    (folder / "plain.png").write_bytes(png(Image.fromarray(VALUES[0])))
    return [
        CaptionedImage("plain.png", folder / "plain.png", ("ein Haus", "a house"), "plain.png"),
        CaptionedImage("a/clear.png", png(Image.new("RGBA", (5, 4), (1, 2, 3, 0))), ("glass",), "clear.png"),
        CaptionedImage("a/broken.png", b"\x89PNG\r\n\x1a\n", ("nothing",), "broken.png"),
        CaptionedImage("a/gone.png", folder / "gone.png", ("nothing",), "gone.png"),
        CaptionedImage("large.png", png(Image.new("RGBA", (50, 40), (9, 9, 9, 255))), ("猫",), "large.png"),
        CaptionedImage("idx, image 1", VALUES[1, :, :, 0], ("9",), "image 1"),
    ]


def test_what_was_converted_and_refused_is_in_the_report(tmp_path: Path) -> None:
    with write_images(tmp_path / "set", SHAPE) as writer:
        found = [
            (writer.write(pixels), image.captions)
            for image, pixels in writer.decode_images(images(tmp_path), drop_invalid=True)
        ]
        writer.report.add_skipped(["README.md"])
        writer.rows = np.arange(4)
    assert found == [(0, ("ein Haus", "a house")), (1, ("glass",)), (2, ("猫",)), (3, ("9",))]
    store = load_images(tmp_path / "set")
    assert np.array_equal(store.take([0])[0], VALUES[0])
    assert set(store.take([1]).reshape(-1).tolist()) == {255}
    broken = store.report["refused"]["first"][0]
    assert store.report == {
        "stored": 4,
        "conversions": [
            {"what": "transparency to white", "images": 2, "first": "clear.png"},
            {"what": "scaled down", "images": 1, "first": "large.png"},
            {"what": "grey to colour", "images": 1, "first": "image 1"},
        ],
        "refused": {
            "images": 2,
            "captions": 2,
            "first": [store.report["refused"]["first"][0], "gone.png: no such file"],
        },
        "left_out": {"files": 1, "first": ["README.md"]},
    }
    assert broken.startswith("broken.png: is ")


def test_of_a_test_set_nothing_is_dropped(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^a/broken\.png: is "), write_images(tmp_path / "set", SHAPE) as writer:
        list(writer.decode_images(images(tmp_path), drop_invalid=False))


def test_a_split_without_images_is_refused_with_the_reason(tmp_path: Path) -> None:
    def of(those: list[CaptionedImage]) -> None:
        with write_images(tmp_path / "set", SHAPE) as writer:
            list(writer.decode_images(those, drop_invalid=True))
            writer.rows = np.arange(0)

    with pytest.raises(DataError, match=r"there is no image that can be read: gone\.png: no such file"):
        of(images(tmp_path)[3:4])


def test_wrong_use_is_an_error(tmp_path: Path) -> None:
    with write_images(tmp_path / "a", SHAPE) as writer:
        with pytest.raises(ValueError, match=r"uint8 .* is not of 4 x 5 pixels"):
            writer.write(VALUES[0, :, :4])
        writer.write(VALUES[0])
        writer.rows = np.array([0])
    with pytest.raises(ValueError, match="`rows` must be set"):
        write(tmp_path / "b", rows=(0, 7))


def saved(folder: Path, name: str, values: object) -> None:
    np.save(folder / name, values, allow_pickle=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (PIXELS_FILE, VALUES[:6]),
        (PIXELS_FILE, VALUES.astype(np.int16)),
        (PIXELS_FILE, np.asfortranarray(VALUES)),
        (PIXELS_FILE, np.array([{}], object)),
        (ROWS_FILE, np.array([0, 7])),
        (ROWS_FILE, np.array([0, -1])),
        (ROWS_FILE, np.array([0.0])),
        (ROWS_FILE, np.array([[0]])),
        (ROWS_FILE, np.array([{}], object)),
    ],
)
def test_arrays_that_are_others_are_refused(tmp_path: Path, name: str, values: object) -> None:
    write(tmp_path)
    saved(tmp_path, name, values)
    with pytest.raises(DataError, match=r"is not made by tfm .*: make the dataset again"):
        load_images(tmp_path)


@pytest.mark.parametrize("name", [PIXELS_FILE, ROWS_FILE, IMAGES_FILE])
@pytest.mark.parametrize("kept", [0, 5, 100, 250])
def test_files_that_are_cut_off_are_refused(tmp_path: Path, name: str, kept: int) -> None:
    write(tmp_path)
    file = tmp_path / name
    if kept < file.stat().st_size:
        file.write_bytes(file.read_bytes()[:kept])
        with pytest.raises(DataError):
            load_images(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("images", 8),
        ("images", True),
        ("height", -4),
        ("channels", 2),
        ("sums", [1, 2]),
        ("sums", [1.0, 2.0, 3.0]),
        ("sums", [0, 0, 0]),
        ("sums", [10**9] * 3),
        ("squares", [0] * 3),
        ("squares", [10**9] * 3),
        ("squares", "x"),
    ],
)
def test_figures_that_cannot_be_are_refused(tmp_path: Path, name: str, value: object) -> None:
    about = json.loads((write(tmp_path) / IMAGES_FILE).read_text())
    (tmp_path / IMAGES_FILE).write_text(json.dumps({**about, name: value}))
    with pytest.raises(DataError):
        load_images(tmp_path)


def test_where_there_are_none_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there are no images \(no images.json\)"):
        load_images(tmp_path)


def test_a_hash_says_which_images_a_test_set_has(tmp_path: Path) -> None:
    """The hash is of the files that were written, in order, whatever they are called; training images have none."""

    def contents(folder: Path, images: Sequence[CaptionedImage], *, drop: bool = False) -> str | None:
        with write_images(folder, SHAPE) as writer:
            for _, pixels in writer.decode_images(images, drop_invalid=drop):
                writer.write(pixels)
            writer.rows = np.arange(len(images))
        return load_images(folder).contents

    def named(*names: str) -> list[CaptionedImage]:
        return [CaptionedImage(name, values, ("a",)) for name, values in zip(names, VALUES, strict=False)]

    known = contents(tmp_path / "one", named("a", "b", "c"))
    assert known is not None
    assert contents(tmp_path / "other names", named("x", "y", "z")) == known
    assert contents(tmp_path / "other order", named("a", "b", "c")[::-1]) not in (known, None)
    assert contents(tmp_path / "fewer", named("a", "b")) not in (known, None)
    assert contents(tmp_path / "train", named("a", "b", "c"), drop=True) is None
    about = json.loads((tmp_path / "one" / IMAGES_FILE).read_text())
    (tmp_path / "one" / IMAGES_FILE).write_text(json.dumps({**about, "contents": 3}))
    assert load_images(tmp_path / "one").contents is None
