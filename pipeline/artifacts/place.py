"""The places of outputs: that of an artifact must be free, or have an artifact of tfm; that of a file hold no input."""

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path

from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, looks_like_tfm_manifest, read_manifest
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks
from tfm.pipeline.artifacts.swap import is_version_link
from tfm.pipeline.errors import DataError, WriteError

STDOUT_FILENO = 1


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


def check_is_in_no_artifact(path: Path) -> None:
    """Raise WriteError if a file or folder to be written lies in an artifact, which would no longer be whole."""
    for folder in Path(os.path.realpath(path)).parents:
        if _holds_artifact(folder):
            raise WriteError(
                f"{path}: lies in {folder}, an artifact of tfm, which it would damage: choose another place"
            )


def check_output_files(files: Mapping[str, Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Check that files can be written, each a file of its own, before any work.

    Args:
        files: by the option that names each; None where it was not given.
        inputs: files that the same command reads.

    Raises:
        WriteError: a file is a folder or a link, cannot be written, lies in an artifact, which would no longer be
            whole, is one of the inputs, which would be lost, or that of another option or of standard output.
    """
    given = {option: file for option, file in files.items() if file is not None}
    existing_inputs = [each for each in inputs if each is not None and os.path.exists(each)]
    for file in given.values():
        with convert_os_errors(file):
            os.scandir(file.parent).close()
            if file.is_dir():  # as is the path of an empty text, "."
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
            if not os.access(file if file.exists() else file.parent, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        check_no_symlinks(file.parent, file)
        if file.exists() and any(file.samefile(each) for each in existing_inputs):
            raise WriteError(f"{file}: is read by this command too, which would overwrite it: give another file")
        if _is_standard_output(file):
            raise WriteError(f"{file}: is the file to which standard output goes: give another one")
        check_is_in_no_artifact(file)
    for (option, file), (other_option, other_file) in combinations(given.items(), 2):
        if _is_same_file(file, other_file):
            raise WriteError(f"{file}: is the file of both {option} and {other_option}: give each its own")


def _is_standard_output(file: Path) -> bool:
    """Whether what is printed goes into a file, as by `> FILE` in a shell."""
    with suppress(OSError):
        return os.path.samestat(os.stat(file), os.fstat(STDOUT_FILENO))
    return False


def _holds_artifact(folder: Path) -> bool:
    """Whether a folder has a manifest and the files that this lists, and not a copy of the manifest alone."""
    if not (folder / MANIFEST_FILE).is_file():
        return False
    try:
        manifest = read_manifest(folder, folder)
    except (DataError, OSError):
        return False
    return all((folder / name).is_file() for name in manifest.files)


def _is_same_file(file: Path, other_file: Path) -> bool:
    """Whether two paths, of which neither needs to exist, are those of one file."""
    if file.exists() and other_file.exists():
        return file.samefile(other_file)
    return os.path.realpath(file) == os.path.realpath(other_file)


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
