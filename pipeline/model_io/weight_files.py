"""Safetensors files that somebody else may have sent: their headers, before any tensor is read."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from safetensors import safe_open

from tfm.data.safe_files import open_regular_file

MAX_HEADER_BYTES = 16 * 2**20
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


def path_for_safetensors(file: Path) -> str:
    """The path of a file as safetensors takes it, in UTF-8: relative where the working folder's name is not."""
    try:
        os.fspath(file).encode()
    except UnicodeEncodeError:
        return os.path.relpath(file)
    return os.fspath(file)


def check_safetensors_header(file: Path) -> None:
    """Raise ValueError for a header larger than any of a model, DataError for anything but a regular file."""
    with open_regular_file(file) as stream:
        if int.from_bytes(stream.read(8), "little") > MAX_HEADER_BYTES:
            raise ValueError("its weights begin with a header larger than any that tfm writes")


def read_shapes(file: Path) -> Shapes:
    """The shapes of the tensors in a safetensors file, of which only the header is read."""
    return {name: shape for name, (shape, _) in read_tensor_specs(file).items()}


def read_tensor_specs(file: Path) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """The shape and the type, as safetensors spells it, of each tensor in a file, of which only the header is read."""
    check_safetensors_header(file)
    with safe_open(
        path_for_safetensors(file), "pt"
    ) as tensors:  # which refuses shapes that are not those of the bytes that are there
        parts = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118
        return {name: (tuple(part.get_shape()), str(part.get_dtype())) for name, part in parts.items()}
