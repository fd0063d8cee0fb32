"""Corpora of tiny images: a bright square on a dark ground, and captions that say where and of which colour it is."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 8
COLOURS = {"rot": (250, 20, 10), "GRÜN": (10, 240, 30), "ब्लू": (20, 10, 245)}
PLACES = {"oben links": (0, 0), "oben rechts": (0, 4), "unten links": (4, 0), "unten rechts": (4, 4)}
SHAPE = {"height": SIDE, "width": SIDE}


def square(draw: random.Random) -> tuple[NDArray[np.uint8], tuple[str, str], str]:
    """Pixels (8, 8, 3) that hardly any other has, two captions, and a label."""
    colour, place = draw.choice(list(COLOURS)), draw.choice(list(PLACES))
    pixels = np.array([[[draw.randrange(30) for _ in range(3)] for _ in range(SIDE)] for _ in range(SIDE)], np.uint8)
    down, right = PLACES[place]
    pixels[down : down + 4, right : right + 4] = COLOURS[colour]
    return pixels, (f"{colour} ist {place}", f"{place} ist {colour}"), colour


def write_folder(folder: Path, count: int, seed: int = 1, *, labels: bool = False) -> Path:
    """PNG files with captions in metadata.jsonl; or, with labels, in folders that are called so."""
    draw = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(count):
        pixels, captions, label = square(draw)
        name = f"{label}/{number}.png" if labels else f"{number}.png"
        (folder / name).parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / name)
        lines.append(json.dumps({"file_name": name, "text": captions}, ensure_ascii=False) + "\n")
    if not labels:
        (folder / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def idx_bytes(values: NDArray[np.uint8]) -> bytes:
    """An array as an IDX file."""
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def write_idx(folder: Path, count: int, seed: int = 1) -> dict[str, Any]:
    """Grey images and their labels in two files; what a recipe says of them."""
    draw = random.Random(seed)
    found = [square(draw) for _ in range(count)]
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = folder / "images.idx", folder / "labels.idx"
    images.write_bytes(idx_bytes(np.array([pixels[:, :, 0] for pixels, _, _ in found])))
    labels.write_bytes(idx_bytes(np.array([[*COLOURS].index(label) for _, _, label in found], np.uint8)))
    return {"format": "idx", "path": str(images), "target": str(labels), "classes": [*COLOURS]}


def tiff_bytes(values: NDArray[np.uint16], bits: int, *, negative: bool = False, turned: int = 1) -> bytes:
    """Grey values (height, width) as a little-endian TIFF file without compression.

    negative: whether 0 is white; turned: the orientation.
    """
    by_bits = np.packbits((values[..., None] >> np.arange(bits)[::-1] & 1).astype(np.uint8)).tobytes()
    packed = values.astype("<u2").tobytes() if bits == 16 else by_bits
    (height, width), begin = values.shape, 8 + 2 + 9 * 12 + 4
    tags = {256: width, 257: height, 258: bits, 259: 1, 262: 0 if negative else 1, 273: begin, 274: turned}
    tags |= {277: 1, 279: len(packed)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(4) + packed
