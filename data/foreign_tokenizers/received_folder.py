"""The files of a folder that somebody else may have sent: which are read, from where, and how much.

Only files inside the folder are read. A symbolic link may lead to another file inside it; in a cache of the Hugging
Face Hub, `models--X/snapshots/REVISION`, also into `models--X/blobs`, where that cache keeps the contents.
"""

import errno
import os
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.data.json_documents import read_json
from tfm.data.safe_files import open_regular_file, read_bounded_file, resolve_path_inside
from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES

MISSING_FILE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}


class PretrainedFolder:
    """A folder as `save_pretrained` writes it, or as the Hub's cache keeps it.

    `MAX_TOKENIZER_FILE_BYTES` bounds each file that is read whole: no larger tokenizer could be loaded later.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._roots = _hub_blob_folders(os.path.realpath(folder))

    def has_file(self, name: str) -> bool:
        """Whether there is anything of this name, of whatever kind."""
        return os.path.lexists(self.folder / name)

    def locate_file(self, name: object, referring_file: str | None = None) -> Path:
        """Find the regular file that a name stands for, all links resolved.

        Args:
            name: the path inside the folder.
            referring_file: the file that gives this name; none: it is a name of a program.

        Raises:
            DataError: it lies elsewhere, is no regular file, or a link to nothing.
        """
        displayed_path = self.folder / str(referring_file or name)
        try:
            path = resolve_path_inside(self.folder, name, file=displayed_path, roots=self._roots)
        except DataError:
            if referring_file is not None:
                raise
            raise DataError(
                "is a link out of its folder, and tfm reads no file from elsewhere: put the file itself here",
                file=self.folder / str(name),
            ) from None
        target = Path(os.path.realpath(path))
        try:
            open_regular_file(target, displayed_path=path).close()
        except OSError as error:
            if error.errno not in MISSING_FILE_ERRNOS:
                raise
            problem = "is a link to nothing" if os.path.islink(path) else f"there is no file {str(name)!r:.80}"
            raise DataError(problem, file=self.folder) from None
        return target

    def read(self, name: str) -> bytes:
        """The content of a file. Raises DataError as `locate_file` does, or if it is too large."""
        return read_bounded_file(
            self.locate_file(name), displayed_path=self.folder / name, max_bytes=MAX_TOKENIZER_FILE_BYTES
        )

    def read_text(self, name: str) -> str:
        """The same as text. Raises DataError if it is not UTF-8."""
        return decode_text(self.read(name), self.folder / name)

    def read_document(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; empty if there is no such file."""
        if not self.has_file(name):
            return {}
        return read_json(self.locate_file(name), displayed_path=self.folder / name, max_bytes=MAX_TOKENIZER_FILE_BYTES)


def decode_text(data: bytes, file: Path) -> str:
    """The text of a file's bytes. Raises DataError if it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8", file=file, byte=error.start) from None


def _hub_blob_folders(root: str) -> tuple[str, ...]:
    """The folder of contents that belongs to a snapshot in a cache of the Hub; none for other folders."""
    revisions, _ = os.path.split(root)
    repository, name = os.path.split(revisions)
    is_cached = name == "snapshots" and os.path.basename(repository).startswith("models--")
    return (os.path.join(repository, "blobs"),) if is_cached else ()
