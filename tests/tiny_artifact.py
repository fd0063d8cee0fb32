"""A plan and an artifact small enough to break in every way, and the hand of one who means harm."""

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts import manifest
from tfm.pipeline.artifacts.artifact import Input, Plan, publish
from tfm.pipeline.artifacts.files import FileEntry, walk_tree


def plan_of(
    folder: Path, stage: str = "first", seed: int = 1, inputs: dict[str, Input] | None = None, **config: Any
) -> Plan:
    return Plan(stage, folder, config, inputs or {}, seed)


def make(plan: Plan, text: str = "old") -> None:
    with publish(plan, command=["tfm", "make", "\udcff"]) as draft:
        (draft.folder / "sub").mkdir()
        (draft.folder / "a.txt").write_text(text)
        (draft.folder / "sub" / "b.bin").write_bytes(b"\0" * 1000)
        draft.figures["loss"] = float("nan")


def as_link(folder: Path) -> Path:
    """Make of an artifact what earlier versions of tfm made: a link to a hidden folder beside it, which is returned."""
    version = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}")
    folder.rename(version)
    folder.symlink_to(version.name)
    return version


def around(folder: Path) -> set[str]:
    """Names beside an artifact that are neither it nor its lock."""
    return set(os.listdir(folder.parent)) - {folder.name, f".{folder.name}.lock"}


def rewritten(folder: Path, **changes: Any) -> None:
    """Rewrite the manifest with all its checksums in order: what a hostile writer would do."""
    file = folder / "manifest.json"
    document = json.loads(file.read_bytes()) | changes
    document.pop("checksum")
    try:
        inputs = {label: Input.from_value(each["fingerprint"]) for label, each in document["inputs"].items()}
        entries = {name: FileEntry(**each) for name, each in document["files"].items()}
        if "fingerprint" not in changes:
            document["fingerprint"] = manifest.compute_fingerprint(
                document["stage"], document["config"], inputs, document["seed"], entries
            )
    except (TypeError, AttributeError, KeyError):
        pass
    file.write_bytes(manifest.serialize_document(document))


def signed(folder: Path, **changes: Any) -> Path:
    """Give an artifact whose files were changed the manifest it would have, had it been made so."""
    files = {
        name: {"size": status.st_size, "sha256": sha256(folder / name)}
        for name, status in walk_tree(folder.resolve())[0].items()
        if name != manifest.MANIFEST_FILE
    }
    rewritten(folder, **{"files": files, **changes})
    return folder


def sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
