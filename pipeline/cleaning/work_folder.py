"""Scores that are found already, in a folder beside the artifact: a cleaning that was killed goes on from there.

A column is a file of numbers. `progress.json` says how many pairs, and bytes of changed texts, were safely on disk,
with the SHA-256 of each file up to there; what is behind them is cut off. All belongs to one plan: another one begins
again, as does one whose files were damaged.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.artifacts.canonical_json import sha256_of_json
from tfm.pipeline.artifacts.files import convert_os_errors, write_text_atomically
from tfm.pipeline.artifacts.no_symlinks import (
    check_tree_has_no_symlinks,
    make_folder_below,
    open_file_below,
    remove_path_below,
)
from tfm.pipeline.errors import DataError

PROGRESS_FILE = "progress.json"
CHANGES_FILE = "changes.jsonl"
MAX_PROGRESS_BYTES = 1 << 20
NUMBER_BYTES = 8
KEYS_PER_BLOCK = 1 << 16
BLOCK_BYTES = 1 << 20


def late_work_folder(folder: Path, rule: str) -> Path:
    """The folder of the scores by a model or a command in that of the work; rule: the name of its rule."""
    return folder / f"{rule}.late"


class MeasurementFolder:
    """The columns of a cleaning, by name, which grow together.

    Args:
        folder: where they are; what is there of another plan is removed.
        plan: all that determines the columns, a JSON value.
        widths: by name of a column, numbers a pair.
    """

    def __init__(self, folder: Path, plan: object, widths: Mapping[str, int]) -> None:
        self.folder = folder
        self._widths = dict(widths)
        self._fingerprint = sha256_of_json([plan, sorted(self._widths.items())])
        with convert_os_errors(folder):
            check_tree_has_no_symlinks(folder)
            progress = self._read_progress()
            if progress is None:
                remove_path_below(folder.parent, folder)
                make_folder_below(folder.parent, folder)
                progress = {"rows": 0, "changes": 0}
            self.rows, self._changes = int(progress["rows"]), int(progress["changes"])
            sizes = self._file_sizes(self.rows, self._changes)
            self._digests = {file: _sha256_of_first_bytes(file, size) for file, size in sizes.items()}
            self._files = {file: self._open_truncated(file, size) for file, size in sizes.items()}

    def append(
        self, columns: Mapping[str, NDArray[np.float64] | NDArray[np.uint64]], changes: Mapping[int, tuple[str, str]]
    ) -> None:
        """Add numbers (n, width) of further pairs, and their texts where they were changed, by number from 0."""
        for name in self._widths:
            self._append_and_hash(self._column_file(name), np.ascontiguousarray(columns[name]).tobytes())
        lines = "".join(json.dumps([self.rows + row, *texts]) + "\n" for row, texts in sorted(changes.items()))
        self._append_and_hash(self.folder / CHANGES_FILE, lines.encode())
        self._changes += len(lines)
        self.rows += len(next(iter(columns.values()), ()))

    def save_progress(self) -> None:
        """Bring all that was added to disk, so that it is found again."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        digests = {file.name: digest.hexdigest() for file, digest in self._digests.items()}
        progress = {"plan": self._fingerprint, "rows": self.rows, "changes": self._changes, "sha256": digests}
        text = json.dumps(progress)
        write_text_atomically(self.folder / PROGRESS_FILE, text)

    def read_scores(self, name: str, start: int = 0, count: int | None = None) -> NDArray[np.float64]:
        """(n,) the scores of a column; of `count` pairs from one on, where that is given."""
        count = self.rows - start if count is None else count
        return np.fromfile(self._column_file(name), np.float64, count, offset=start * NUMBER_BYTES)

    def read_keys(self, name: str, number: int) -> NDArray[np.uint64]:
        """(n,) one of the keys of each pair."""
        width, keys = self._widths[name], np.empty(self.rows, np.uint64)
        with open(self._column_file(name), "rb") as file:
            for first in range(0, self.rows, KEYS_PER_BLOCK):
                block = np.fromfile(file, np.uint64, min(KEYS_PER_BLOCK, self.rows - first) * width)
                keys[first : first + KEYS_PER_BLOCK] = block.reshape(-1, width)[:, number]
        return keys

    def read_changes(self) -> Iterator[tuple[int, str, str]]:
        """The pairs that were changed: number, source, target; in order. Raises DataError if a line is none."""
        file, last = self.folder / CHANGES_FILE, -1
        with open(file, encoding="ascii") as lines:
            try:
                for line in lines:
                    row, source, target = json.loads(line)
                    if not (type(row) is int and last < row < self.rows and type(source) is type(target) is str):
                        raise ValueError(f"{line:.40} is no change of a pair")
                    last = row
                    yield row, source, target
            except (ValueError, TypeError, RecursionError) as error:
                problem = f"another program changed what is kept of a cleaning ({error!s:.100}); remove its folder"
                raise DataError(problem, file=file) from error

    def close(self) -> None:
        """Close all files; they stay."""
        for file in self._files.values():
            with suppress(OSError):
                file.close()

    def _column_file(self, name: str) -> Path:
        return self.folder / f"{name}.column"

    def _file_sizes(self, rows: int, changes: int) -> dict[Path, int]:
        """The bytes of each file."""
        sizes = {self._column_file(name): rows * width * NUMBER_BYTES for name, width in self._widths.items()}
        return {**sizes, self.folder / CHANGES_FILE: changes}

    def _append_and_hash(self, file: Path, content: bytes) -> None:
        self._files[file].write(content)
        self._digests[file].update(content)

    def _open_truncated(self, file: Path, num_bytes: int) -> Any:
        stream = open_file_below(self.folder.parent, file, "a+b")
        stream.truncate(num_bytes)
        stream.seek(0, os.SEEK_END)
        return stream

    def _read_progress(self) -> dict[str, int] | None:
        """Return what is safely there; None if that is nothing, of another plan, or damaged."""
        try:
            progress = json.loads(read_bounded_file(self.folder / PROGRESS_FILE, max_bytes=MAX_PROGRESS_BYTES))
            rows, changes = progress["rows"], progress["changes"]
            is_valid = isinstance(rows, int) and isinstance(changes, int) and rows >= 0 and changes >= 0
            if not is_valid or progress["plan"] != self._fingerprint:
                return None
            sizes, digests = self._file_sizes(rows, changes), progress["sha256"]
            if any(file.stat().st_size < size for file, size in sizes.items()):
                return None
            if any(
                _sha256_of_first_bytes(file, size).hexdigest() != digests[file.name] for file, size in sizes.items()
            ):
                return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, DataError):
            return None
        return cast("dict[str, int]", progress)


def _sha256_of_first_bytes(file: Path, size: int) -> "hashlib._Hash":
    """The SHA-256 of the first bytes of a file, to go on with."""
    digest = hashlib.sha256()
    if size:
        with open(file, "rb") as stream:
            while size and (block := stream.read(min(size, BLOCK_BYTES))):
                digest.update(block)
                size -= len(block)
    return digest
