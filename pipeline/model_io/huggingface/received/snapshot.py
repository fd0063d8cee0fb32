"""The files of a folder of transformers, which somebody else may have sent: which are read, from where, and how much.

Only files inside the folder are read. A symbolic link may lead to another file inside it; in a cache of the Hugging
Face Hub, `models--X/snapshots/REVISION`, also into `models--X/blobs`, where that cache keeps the contents.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.data.json_documents import read_json
from tfm.data.safe_files import open_regular, path_inside, read_bounded
from tfm.pipeline.artifacts.manifest import Input
from tfm.tokenizer.tokenizer import MAX_BYTES

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
CONFIG, GENERATION = "config.json", "generation_config.json"
FILES = (
    *(CONFIG, GENERATION, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "target_vocab.json", "vocab.txt", "merges.txt"),
    *("source.spm", "target.spm", "sentencepiece.bpe.model"),
)
"""The files that are read beside the weights and their index."""
NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


class Snapshot:
    """A folder as `save_pretrained` writes it, or as the Hub's cache keeps it.

    `MAX_BYTES` bounds each file but the weights: no larger tokenizer could be loaded after the import.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._roots = _blobs_beside(os.path.realpath(folder))

    def has(self, name: str) -> bool:
        """Whether the folder has an entry of this name, of whatever kind."""
        return os.path.lexists(self.folder / name)

    def locate(self, name: object, given_by: str | None = None) -> Path:
        """Find the regular file that a name stands for, all links resolved.

        Args:
            name: the path inside the folder.
            given_by: the file that gives this name; none: it is a name of transformers.

        Raises:
            DataError: it lies elsewhere, is no regular file, or a link to nothing.
        """
        shown = self.folder / CONFIG if given_by is None else self.folder / given_by
        try:
            path = path_inside(self.folder, name, file=shown, roots=self._roots)
        except DataError:
            if given_by is not None:
                raise
            raise DataError(
                "is a link out of its folder, and tfm reads no file from elsewhere: put the file itself here",
                file=self.folder / str(name),
            ) from None
        place = Path(os.path.realpath(path))
        try:
            open_regular(place, shown=path).close()
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            problem = "is a link to nothing" if os.path.islink(path) else f"there is no file {str(name)!r:.80}"
            raise DataError(problem, file=self.folder) from None
        return place

    def read(self, name: str) -> bytes:
        """The content of one of `FILES`. Raises DataError as `locate` does, or if it is too large."""
        assert name in (*FILES, INDEX), name
        return read_bounded(self.locate(name), shown=self.folder / name, max_bytes=MAX_BYTES)

    def read_text(self, name: str) -> str:
        """Read one of `FILES` as text. Raises DataError if it is not UTF-8, or as `read` does."""
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError("is not UTF-8", file=self.folder / name, byte=error.start) from None

    def read_document(self, name: str) -> dict[str, Any]:
        """The JSON object in one of `FILES`; empty if there is no such file."""
        assert name in (*FILES, INDEX), name
        if not self.has(name):
            return {}
        return read_json(self.locate(name), shown=self.folder / name, max_bytes=MAX_BYTES)

    def weight_files(self) -> list[Path]:
        """The files of the weights, links resolved, each once. Raises DataError if one is missing or elsewhere."""
        return list(dict.fromkeys(place for _, place in self._weights()))

    def inputs(self) -> dict[str, Input]:
        """Every file that an import may read, as its inputs."""
        small = {name: self.locate(name) for name in (*FILES, INDEX) if self.has(name)}
        for name, place in small.items():
            if (size := place.stat().st_size) > MAX_BYTES:
                problem = f"is larger than any file that tfm reads here ({size:,} bytes; {MAX_BYTES:,} at most)"
                raise DataError(problem, file=self.folder / name)
        places = small | dict(self._weights())
        found = {name: Input.of_file(place) for name, place in places.items()}
        return {name: Input(each.fingerprint, str(self.folder / name)) for name, each in found.items()}

    def _weights(self) -> Iterator[tuple[str, Path]]:
        """The files of the weights by name."""
        if self.has(INDEX):
            weight_map = self.read_document(INDEX).get("weight_map")
            if not isinstance(weight_map, dict) or not weight_map:
                raise DataError("has no weight_map of names and files", file=self.folder / INDEX)
            names = [*dict.fromkeys(name if isinstance(name, str) else repr(name) for name in weight_map.values())]
            yield from ((name, self.locate(name, given_by=INDEX)) for name in sorted(names))
        elif self.has(WEIGHTS):
            yield WEIGHTS, self.locate(WEIGHTS)
        else:
            problem = f"has no {WEIGHTS}: weights are read from safetensors alone; save it anew with transformers"
            raise DataError(problem, file=self.folder)


def _blobs_beside(root: str) -> tuple[str, ...]:
    """The folder of contents that belongs to a snapshot in a cache of the Hub; none for other folders."""
    revisions, _ = os.path.split(root)
    repository, name = os.path.split(revisions)
    is_cached = name == "snapshots" and os.path.basename(repository).startswith("models--")
    return (os.path.join(repository, "blobs"),) if is_cached else ()
