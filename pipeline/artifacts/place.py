"""The output place of an artifact: it must be free, or have an artifact of tfm."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, looks_like_tfm_manifest, read_manifest
from tfm.pipeline.artifacts.swap import is_version_link
from tfm.pipeline.errors import DataError, WriteError


def check_is_own_folder(folder: Path, stage: str) -> None:
    """Raise WriteError if the folder of an artifact is the current folder, which would be replaced.

    Args:
        folder: as it was asked for.
        stage: that makes the artifact.
    """
    is_working_folder = folder.name in ("", os.pardir)
    with suppress(OSError):
        is_working_folder = is_working_folder or os.path.samefile(folder, os.curdir)
    if is_working_folder:
        raise WriteError(f"{folder}: an artifact needs its own folder; give one, such as ./{stage}")


def check_holds_no_input(folder: Path, paths: Iterable[str | None]) -> None:
    """Raise WriteError if an input lies in the folder of an artifact, which is replaced as a whole.

    Args:
        folder: as it was asked for.
        paths: of the inputs; None for one that is no file.
    """
    place = os.path.realpath(folder)
    for path in filter(None, paths):
        if os.path.exists(path) and Path(place) in Path(os.path.realpath(path)).parents:
            raise WriteError(
                f"{folder}: contains {path}, which this command reads and would lose; choose another folder"
            )


def refuse_foreign_folder(folder: Path, stage: str, target: Path) -> None:
    """Raise WriteError unless the place is empty or holds an artifact of the same stage and nothing more.

    Args:
        folder: of the artifact, as it was asked for.
        stage: that makes the artifact.
        target: the same, with every link above it resolved.
    """
    if target.is_symlink() and not is_version_link(target):
        raise WriteError(f"{folder}: is a link that tfm did not make; remove it or choose another folder")
    if not target.exists():
        return
    if not target.is_dir():
        raise WriteError(f"{folder}: is a file; remove it or choose another folder")
    if not any(target.iterdir()):
        return
    try:
        manifest = read_manifest(folder, target)
    except DataError as error:
        if target.is_symlink() or looks_like_tfm_manifest(target):
            return  # making it again is the remedy
        problem = "contains files that tfm did not write (there is no manifest.json of tfm); move it away"
        raise WriteError(f"{folder}: {problem} or choose another folder") from error
    if manifest.stage != stage:
        raise WriteError(f"{folder}: was made by {manifest.stage!r}; choose another folder")
    if foreign := _list_files(target) - manifest.files.keys() - {MANIFEST_FILE}:
        raise WriteError(f"{folder}: contains {min(foreign)!r}, which tfm did not write; move it away")


def _list_files(folder: Path) -> set[str]:
    """All paths under a folder except folders, links among them, relative to it."""
    names: set[str] = set()
    for parent, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        names |= {Path(parent, name).relative_to(folder).as_posix() for name in [*files, *links]}
    return names
