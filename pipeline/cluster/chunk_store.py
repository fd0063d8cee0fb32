"""Results of chunks on disk, beside the artifact that is made of them: a stage that was killed goes on with them.

Each is a file named by the hash of all that the result depends on. A file begins with the hash of its content, so that
one cut short or damaged counts as missing.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.artifacts.canonical_json import sha256_of_json, to_jsonable
from tfm.pipeline.artifacts.files import resolve_folder
from tfm.pipeline.artifacts.no_symlinks import (
    make_folder_below,
    open_file_below,
    remove_path_below,
    replace_file_below,
    symlink_problem,
)
from tfm.pipeline.cluster.node_packages import installed_packages

MAX_RESULT_BYTES = 1 << 30  # of one result
DIGEST_BYTES = 32
DRAFT_NAME = ".draft"


@dataclass(frozen=True)
class ChunkStore:
    """The kept results of the chunks of one artifact.

    Args:
        folder: of the results.
        identity: a hash of the stage, its config, its inputs, the packages that shape results, and the source of tfm.
    """

    folder: Path
    identity: str

    def read(self, key: str) -> bytes | None:
        """Return the result of a chunk; None if it is not kept, or damaged."""
        file = self._file(key)
        if symlink_problem(self.folder.parent, file) is not None:
            return None
        try:
            content = read_bounded_file(file, max_bytes=MAX_RESULT_BYTES)
        except (OSError, DataError):
            return None
        digest, result = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        return result if hashlib.sha256(result).digest() == digest else None

    def write(self, key: str, result: bytes) -> None:
        """Keep the result of a chunk: whole, or not at all."""
        draft, file = self.folder / DRAFT_NAME, self._file(key)
        with open_file_below(self.folder.parent, draft, "wb") as stream:
            stream.write(hashlib.sha256(result).digest())
            stream.write(result)
        replace_file_below(self.folder.parent, draft, file)

    def _file(self, key: str) -> Path:
        return self.folder / hashlib.sha256(f"{self.identity} {key}".encode()).hexdigest()


def chunk_folder(artifact: Path) -> Path:
    """The folder of the chunks of an artifact, hidden beside it."""
    target = resolve_folder(artifact)
    return target.parent / f".{target.name}.chunks"


@contextmanager
def open_chunk_store(plan: Plan | None) -> Iterator[ChunkStore | None]:
    """Keep results beside an artifact for the time of the block; they are removed when it ends well.

    Raises WriteError if a link or special file has the name of the folder.
    """
    if plan is None:
        yield None
        return
    folder = chunk_folder(plan.folder)
    fingerprints = {label: each.fingerprint for label, each in plan.inputs.items()}
    identity = {"stage": plan.stage, "config": to_jsonable(plan.config), "inputs": fingerprints, "seed": plan.seed}
    make_folder_below(folder.parent, folder)
    yield ChunkStore(folder, sha256_of_json({**identity, "packages": installed_packages()}))
    remove_path_below(folder.parent, folder)


def damaged_chunk_error(problem: object, store: ChunkStore | None) -> DataError:
    """The error about the result of a chunk that is none, which names the folder to be removed."""
    folder = None if store is None else store.folder
    return DataError(f"a kept chunk is damaged ({problem!s:.200}): remove this hidden folder of chunks", file=folder)


def hash_text_columns(*columns: list[str]) -> str:
    """A hash of columns of texts: of their lengths and their characters."""
    digest = hashlib.sha256()
    for column in columns:
        digest.update(repr([len(column), *map(len, column)]).encode())
        digest.update("".join(column).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
