"""Images of every kind decoded to one shape: what is converted is said, what has no one meaning is refused by name."""

import io
import random
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.tiny_images import tiff_bytes
from tfm.data.errors import DataError
from tfm.data.images import decoding
from tfm.data.images.decoding import PIL_FORMATS, DecodedImage, ImageSize, decode_image

COLOUR, GREY = ImageSize(6, 8, 3), ImageSize(6, 8, 1)
VALUES = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)


def saved(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def of(content: bytes, shape: ImageSize = COLOUR) -> DecodedImage:
    return decode_image(content, "a/b.png", shape)


def refused(content: bytes) -> str:
    with pytest.raises(DataError) as caught:
        of(content)
    text = str(caught.value)
    assert text.startswith("a/b.png: ")
    assert "\n" not in text
    return text.removeprefix("a/b.png: ")


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_what_is_plain_and_of_its_size_stays_as_it_is(kind: str) -> None:
    found = of(saved(Image.fromarray(VALUES), kind))
    assert np.array_equal(found.pixels, VALUES)
    assert found.conversions == ()


def test_a_file_is_read_as_its_bytes_are(tmp_path: Path) -> None:
    (tmp_path / "кошка 猫.png").write_bytes(saved(Image.fromarray(VALUES)))
    assert np.array_equal(decode_image(tmp_path / "кошка 猫.png", "x", COLOUR).pixels, VALUES)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_lossy_formats_are_near(kind: str) -> None:
    smooth = np.full((6, 8, 3), (200, 120, 40), np.uint8)
    found = of(saved(Image.fromarray(smooth), kind, quality=95))
    assert abs(found.pixels.astype(int) - smooth).max() <= 6


def test_a_palette_becomes_its_colours() -> None:
    image = Image.new("P", (8, 6))
    image.putpalette([10, 20, 30, 200, 100, 0] + [0] * 762)
    image.putpixel((3, 2), 1)
    found = of(saved(image))
    assert found.conversions == ("mode P",)
    assert found.pixels[2, 3].tolist() == [200, 100, 0]
    assert found.pixels[0, 0].tolist() == [10, 20, 30]


def test_transparency_lies_on_white() -> None:
    opacity = np.random.default_rng(2).integers(0, 256, (6, 8, 1)).astype(np.uint8)
    found = of(saved(Image.fromarray(np.concatenate([VALUES, opacity], 2))))
    share = opacity / 255
    assert found.conversions == ("transparency to white",)
    assert abs(found.pixels - (VALUES * share + 255 * (1 - share))).max() <= 1


def test_one_colour_of_a_palette_may_be_transparent() -> None:
    image = Image.new("P", (8, 6))
    image.putpalette([10, 20, 30, 200, 100, 0] + [0] * 762)
    image.putpixel((3, 2), 1)
    found = of(saved(image, transparency=0))
    assert found.conversions == ("transparency to white",)
    assert found.pixels[2, 3].tolist() == [200, 100, 0]
    assert found.pixels[0, 0].tolist() == [255, 255, 255]


def test_grey_with_transparency_stays_grey() -> None:
    both = np.stack([np.full((6, 8), 100), np.full((6, 8), 51)], 2).astype(np.uint8)
    found = of(saved(Image.fromarray(both)), GREY)
    assert found.conversions == ("transparency to white",)
    assert set(found.pixels.reshape(-1).tolist()) == {224}  # 0.2 * 100 + 0.8 * 255


def test_cmyk_becomes_rgb() -> None:
    found = of(saved(Image.new("CMYK", (8, 6), (0, 255, 255, 0)), "TIFF"))
    assert found.conversions == ("mode CMYK",)
    assert found.pixels[0, 0].tolist() == [255, 0, 0]


def test_sixteen_bits_of_grey_become_the_nearest_eight() -> None:
    values = np.random.default_rng(3).integers(0, 65_536, (6, 8)).astype(np.uint16)
    values[0, :2] = 0, 65_535
    for kind in ("PNG", "TIFF"):
        found = of(saved(Image.fromarray(values), kind), GREY)
        assert found.conversions == ("16 bits to 8",)
        assert np.array_equal(found.pixels[:, :, 0], np.round(values / 257.0))


@pytest.mark.parametrize("turned", [1, 2, 6, 8])
@pytest.mark.parametrize(
    ("bits", "negative"), [(1, False), (1, True), (8, False), (8, True), (12, False), (16, False), (16, True)]
)
def test_grey_of_tiff_is_what_its_header_says(bits: int, negative: bool, turned: int) -> None:
    """Black and white of each number of bits, negatives, and turned ones, against plain arithmetic."""
    values = np.random.default_rng(bits).integers(0, 2**bits, (8, 8)).astype(np.uint16)
    share = values.astype(float) / (2**bits - 1)
    wanted = np.rint(255 * (1 - share if negative else share))
    upright = {1: wanted, 2: wanted[:, ::-1], 6: np.rot90(wanted, -1), 8: np.rot90(wanted)}[turned]
    found = decode_image(tiff_bytes(values, bits, negative=negative, turned=turned), "a.tif", ImageSize(8, 8, 1))
    assert np.array_equal(found.pixels[..., 0], upright)
    depth = {1: ["mode 1"], 8: [], 12: ["12 bits to 8"], 16: ["16 bits to 8"]}[bits]
    assert sorted(found.conversions) == sorted(depth + (["turned as EXIF says"] if turned > 1 else []))


def test_sixteen_bits_of_a_ppm_are_said() -> None:
    deep = b"P6 8 6 65535\n" + (VALUES.astype(">u2") * 257).tobytes()
    assert of(deep).conversions == ("16 bits to 8",)
    assert np.array_equal(of(deep).pixels, VALUES)


def test_sixteen_bits_of_colour_are_said_too() -> None:
    """Pillow writes none: the file is put together here."""
    rows = b"".join(b"\0" + b"\x80\x01\xff\x00\x00\xff" * 8 for _ in range(6))
    found = of(png(8, 6, 2, rows, bits=16))
    assert found.conversions == ("16 bits to 8",)
    assert found.pixels[0, 0].tolist() == [128, 255, 0]


def png(width: int, height: int, colour: int, rows: bytes, bits: int = 8) -> bytes:
    """A PNG file whose header says what it likes."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    ("orientation", "turned"),
    [
        (1, lambda a: a),
        (2, lambda a: a[:, ::-1]),
        (3, lambda a: a[::-1, ::-1]),
        (4, lambda a: a[::-1]),
        (5, lambda a: a.transpose(1, 0, 2)),
        (6, lambda a: np.rot90(a, -1)),
        (7, lambda a: a.transpose(1, 0, 2)[::-1, ::-1]),
        (8, lambda a: np.rot90(a, 1)),
    ],
)
def test_an_image_stands_upright_as_exif_says(orientation: int, turned: Any) -> None:
    square = VALUES[:, :6]
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = of(saved(Image.fromarray(square), exif=exif), ImageSize(6, 6, 3))
    assert np.array_equal(found.pixels, turned(square))
    assert found.conversions == (() if orientation == 1 else ("turned as EXIF says",))


def test_one_bit_and_grey_become_what_is_asked_for() -> None:
    bits = np.random.default_rng(4).integers(0, 2, (6, 8)).astype(bool)
    found = of(saved(Image.fromarray(bits)))
    assert found.conversions == ("mode 1", "grey to colour")
    assert np.array_equal(found.pixels, np.repeat(bits[:, :, None] * np.uint8(255), 3, 2))
    grey = of(saved(Image.fromarray(VALUES)), GREY)
    assert grey.conversions == ("colour to grey",)
    assert grey.pixels.shape == (6, 8, 1)
    assert abs(grey.pixels[:, :, 0] - VALUES @ [0.299, 0.587, 0.114]).max() <= 0.51  # ITU-R BT.601


def test_the_middle_of_a_larger_image_fills_the_whole_shape() -> None:
    wide = np.zeros((60, 160, 3), np.uint8)  # 80 of 160 columns are kept
    wide[:, :40], wide[:, 40:80], wide[:, 80:120], wide[:, 120:] = 255, 50, 150, 255
    found = of(saved(Image.fromarray(wide)))
    assert found.conversions == ("scaled down", "cropped")
    # near, since what is beside a pixel has a part in it
    assert abs(found.pixels.astype(int) - np.repeat([50, 150], 4)[:, None]).max() <= 20
    same = of(saved(Image.fromarray(np.full((60, 80, 3), 77, np.uint8))))
    assert same.conversions == ("scaled down",)
    assert set(same.pixels.reshape(-1).tolist()) == {77}


def test_small_and_narrow_images_are_scaled_up() -> None:
    assert of(saved(Image.new("RGB", (1, 1), (1, 2, 3)))).pixels.reshape(-1, 3).tolist() == [[1, 2, 3]] * 48
    assert of(saved(Image.new("RGB", (1, 3000)))).conversions == ("scaled up", "cropped")


def test_values_in_memory_are_taken_as_grey_or_colour() -> None:
    assert np.array_equal(decode_image(VALUES[:, :, 0], "x", GREY).pixels, VALUES[:, :, :1])
    assert np.array_equal(decode_image(VALUES, "x", COLOUR).pixels, VALUES)


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_an_animation_is_refused(kind: str) -> None:
    frames = [Image.new("RGB", (8, 6), (each, 0, 0)) for each in (0, 200)]
    assert "is animated, or has several pages" in refused(
        saved(frames[0], kind, save_all=True, append_images=frames[1:])
    )


def test_of_a_jpeg_of_several_pictures_the_first_is_taken() -> None:
    frames = [Image.new("RGB", (8, 6), (each, 0, 0)) for each in (0, 200)]
    found = of(saved(frames[0], "MPO", save_all=True, append_images=frames[1:]))
    assert found.conversions == ("first picture of several (MPO)",)
    assert found.pixels.max() < 10


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
def test_what_is_cut_off_is_refused(kind: str) -> None:
    whole = saved(Image.fromarray(np.random.default_rng(5).integers(0, 256, (64, 64, 3), np.uint8)), kind)
    for share in (0.1, 0.5, 0.9):
        refused(whole[: int(len(whole) * share)])


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    assert refused(b"") == "is empty"
    assert refused(b"a text").startswith("is not an image of a format that can be read (PNG, JPEG, GIF")
    with pytest.raises(DataError, match=r"^gone: no such file$"):
        decode_image(tmp_path / "gone", "gone", COLOUR)
    with pytest.raises(DataError, match=r"^folder: is a folder: name the images in it$"):
        decode_image(tmp_path, "folder", COLOUR)


def test_formats_that_run_another_program_are_not_opened() -> None:
    assert "EPS" not in PIL_FORMATS
    assert refused(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 6\n%%EndComments\n").startswith("is not an image")


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    for width, height in ((10_000, 10_000), (60_000, 60_000)):  # Pillow warns of the one, and refuses the other
        said = refused(png(width, height, 0, b"\0" * 1000))
        assert said == "has more than 89,478,485 pixels: scale it down"
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)  # as some libraries set it
    assert "has more than 89,478,485 pixels (10000 x 10000)" in refused(png(10_000, 10_000, 0, b"\0" * 1000))


def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_FILE_BYTES", 1 << 20)
    assert refused(b"\x89PNG" + b"\0" * (1 << 20)) == "is larger than 1 MiB"


def test_what_has_no_known_black_and_white_is_refused() -> None:
    remedy = "scale its values to 0 (black) to 255 (white), and save 8 bits of each"
    for kind, pixels in ((np.float32, "pixels of mode F"), (np.int32, "pixels with a sign or of 32 bits")):
        said = refused(saved(Image.fromarray(np.zeros((6, 8), kind)), "TIFF"))
        assert said == f"has {pixels} without a known black and white: {remedy}"


def test_what_pillow_warns_of_is_a_conversion() -> None:
    """Damaged EXIF: the image is read, and the report says that Pillow was not content."""
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01\x12\0\x03\0\0\0\x01"
    found = of(saved(Image.fromarray(VALUES), exif=exif))
    assert np.array_equal(found.pixels, VALUES)
    (said,) = found.conversions
    assert said.startswith("Pillow: Corrupt EXIF data")


def outcome(content: bytes) -> str:
    try:
        pixels = of(content).pixels
    except DataError:
        return "refused" if refused(content) else "without reason"
    assert (pixels.shape, pixels.dtype) == ((6, 8, 3), np.uint8)
    return "read"


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
def test_whatever_bytes_come_there_are_pixels_or_an_error_of_ours(kind: str) -> None:
    draw = random.Random(kind)
    options: dict[str, Any] = {"exif": Image.Exif()} if kind in ("JPEG", "PNG") else {}
    valid = saved(Image.fromarray(VALUES), kind, **options)
    outcomes = set()
    for _ in range(60):
        content = bytearray(valid)
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(content))
            content[place : place + draw.choice((0, 1, 1, 4))] = bytes(
                draw.choices(range(256), k=draw.choice((1, 1, 4)))
            )
        outcomes.add(outcome(bytes(content)))
    assert outcomes == {"refused", "read"}


@pytest.mark.parametrize("sides", [(0, 8, 3), (8, 5000, 3), (8, 8, 2), (8, 8, 4)])
def test_a_shape_is_of_grey_or_colour_and_not_without_end(sides: Sequence[int]) -> None:
    with pytest.raises(ValueError, match=r"`size` must be|`channels` must be"):
        ImageSize(*sides)
