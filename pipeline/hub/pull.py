"""A model fetched from a hub: the files that its manifest names, verified before they stand under their name."""

import shutil
import tempfile
from pathlib import Path

from tfm.pipeline.artifacts.artifact import install_artifact
from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, Manifest, read_manifest
from tfm.pipeline.errors import WriteError
from tfm.pipeline.hub.repository import MODEL_FOLDER, check_repository_and_revision, convert_hub_errors
from tfm.pipeline.runtime.progress import Reporter


def pull(name: str, out: Path, *, revision: str | None, reporter: Reporter) -> Manifest:
    """Fetch the model of a repository as OUT/model.

    Args:
        name: of the repository, OWNER/NAME.
        out: the folder of the run that gets it.
        revision: a branch, tag or commit; None: the main branch.
        reporter: receives progress.

    Returns:
        The manifest of the model.

    Raises:
        WriteError: something else is there, or the disk has no room.
        DataError: the hub has no such model, or what came is not what its manifest says.
        RecipeError: the name is none of a repository.
    """
    check_repository_and_revision(name, revision)
    with convert_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with (
        install_artifact(out / MODEL_FOLDER, "train") as draft,
        tempfile.TemporaryDirectory(dir=draft.parent, prefix=".pull-") as temporary_folder,
    ):
        download_folder = Path(temporary_folder)
        _fetch(name, MANIFEST_FILE, download_folder, revision)
        manifest = read_manifest(Path(name), download_folder / MODEL_FOLDER)
        size = sum(entry.size for entry in manifest.files.values())
        if shutil.disk_usage(download_folder).free < size:
            raise WriteError(f"{out}: the model needs {size:,} bytes, and the disk has not so many: make room")
        with reporter.bar("fetching", len(manifest.files), "files") as bar:
            for file in manifest.files:
                _fetch(name, file, download_folder, revision)
                bar.advance()
        for file in (*manifest.files, MANIFEST_FILE):
            (draft / file).parent.mkdir(parents=True, exist_ok=True)
            (download_folder / MODEL_FOLDER / file).rename(draft / file)
    return manifest


def _fetch(name: str, file: str, path: Path, revision: str | None) -> None:
    """Fetch a file of the model into `path`/model."""
    from huggingface_hub import hf_hub_download

    with convert_hub_errors(name, revision):
        hf_hub_download(name, f"{MODEL_FOLDER}/{file}", revision=revision, local_dir=path)
