"""Checkpoints: folders `step-0000500` of safetensors and one state.json that lists their files.

state.json has the size and sha256 of every file, and of itself; checkpoint_folder.py writes them.
"""

import hashlib
import json
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from tfm.data.errors import DataError
from tfm.data.safe_files import open_regular_file
from tfm.pipeline.runtime.fully_sharded import shard_of_rank


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was verified: its state is a JSON object, its tensors are read when asked for."""

    folder: Path
    step: int
    state: dict[str, Any]
    files: dict[str, dict[str, Any]]

    def has_tensors(self, name: str) -> bool:
        """Return whether there are tensors of this name."""
        return bool(self._part_files(name))

    def tensors(self, name: str, rank: int = 0, size: int = 1) -> dict[str, Tensor]:
        """Return the tensors of `<name>.safetensors`, or of the files that each process of a sharded training wrote.

        Args:
            name: what they are of.
            rank: the process whose parts are wanted, of a training of `size` processes; by default all of them.
            size: number of processes.

        Raises:
            DataError: a file is damaged, or the parts do not belong together.
        """
        parts = self._part_files(name) or [f"{name}.safetensors"]
        if len(parts) == size > 1:
            return self._load_tensors(parts[rank])
        loaded = [self._load_tensors(part) for part in parts]
        if any(each.keys() != loaded[0].keys() for each in loaded):
            raise DataError(f"checkpoint is damaged: the parts of {name} have different tensors", file=self.folder)
        try:
            merged = {key: join_shards([each[key] for each in loaded]) for key in loaded[0]}
        except (RuntimeError, ValueError) as error:
            problem = f"checkpoint is damaged: the parts of {name} do not fit: {str(error).splitlines()[0]:.100}"
            raise DataError(problem, file=self.folder) from error
        return {key: shard_of_rank(tensor, rank, size) for key, tensor in merged.items()}

    def _part_files(self, name: str) -> list[str]:
        """The files with tensors of this name, in the order of the processes. Raises DataError if one is missing."""
        if f"{name}.safetensors" in self.files:
            return [f"{name}.safetensors"]
        part_files = sorted(
            file for file in self.files if re.fullmatch(rf"{name}-\d{{5}}-of-\d{{5}}\.safetensors", file)
        )
        if part_files != [part_file_name(name, rank, len(part_files)) for rank in range(len(part_files))]:
            raise DataError(f"checkpoint is damaged: the parts of {name} are not complete", file=self.folder)
        return part_files

    def _load_tensors(self, name: str) -> dict[str, Tensor]:
        file = self.folder / name
        try:
            return safetensors.torch.load(read_verified(file, self.files))
        except SafetensorError as error:
            raise DataError(f"not safetensors: {error}", file=file) from error


def part_file_name(name: str, rank: int, size: int) -> str:
    """Return the name of the file with a process's part of tensors.

    Args:
        name: what they are of.
        rank: number of the process.
        size: number of processes.
    """
    return f"{name}-{rank + 1:05d}-of-{size:05d}.safetensors"


def join_shards(parts: Sequence[Tensor]) -> Tensor:
    """Return the whole tensor of which these are the rows that each process has; numbers are the same in all.

    Raises:
        ValueError: the parts are of different types, or numbers differ.
        RuntimeError: the shapes of the parts do not fit.
    """
    if len({each.dtype for each in parts}) > 1:
        raise ValueError(f"one is {parts[0].dtype}, another is not")
    if not parts[0].ndim and not all(torch.equal(parts[0], each) for each in parts):
        raise ValueError("a number differs")
    return parts[0] if len(parts) == 1 or not parts[0].ndim else torch.cat(list(parts))


def file_fingerprint(contents: bytes) -> dict[str, Any]:
    return {"size": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}


def document_sha256(document: Mapping[str, Any]) -> str:
    """Return the sha256 of a document's canonical JSON."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_verified(file: Path, files: Mapping[str, Any]) -> bytes:
    """The bytes of a file, which are those that were written."""
    expected = files.get(file.name)
    try:
        status = file.lstat()
        is_expected = (
            stat.S_ISREG(status.st_mode) and isinstance(expected, dict) and status.st_size == expected.get("size")
        )
        contents = b""
        if is_expected:
            with open_regular_file(file, follow_symlinks=False) as stream:
                contents = stream.read()
    except OSError as error:
        raise DataError(f"checkpoint is damaged: {error.strerror}", file=file) from error
    if file_fingerprint(contents) != expected:
        raise DataError(f"checkpoint is damaged: size or sha256 is not that of {expected!r:.120}", file=file)
    return contents
