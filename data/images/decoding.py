"""Image files to pixels of one shape, decoded by Pillow: nothing in a file is believed before it is checked.

Images that are not plain are converted, and the report says so: palettes, transparency (on white), CMYK, 16 bits, a
rotation in EXIF, another size. Images without one meaning, damaged ones, and any that would fill the memory are
refused.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import (
    Image,
    ImageFile,
    ImageOps,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,  # noqa: F401  Pillow does not know this format and TIFF unless they are imported
)

from tfm.data.errors import DataError, escape_unprintable
from tfm.data.safe_files import open_regular_file

Pixels: TypeAlias = NDArray[np.uint8]

# Formats with decoders that run no other program, unlike that of EPS.
PIL_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "PPM", "TIFF", "WEBP")
IMAGE_EXTENSIONS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm",
    ".pnm",
)  # fmt: skip
MAX_PIXELS = 89_478_485  # as Pillow has it: a quarter of a gigabyte at three bytes each
MAX_FILE_BYTES = 2**28
MAX_STRIP_PIXELS = 2**22
PIL_MODES = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV", "I"}
ORIENTATION_TAG = 0x0112  # the EXIF tag
BITS_TAG, PHOTOMETRIC_TAG = 258, 262  # of TIFF: bits of a value, and how values are colours
WHITE_IS_ZERO_PHOTOMETRIC = 0


@dataclass(frozen=True)
class ImageSize:
    """The one shape of all images of a dataset.

    Args:
        height: in pixels.
        width: in pixels.
        channels: 1 (gray) or 3 (red, green, blue).
    """

    height: int
    width: int
    channels: int

    def __post_init__(self) -> None:
        if not (0 < self.height <= 4096 and 0 < self.width <= 4096):
            raise ValueError(f"`size` must be from 1 to 4096 pixels: {self.height} x {self.width}")
        if self.channels not in (1, 3):
            raise ValueError(f"`channels` must be 1 (grey) or 3 (colour): {self.channels}")

    def __str__(self) -> str:
        return f"{self.height} x {self.width} pixels, {'grey' if self.channels == 1 else 'in colour'}"

    @property
    def pil_mode(self) -> str:
        """The mode of Pillow for images of this shape."""
        return "L" if self.channels == 1 else "RGB"


@dataclass(frozen=True)
class DecodedImage:
    """An image as pixels.

    pixels: (height, width, channels). conversions: the steps to get there, each in a few words.
    """

    pixels: Pixels
    conversions: tuple[str, ...] = ()


def decode_image(content: Path | bytes | Pixels, name: str, shape: ImageSize) -> DecodedImage:
    """Decode an image and fit it to a shape.

    The whole of the shape is filled: the image is scaled until it covers it, and the overhang on two sides is cut off
    evenly. An image of that size is left as it is.

    Args:
        content: an image file, its bytes, or gray values (H, W).
        name: of the file, for messages.
        shape: height, width and channels.

    Raises:
        DataError: the image is refused.
    """
    with _errors_as_data_error(name) as caught_warnings:
        if isinstance(content, np.ndarray):
            return _fit_to_shape(Image.fromarray(content), shape, [])
        stream = io.BytesIO(_read_bytes(content, name))
        with Image.open(stream, formats=PIL_FORMATS) as image:
            conversions = _check_header(image, name)
            plain = _to_plain_mode(image, name, conversions)
            # Pillow warns of what it mends, such as damaged EXIF.
            conversions += [
                f"Pillow: {escape_unprintable(str(warning.message).strip()):.100}" for warning in caught_warnings[:1]
            ]
            return _fit_to_shape(plain, shape, conversions)


def _read_bytes(content: Path | bytes, name: str) -> bytes:
    if isinstance(content, Path):
        if not content.exists():
            raise DataError("no such file", file=name)
        if content.is_dir():
            raise DataError("is a folder: name the images in it", file=name)
        with open_regular_file(content, displayed_path=Path(name)) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    if not content:
        raise DataError("is empty", file=name)
    if len(content) > MAX_FILE_BYTES:
        raise DataError(f"is larger than {MAX_FILE_BYTES >> 20} MiB", file=name)
    return content


@contextmanager
def _errors_as_data_error(name: str) -> Iterator[list[warnings.WarningMessage]]:
    """Turn every error of a decoder into a DataError while the body runs, and collect its warnings in the list."""
    try:
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield caught_warnings
    except DataError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"has more than {MAX_PIXELS:,} pixels: scale it down", file=name) from None
    except UnidentifiedImageError:
        raise DataError(f"is not an image of a format that can be read ({', '.join(PIL_FORMATS)})", file=name) from None
    except OSError as error:
        if error.errno is not None:
            raise  # it is the disk; of a damaged file Pillow raises one without a number
        raise DataError(f"is damaged: {escape_unprintable(str(error)):.100}", file=name) from error
    except Exception as error:  # decoders raise what comes: SyntaxError, struct.error, IndexError, zlib.error ...
        raise DataError(
            f"is damaged: {type(error).__name__} {escape_unprintable(str(error)):.100}", file=name
        ) from error


def _check_header(image: Image.Image, name: str) -> list[str]:
    """The conversions that the header alone asks for. Raises DataError if the image is refused."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise DataError(f"has more than {MAX_PIXELS:,} pixels ({width} x {height}): scale it down", file=name)
    has_several_pictures = bool(getattr(image, "is_animated", False))
    if has_several_pictures and image.format != "MPO":
        raise DataError("is animated, or has several pages: save the picture that is meant", file=name)
    kind = ""
    if image.mode not in PIL_MODES and not image.mode.startswith("I;16"):
        kind = f"of mode {image.mode} "
    elif image.mode == "I" and image.format == "TIFF":
        kind = "with a sign or of 32 bits "
    if kind:
        raise DataError(
            f"has pixels {kind}without a known black and white: scale its values to 0 (black) to 255 (white), "
            "and save 8 bits of each",
            file=name,
        )
    return ["first picture of several (MPO)"] if has_several_pictures else []


def _to_plain_mode(file: ImageFile.ImageFile, name: str, conversions: list[str]) -> Image.Image:
    """The image upright, opaque, of 8 bits, in mode L or RGB."""
    is_grey = file.mode in ("1", "L", "LA", "La")
    is_deep = file.mode.startswith("I")
    bits = _tiff_bits_per_sample(file)
    if is_deep or bits > 8 or ";16" in str(file.tile) or _is_deep_ppm(file):
        conversions.append(f"{bits or 16} bits to 8")
    was_turned = file.format == "TIFF" and _has_rotation(file)  # Pillow puts it upright as it loads it
    file.load()
    image: Image.Image = file
    has_alpha = image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
    if was_turned or _has_rotation(image):
        conversions.append("turned as EXIF says")
        image = ImageOps.exif_transpose(image)
    if is_deep and has_alpha:
        raise DataError("has 16 bits and transparency: save it with 8 bits", file=name)
    if is_deep:
        return _to_eight_bits(
            image, 2 ** (bits or 16) - 1, is_negative=_tiff_tag(file, PHOTOMETRIC_TAG) == WHITE_IS_ZERO_PHOTOMETRIC
        )
    if has_alpha:
        conversions.append("transparency to white")
        return _paste_on_white(image, "L" if is_grey else "RGB")
    if image.mode not in ("L", "RGB"):
        conversions.append(f"mode {image.mode}")
        return image.convert("L" if is_grey else "RGB")
    return image


def _has_rotation(image: Image.Image) -> bool:
    return image.getexif().get(ORIENTATION_TAG, 1) in range(2, 9)


def _is_deep_ppm(file: ImageFile.ImageFile) -> bool:
    """Return whether white of a PPM file is more than 255, which Pillow scales as it loads it."""
    return file.format == "PPM" and any(isinstance(each, int) and each > 255 for each in file.tile[0].args or ())


def _tiff_tag(file: ImageFile.ImageFile, tag: int) -> object:
    return file.tag_v2.get(tag) if isinstance(file, TiffImagePlugin.TiffImageFile) else None


def _tiff_bits_per_sample(file: ImageFile.ImageFile) -> int:
    """The bits of a value in a TIFF file, since Pillow does not scale values of 12 bits; 0 in other formats."""
    bits = _tiff_tag(file, BITS_TAG)
    return int(bits[0]) if isinstance(bits, tuple) and bits else 0


def _horizontal_strips(image: Image.Image) -> Iterator[tuple[int, Image.Image]]:
    """The image in bands of whole rows, each with its first row, for steps that need several times their memory."""
    height = max(1, MAX_STRIP_PIXELS // image.width)
    for top in range(0, image.height, height):
        yield top, image.crop((0, top, image.width, min(top + height, image.height)))


def _paste_on_white(image: Image.Image, mode: str) -> Image.Image:
    """The image on white, in a mode without transparency."""
    opaque = Image.new(mode, image.size)
    for top, band in _horizontal_strips(image):
        white = Image.new("RGBA", band.size, (255, 255, 255, 255))
        opaque.paste(Image.alpha_composite(white, band.convert("RGBA")).convert(mode), (0, top))
    return opaque


def _to_eight_bits(image: Image.Image, white: int, *, is_negative: bool) -> Image.Image:
    """Gray of more bits as the nearest 8-bit gray; of a negative 0 is white, and `white` black."""
    grey = Image.new("L", image.size)
    for top, band in _horizontal_strips(image):
        values = np.asarray(band).astype(np.int64).clip(0, white)
        values = white - values if is_negative else values
        grey.paste(Image.fromarray(((values * 255 + white // 2) // white).astype(np.uint8)), (0, top))
    return grey


def _fit_to_shape(image: Image.Image, shape: ImageSize, conversions: list[str]) -> DecodedImage:
    if image.mode != shape.pil_mode:
        conversions.append("colour to grey" if shape.channels == 1 else "grey to colour")
        image = image.convert(shape.pil_mode)
    if image.size != (shape.width, shape.height):
        width, height = image.size
        conversions.append("scaled up" if width < shape.width or height < shape.height else "scaled down")
        if width * shape.height != height * shape.width:
            conversions.append("cropped")
        image = ImageOps.fit(image, (shape.width, shape.height), Image.Resampling.BICUBIC)
    pixels = np.asarray(image, np.uint8).reshape(shape.height, shape.width, shape.channels)
    return DecodedImage(pixels, tuple(conversions))
