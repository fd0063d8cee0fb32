"""Folders that every node must have under the same path, as the process has that was started."""

import socket
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from tfm.pipeline.errors import DataError


def check_folder_is_shared(folder: Path) -> None:
    """Raise DataError if a folder that the process has that was started is not on this node."""
    if not folder.is_dir():
        problem = f"is not there on node {socket.gethostname()}"
        raise DataError(f"{problem}: all nodes need it under this path, as in a shared folder", file=folder)


@contextmanager
def change_to_shared_folder(folder: str) -> Iterator[None]:
    """Work in a folder for the time of the block. Raises DataError if this node does not have it."""
    check_folder_is_shared(Path(folder))
    with chdir(folder):
        yield
