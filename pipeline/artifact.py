"""Artifacts: what one stage leaves for the next, published whole and verified before it is read.

The name of an artifact is a link to a hidden folder beside it that holds one complete version, so that one
atomic step puts a new version in place of the old. This module knows no stage.
"""

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline import environment
from pipeline.errors import CannotWrite, DataError
from pipeline.files import beginning, real_place, remove, sha256_and_sync, sync, tree, writing
from pipeline.lock import lock
from pipeline.manifest import (
    FORMAT,
    JSON,
    NAME,
    FileEntry,
    Input,
    Manifest,
    differences,
    fingerprint,
    open_artifact,
    plain,
    read_manifest,
    spell,
)
from pipeline.progress import Reporter

__all__ = [
    "JSON", "Draft", "Input", "Manifest", "Plan", "check_place", "inspect", "is_fresh", "lock", "open_artifact",
    "publish", "stale",
]  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """An artifact before it is made: where it goes and all that determines it; seed None: the recipe's has no part."""

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


def stale(plan: Plan) -> str | None:
    """Why the artifact has to be made, in words; None where it is whole and made from just this plan."""
    if not os.path.lexists(plan.folder):
        return "not made yet"
    try:
        made = open_artifact(plan.folder)
    except DataError as error:
        return f"damaged: {error}"
    if made.stage != plan.stage:
        return f"{made.stage!r} made it"
    found = differences(made.config, plain(plan.config))
    changes = [f"{key} {old!r:.60} -> {new!r:.60}" for key, (old, new) in found.items()]
    if changes:
        return "config changed: " + ", ".join(changes[:3]) + (f" and {len(changes) - 3} more" if changes[3:] else "")
    for label in sorted(made.inputs.keys() | plan.inputs.keys()):
        if label not in made.inputs:
            return f"input {label} is new"
        if label not in plan.inputs:
            return f"input {label} is gone"
        if made.inputs[label].fingerprint != plan.inputs[label].fingerprint:
            return f"input {label} changed"
    # Before, what draws nothing had a seed too.
    return f"seed changed: {made.seed} -> {plan.seed}" if plan.seed not in (None, made.seed) else None


def is_fresh(plan: Plan, reporter: Reporter) -> bool:
    """Whether the artifact is made already; tells the reporter so, or else why it is not.

    A fresh manifest is touched, so that make, which compares times, sees it as newer than its inputs.
    """
    reason = stale(plan)
    name = plan.folder.name
    if reason is not None:
        reporter.line(f"{name}: {reason}")
        return False
    with suppress(OSError):
        os.utime(plan.folder / NAME)
    with suppress(OSError, CannotWrite):  # whoever published it may have been killed before it could tidy up
        if _litter(real_place(plan.folder)):
            with lock(plan.folder):
                _clean(real_place(plan.folder))
    reporter.line(f"{name}: fresh, nothing to do ({plan.folder})")
    return True


@contextmanager
def publish(plan: Plan, *, command: Sequence[str]) -> Iterator[Draft]:
    """Make an artifact: the body writes a draft, and when it ends well the draft takes the place of what was there.

    The place is locked throughout. At every moment, whatever fails and whenever the process dies, the name
    gives the old artifact whole or the new one whole. Raises CannotWrite where another process writes the
    same place, or where something stands there that is not ours to replace.
    """
    began = time.monotonic()
    with _place_for(plan) as (place, version):
        try:
            with writing(plan.folder):
                draft = Draft(version)
                yield draft
                _seal(plan, draft, command, began)
                _swap(place, version)
        except BaseException:
            if _version(place) != version.name:
                shutil.rmtree(version, ignore_errors=True)
            raise
        with suppress(OSError):  # the new one stands; the next publisher finds what could not be removed
            _clean(place)


def check_place(plan: Plan) -> None:
    """Raise what `publish` would, before there is anything to publish."""
    with _place_for(plan) as (_, version):
        version.rmdir()


@contextmanager
def _place_for(plan: Plan) -> Iterator[tuple[Path, Path]]:
    """The locked place of an artifact, and an empty folder beside it for the draft."""
    _refuse_here(plan)
    with lock(plan.folder):
        place = real_place(plan.folder)
        _refuse_foreign(plan, place)
        version = _new_name(place)
        with beginning(plan.folder):
            _clean(place)
            version.mkdir()
        yield place, version


def _refuse_here(plan: Plan) -> None:
    """Raise CannotWrite where the place is the current folder: a link would take its place under our feet."""
    here = plan.folder.name in ("", os.pardir)
    with suppress(OSError):
        here = here or (not plan.folder.is_symlink() and os.path.samefile(plan.folder, os.curdir))
    if here:
        raise CannotWrite(f"{plan.folder}: an artifact needs a folder of its own; name one, such as ./{plan.stage}")


def _refuse_foreign(plan: Plan, place: Path) -> None:
    """Raise CannotWrite unless the place is empty or holds an artifact of the same stage and nothing more."""
    if not os.path.lexists(place):
        return
    if place.is_symlink() and _version(place) is None:
        raise CannotWrite(f"{plan.folder}: is a link that tfm did not make; remove it or choose another place")
    if place.exists() and not place.is_dir():
        raise CannotWrite(f"{plan.folder}: is a file; remove it or choose another place")
    if not place.is_symlink() and not any(place.iterdir()):
        return
    try:
        manifest = read_manifest(plan.folder, place)
        foreign = tree(place)[0].keys() - manifest.files.keys() - {NAME}
    except DataError as error:
        if place.is_symlink():
            return  # ours, damaged: making it anew is the remedy
        raise CannotWrite(f"{plan.folder}: holds files that are not ours to replace; choose another place") from error
    if manifest.stage != plan.stage:
        raise CannotWrite(f"{plan.folder}: holds what {manifest.stage!r} made; choose another place")
    if foreign and not place.is_symlink():
        raise CannotWrite(f"{plan.folder}: holds {min(foreign)!r}, which is not ours to replace; move it away")


def _seal(plan: Plan, draft: Draft, command: Sequence[str], began: float) -> None:
    """Bring the draft to disk, its manifest last."""
    found, folders = tree(draft.folder)
    files = {name: FileEntry(status.st_size, sha256_and_sync(draft.folder / name)) for name, status in found.items()}
    config = plain(plan.config)
    document = {
        "tfm_format": FORMAT,
        "stage": plan.stage,
        "fingerprint": fingerprint(plan.stage, config, plan.inputs, plan.seed, files),
        "command": list(command),
        "config": config,
        "inputs": {label: each.as_json() for label, each in plan.inputs.items()},
        "files": {name: {"size": entry.size, "sha256": entry.sha256} for name, entry in files.items()},
        "seed": plan.seed,
        "figures": plain(draft.figures),
        "versions": environment.versions(),
        "git_commit": environment.git_commit(),
        "hardware": environment.hardware(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "duration_seconds": round(time.monotonic() - began, 3),
    }
    with open(draft.folder / NAME, "xb") as file:
        file.write(spell(document))
        file.flush()
        os.fsync(file.fileno())
    for folder in [*folders, draft.folder.parent]:
        sync(folder)


def _swap(place: Path, version: Path) -> None:
    """Let the name `place` give `version`, in one step.

    Only where a folder itself stands there (a copy somebody made) it takes two: it is moved aside first.
    """
    link, aside = _new_name(place), None
    os.symlink(version.name, link)
    try:
        if place.is_dir() and not place.is_symlink():
            aside = _new_name(place)
            os.rename(place, aside)
        os.replace(link, place)
    except BaseException as error:
        with suppress(OSError):  # what is left of it the next publisher removes
            os.unlink(link)
        if aside is not None and not os.path.lexists(place):
            _move_back(aside, place, error)
        raise
    sync(place.parent)


def _move_back(aside: Path, place: Path, error: BaseException) -> None:
    """Undo the first of two steps; where that fails too, say where the artifact is, lest it be taken for litter."""
    try:
        os.rename(aside, place)
    except OSError as failed:
        code = failed.errno or errno.EIO
        raise OSError(code, f"{failed.strerror}; what was there is now {aside}: move it back", str(place)) from error


def _new_name(place: Path) -> Path:
    """A name for a version of an artifact, hidden beside it."""
    return place.parent / f".{place.name}.{secrets.token_hex(8)}"


def _version(place: Path) -> str | None:
    """The name of the hidden folder that the link `place` gives; None where it is no link of ours."""
    try:
        target = os.readlink(place)
    except OSError:
        return None
    return target if _is_version(place, target) else None


def _is_version(place: Path, name: str) -> bool:
    return re.fullmatch(rf"\.{re.escape(place.name)}\.[0-9a-f]{{16}}", name) is not None


def _litter(place: Path) -> list[Path]:
    """Every version but the one in place: the one before, and drafts of processes that were killed."""
    current = _version(place)
    return [place.parent / name for name in os.listdir(place.parent) if name != current and _is_version(place, name)]


def _clean(place: Path) -> None:
    for path in _litter(place):
        if path.is_symlink():
            path.unlink(missing_ok=True)
        else:
            remove(path)


def inspect(folder: Path) -> dict[str, Any]:
    """All that is known of an artifact, after verifying it; `inputs` leads back to the raw text."""
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
        **manifest.made,
        "inputs": {label: each.as_json() for label, each in manifest.inputs.items()},
    }
