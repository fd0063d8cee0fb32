"""Artifacts: the output of one stage for the next, published atomically and verified before it is read.

A new version is written into a hidden folder next to the final one, and swapped with it in one atomic step (`swap.py`).
The module does not depend on any stage.
"""

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts import provenance
from tfm.pipeline.artifacts.canonical_json import JSON, find_differences, to_jsonable
from tfm.pipeline.artifacts.file_system import file_system_problem
from tfm.pipeline.artifacts.files import (
    FileEntry,
    add_path_to_errors,
    convert_os_errors,
    resolve_folder,
    sha256_and_sync,
    sync_folder,
    walk_tree,
)
from tfm.pipeline.artifacts.folder_lock import lock_folder
from tfm.pipeline.artifacts.manifest import (
    FORMAT_VERSION,
    MANIFEST_FILE,
    Input,
    Manifest,
    compute_fingerprint,
    open_artifact,
    read_artifact,
    serialize_document,
)
from tfm.pipeline.artifacts.no_symlinks import open_folder_below
from tfm.pipeline.artifacts.place import (
    check_holds_no_input,
    check_is_in_no_artifact,
    check_is_own_folder,
    refuse_foreign_folder,
)
from tfm.pipeline.artifacts.renamed_files import find_renamed_paths, rename_inputs, rename_paths
from tfm.pipeline.artifacts.swap import (
    hidden_version_name,
    is_version_link,
    leftover_versions,
    remove_leftovers,
    replace_atomically,
    restore_backup,
)
from tfm.pipeline.errors import DataError, WriteError, redact_command_line
from tfm.pipeline.runtime.progress import Reporter

__all__ = [
    "Draft", "Input", "Manifest", "Plan", "check_output_is_writable", "inspect_artifact", "install_artifact",
    "is_fresh", "lock_folder", "open_artifact", "publish", "read_artifact", "stale_reason",
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """An artifact before it is made: its folder, and all that determines it.

    Args:
        stage: that makes it.
        folder: of the artifact.
        config: a JSON object.
        inputs: by label.
        seed: None: the recipe's seed has no part in it.
    """

    stage: str
    folder: Path
    config: Mapping[str, JSON]
    inputs: Mapping[str, Input]
    seed: int | None


@dataclass(frozen=True)
class Draft:
    """An artifact in the making: write files under `folder`, and numbers worth keeping into `figures`."""

    folder: Path
    figures: dict[str, JSON] = field(default_factory=dict)


def stale_reason(plan: Plan) -> str | None:
    """Return the reason why the artifact has to be made; None if it is whole and made from just this plan.

    Files that were renamed or moved, and have the same content, are no reason.
    """
    if not os.path.lexists(plan.folder):
        return "not made yet"
    with suppress(OSError):
        if not any(plan.folder.iterdir()):
            return "not made yet"
    try:
        manifest = open_artifact(plan.folder)
    except DataError as error:
        return f"damaged: {error}"
    if manifest.stage != plan.stage:
        return f"{manifest.stage!r} made it"
    names = find_renamed_paths(manifest.inputs, plan.inputs)
    inputs = rename_inputs(manifest.inputs, names)
    differences = find_differences(rename_paths(manifest.config, names), to_jsonable(plan.config))
    changes = [f"{key} {old!r:.60} -> {new!r:.60}" for key, (old, new) in differences.items()]
    if changes:
        return "config changed: " + ", ".join(changes[:3]) + (f" and {len(changes) - 3} more" if changes[3:] else "")
    for label in sorted(inputs.keys() | plan.inputs.keys()):
        if label not in inputs:
            return f"input {label} is new"
        if label not in plan.inputs:
            return f"input {label} is gone"
        if inputs[label].fingerprint != plan.inputs[label].fingerprint:
            return f"input {label} changed"
    # In older versions, a stage that draws nothing had a seed too.
    return f"seed changed: {manifest.seed} -> {plan.seed}" if plan.seed not in (None, manifest.seed) else None


def is_fresh(plan: Plan, reporter: Reporter) -> bool:
    """Whether the artifact is made already; the reporter shows that, or the reason why it is not.

    A fresh manifest is touched, so that make, which compares times, sees it as newer than its inputs.

    Raises:
        WriteError: something is there that is not ours to replace.
    """
    reason = stale_reason(plan)
    name = plan.folder.name
    if reason is not None:
        with convert_os_errors(plan.folder):
            refuse_foreign_folder(plan.folder, plan.stage, resolve_folder(plan.folder))
        reporter.line(f"{name}: {reason}")
        return False
    with suppress(OSError, WriteError):
        touch_manifest(plan.folder)
    with suppress(OSError, WriteError):  # its publisher may have been killed before it could clean up
        if leftover_versions(resolve_folder(plan.folder)):
            with lock_folder(plan.folder):
                remove_leftovers(resolve_folder(plan.folder))
    reporter.line(f"{name}: up to date, nothing to do ({plan.folder})")
    return True


def touch_manifest(folder: Path) -> None:
    """Set the times of a manifest to now. Not through a link that tfm did not make: its artifact lies elsewhere."""
    target = resolve_folder(folder)
    if target.is_symlink() and is_version_link(target):
        target = target.parent / os.readlink(target)
    with open_folder_below(target.parent, target) as descriptor:
        os.utime(MANIFEST_FILE, dir_fd=descriptor, follow_symlinks=False)


@contextmanager
def publish(plan: Plan, *, command: Sequence[str], seconds_before: float = 0.0) -> Iterator[Draft]:
    """Make an artifact: the body writes a draft, and when it ends well the draft replaces the old artifact.

    The place is locked throughout. At every moment, whatever fails and whenever the process dies, the name gives the
    old artifact whole or the new one whole (see `swap.put` for file systems that cannot swap).

    Args:
        plan: the stage, folder, config, inputs and seed of the artifact.
        command: the command line, for the manifest.
        seconds_before: of work for the artifact up to here, which belongs to its duration.

    Raises:
        WriteError: another process writes the same place, something is there that is not ours to replace, or the
            file system cannot rename.
    """
    start_time = time.monotonic() - seconds_before
    with _replace_by_filled_folder(plan) as version:
        draft = Draft(version)
        yield draft
        _write_manifest(plan, draft, command, start_time)


@contextmanager
def install_artifact(folder: Path, stage: str) -> Iterator[Path]:
    """Put an artifact that was made elsewhere in its place: the body fills a folder, manifest and all, which is
    verified and replaces an artifact of the same stage as by `publish`.

    Args:
        folder: of the artifact.
        stage: that made it.

    Raises:
        WriteError: as `publish`.
        DataError: the artifact is not what its manifest says, or is of another stage.
    """
    plan = Plan(stage, folder, {}, {}, None)
    with _replace_by_filled_folder(plan) as version:
        yield version
        open_artifact(version, stage)
        files, folders = walk_tree(version)
        for name in files:
            sha256_and_sync(version / name)
        for subfolder in [*folders, version.parent]:
            sync_folder(subfolder)


@contextmanager
def _replace_by_filled_folder(plan: Plan) -> Iterator[Path]:
    """Lock the place of an artifact, let the body fill a folder beside it, and put that folder in its place."""
    with _lock_and_make_draft_folder(plan) as (target, version):
        try:
            with add_path_to_errors(plan.folder):
                yield version
                # much may have been put there since the work began
                refuse_foreign_folder(plan.folder, plan.stage, target)
                replace_atomically(version, target)
        except BaseException:
            shutil.rmtree(version, ignore_errors=True)  # the draft or, if the new one is published, the old one
            raise
        with suppress(OSError):  # the new one is published; the next publisher removes the rest
            remove_leftovers(target)


def check_output_is_writable(plan: Plan) -> None:
    """Raise the errors of `publish` about the place, before there is anything to publish."""
    with (
        _lock_and_make_draft_folder(plan) as (_, version),
        suppress(OSError),
    ):  # the next publisher removes what is left
        version.rmdir()


@contextmanager
def _lock_and_make_draft_folder(plan: Plan) -> Iterator[tuple[Path, Path]]:
    """The locked place of an artifact, and an empty folder beside it for the draft."""
    check_is_own_folder(plan.folder, plan.stage)
    check_is_in_no_artifact(plan.folder)
    check_holds_no_input(plan.folder, (each.path for each in plan.inputs.values()))
    with lock_folder(plan.folder):
        target = resolve_folder(plan.folder)
        with convert_os_errors(plan.folder):
            restore_backup(target)
        refuse_foreign_folder(plan.folder, plan.stage, target)
        version = hidden_version_name(target)
        with convert_os_errors(plan.folder):
            remove_leftovers(target)
            version.mkdir()
            _check_file_system(plan, version)
        yield target, version


def _check_file_system(plan: Plan, version: Path) -> None:
    """Raise WriteError if a version could not be put in its place; then it is removed."""
    try:
        if problem := file_system_problem(version):
            raise WriteError(f"{plan.folder}: {problem}")
    except BaseException:
        shutil.rmtree(version, ignore_errors=True)
        raise


def _write_manifest(plan: Plan, draft: Draft, command: Sequence[str], start_time: float) -> None:
    """Bring the draft to disk, its manifest last."""
    statuses, folders = walk_tree(draft.folder)
    files = {name: FileEntry(status.st_size, sha256_and_sync(draft.folder / name)) for name, status in statuses.items()}
    config = to_jsonable(plan.config)
    document = {
        "tfm_format": FORMAT_VERSION,
        "stage": plan.stage,
        "fingerprint": compute_fingerprint(plan.stage, config, plan.inputs, plan.seed, files),
        "command": redact_command_line(command),
        "config": config,
        "inputs": {label: artifact_input.as_json() for label, artifact_input in plan.inputs.items()},
        "files": {name: {"size": entry.size, "sha256": entry.sha256} for name, entry in files.items()},
        "seed": plan.seed,
        "figures": to_jsonable(draft.figures),
        "versions": provenance.package_versions(),
        "git_commit": provenance.git_commit(),
        "hardware": provenance.describe_hardware(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.monotonic() - start_time, 3),
    }
    with open(draft.folder / MANIFEST_FILE, "xb") as file:
        file.write(serialize_document(document))
        file.flush()
        os.fsync(file.fileno())
    for folder in [*folders, draft.folder.parent]:
        sync_folder(folder)


def inspect_artifact(folder: Path) -> dict[str, Any]:
    """Verify an artifact, and return all that is known of it; `inputs` leads back to the raw text."""
    manifest = open_artifact(folder)
    return {
        "path": str(folder),
        "stage": manifest.stage,
        "fingerprint": manifest.fingerprint,
        "command": manifest.command,
        "seed": manifest.seed,
        "config": manifest.config,
        "figures": manifest.figures,
        "files": {name: {"size": entry.size, "sha256": entry.sha256} for name, entry in manifest.files.items()},
        **manifest.provenance,
        "inputs": {label: each.as_json() for label, each in manifest.inputs.items()},
    }
