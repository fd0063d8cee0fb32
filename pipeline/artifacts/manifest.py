"""The manifest of an artifact, with its inputs and contents: read, checked and written.

A manifest is canonical JSON with a checksum over itself, so that any changed byte is detected.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.artifacts.canonical_json import JSON, sha256_of_json
from tfm.pipeline.artifacts.canonical_json import MANIFEST_FILE as MANIFEST_FILE
from tfm.pipeline.artifacts.files import FileEntry, sha256_of, verify_files
from tfm.pipeline.artifacts.swap import detect_replacement
from tfm.pipeline.errors import DataError, escape_unprintable, redact_command_line

FORMAT_VERSION = 1
MAX_ENTRIES_FOR_ADVICE, MAX_EXAMPLES = 1000, 6

_T = TypeVar("_T")


@dataclass(frozen=True)
class Input:
    """Something an artifact was made from.

    Args:
        fingerprint: of its content.
        path: of a file or artifact.
        lineage: empty for a file or value; for an artifact {"stage", "fingerprint", "inputs": {label: {"fingerprint",
            "path", "lineage"}}}, so that a manifest tells its whole history by itself.
    """

    fingerprint: str
    path: str | None
    lineage: dict[str, JSON] = field(default_factory=dict)

    @classmethod
    def from_artifact(cls, folder: Path, stage: str | tuple[str, ...] | None = None) -> "Input":
        """The artifact in `folder`, verified (see open_artifact)."""
        return open_artifact(folder, stage).as_input()

    @classmethod
    def from_file(cls, path: Path) -> "Input":
        """A file, by the sha256 of its bytes."""
        return cls(sha256_of(path), str(path))

    @classmethod
    def from_value(cls, fingerprint: str, path: str | None = None) -> "Input":
        """Return an input that is neither a file nor an artifact, identified by a text that fully describes it."""
        return cls(fingerprint, path)

    def as_json(self) -> dict[str, JSON]:
        return {"fingerprint": self.fingerprint, "path": self.path, "lineage": self.lineage}


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read.

    Another version may be published there at any time: read its files within `read_artifact`.

    Args:
        path: of the artifact as it was asked for.
        folder: in which it really lies.
        stage: that made it.
        fingerprint: of the artifact.
        command: the command line that made it.
        config: of the stage.
        inputs: by label.
        files: by name.
        seed: of the stage, if it has one.
        figures: of the stage.
        provenance: versions, git commit, hardware, and when it was made and in how many seconds.
    """

    path: Path
    folder: Path
    stage: str
    fingerprint: str
    command: list[str]
    config: dict[str, Any]
    inputs: dict[str, Input]
    files: dict[str, FileEntry]
    seed: int | None
    figures: dict[str, Any]
    provenance: dict[str, Any]

    def as_input(self) -> Input:
        """Return the artifact as the input of another."""
        inputs = {label: each.as_json() for label, each in self.inputs.items()}
        lineage: dict[str, JSON] = {"stage": self.stage, "fingerprint": self.fingerprint, "inputs": inputs}
        return Input(self.fingerprint, str(self.path), lineage)


PROVENANCE_KEYS = ("versions", "git_commit", "hardware", "created", "duration_seconds")


def compute_fingerprint(
    stage: str, config: object, inputs: Mapping[str, Input], seed: int | None, files: Mapping[str, FileEntry]
) -> str:
    """Hash all that identifies an artifact, including its format, in one sha256.

    Args:
        stage: the stage that made it.
        config: its config, a JSON value.
        inputs: its inputs by label, of which the fingerprints count.
        seed: its seed, if it has one.
        files: its files by name, of which the hashes count.
    """
    parts = {
        "format": FORMAT_VERSION,
        "stage": stage,
        "config": config,
        "inputs": {label: each.fingerprint for label, each in inputs.items()},
        "seed": seed,
        "files": {name: entry.sha256 for name, entry in files.items()},
    }
    return sha256_of_json(parts)


def serialize_document(document: Mapping[str, object]) -> bytes:
    """A manifest's bytes: the document and a checksum over it."""
    checked_document = {**document, "checksum": sha256_of_json(document)}
    return (json.dumps(checked_document, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def read_manifest(path: Path, folder: Path) -> Manifest:
    """Read and check the manifest in `folder`, for which `path` stands in messages. Looks at no other file.

    Raises DataError if there is none, if it was changed, and if tfm did not write it so.
    """
    try:
        data = read_bounded_file(folder / MANIFEST_FILE, displayed_path=path / MANIFEST_FILE)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(_missing_manifest_problem(path, folder), file=path) from None
    try:
        return _parse_manifest(data, path, folder)
    except ValueError as error:
        raise DataError(f"{error}; make {path} again", file=path / MANIFEST_FILE) from None


def _missing_manifest_problem(path: Path, folder: Path) -> str:
    if not folder.exists():
        return "there is nothing here"
    if folder.is_dir():
        return f"is not an artifact of tfm (it has no manifest.json){_contents_advice(path, folder)}"
    kind = "a recipe: give the folder of its run, such as runs/NAME" if folder.suffix == ".toml" else "a file"
    return f"is not an artifact of tfm (it is {kind})"


def _contents_advice(path: Path, folder: Path) -> str:
    artifacts = [each for each in _some_names(folder) if os.path.isfile(folder / each / MANIFEST_FILE)]
    if not artifacts:
        return runs_advice(path, folder)
    examples = ", ".join(escape_unprintable(str(path / each)) for each in artifacts[:MAX_EXAMPLES])
    return f"; it holds {examples}{', ...' if len(artifacts) > MAX_EXAMPLES else ''}"


def runs_advice(path: Path, folder: Path) -> str:
    """The rest of a message about a folder that is no run: one of the runs that it holds; "" if it holds none.

    Args:
        path: of the folder in messages.
        folder: to look into.
    """
    names = _some_names(folder)
    run = next((each for each in names if os.path.isfile(folder / each / "model" / MANIFEST_FILE)), None)
    return "" if run is None else f"; it holds runs: give one, such as {escape_unprintable(str(path / run))}"


def _some_names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, MAX_ENTRIES_FOR_ADVICE))
    except OSError:
        return []


def looks_like_tfm_manifest(folder: Path) -> bool:
    """Whether the rest of a manifest that cannot be read shows that it was one of tfm."""
    try:
        data = read_bounded_file(folder / MANIFEST_FILE)
    except (OSError, DataError):
        return False
    return data.startswith(b'{\n "checksum": "') or b'\n "tfm_format": ' in data


def open_artifact(folder: Path, stage: str | tuple[str, ...] | None = None) -> Manifest:
    """Verify the artifact in `folder` (every size, every hash, nothing missing, nothing more); its manifest.

    `stage`: the stage or stages that may have made it. Raises DataError naming artifact and file.
    """
    return read_artifact(folder, lambda manifest: manifest, stage)


def read_artifact(
    folder: Path,
    read: Callable[[Manifest], _T],
    stage: str | tuple[str, ...] | None = None,
    *,
    must_match: Input | None = None,
) -> _T:
    """Verify an artifact and return the result of `read`, which sees files of one version only.

    If another version is published meanwhile, the artifact is read again.

    Args:
        folder: the folder of the artifact.
        read: reads the verified artifact.
        stage: the stage or stages that may have made it; None: any.
        must_match: the artifact as it was seen before, which must not have been replaced since.

    Raises:
        DataError: as in `open_artifact`.
    """
    while True:
        with detect_replacement(folder) as stands:
            try:
                result = read(_read_verified(folder, stage, must_match))
            except Exception:  # what is read half from one version and half from another may fail in any way
                if stands():
                    raise
            else:
                if stands():
                    return result


def _read_verified(folder: Path, stage: str | tuple[str, ...] | None, must_match: Input | None) -> Manifest:
    manifest = read_manifest(folder, Path(os.path.realpath(folder)))
    verify_files(manifest.folder, manifest.files, manifest.path, besides=MANIFEST_FILE)
    stages = (stage,) if isinstance(stage, str) else stage
    if stages is not None and manifest.stage not in stages:
        raise DataError(f"was made by {manifest.stage!r}; expected what {' or '.join(stages)} makes", file=folder)
    if must_match is not None and manifest.fingerprint != must_match.fingerprint:
        raise DataError("was replaced while this command began to read it; run the command again", file=folder)
    return manifest


def _parse_manifest(data: bytes, path: Path, folder: Path) -> Manifest:
    document = parse_json(data)
    if "tfm_format" not in document:
        raise ValueError("is not a manifest of tfm")
    if document["tfm_format"] != FORMAT_VERSION:
        raise ValueError(
            f"has format {document['tfm_format']!r:.40}, and this version of tfm reads format {FORMAT_VERSION}"
        )
    document.pop("checksum", None)
    if serialize_document(document) != data:
        raise ValueError("is damaged (its checksum does not match)")
    manifest = Manifest(
        path=path,
        folder=folder,
        stage=_get_typed(document, "stage", str),
        fingerprint=_get_typed(document, "fingerprint", str),
        command=redact_command_line(
            [_check_type(entry, str, "command") for entry in _get_typed(document, "command", list)]
        ),
        config=_get_typed(document, "config", dict),
        inputs={label: _parse_input(entry) for label, entry in _get_typed(document, "inputs", dict).items()},
        files={
            _check_file_name(name): _parse_file_entry(entry)
            for name, entry in _get_typed(document, "files", dict).items()
        },
        seed=None if document.get("seed", 0) is None else _get_typed(document, "seed", int),
        figures=_get_typed(document, "figures", dict),
        provenance={key: document.get(key) for key in PROVENANCE_KEYS},
    )
    actual_fingerprint = compute_fingerprint(
        manifest.stage, manifest.config, manifest.inputs, manifest.seed, manifest.files
    )
    if actual_fingerprint != manifest.fingerprint:
        raise ValueError("is damaged (its fingerprint does not match)")
    return manifest


def _get_typed(document: dict[str, Any], key: str, kind: type[_T]) -> _T:
    return _check_type(document.get(key), kind, key)


def _check_type(value: object, kind: type[_T], key: str) -> _T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"has no valid `{key}`")
    return value


def _check_file_name(name: str) -> str:
    parts = name.split("/")
    if name == MANIFEST_FILE or any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise ValueError(f"lists a file outside the artifact: {name!r:.80}")
    return name


def _parse_file_entry(raw: object) -> FileEntry:
    entry = _check_type(raw, dict, "files")
    size, digest = _get_typed(entry, "size", int), _get_typed(entry, "sha256", str)
    if size < 0 or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError("has no valid `files`")
    return FileEntry(size, digest)


def _parse_input(raw: object) -> Input:
    entry = _check_type(raw, dict, "inputs")
    path = entry.get("path")
    if path is not None:
        _check_type(path, str, "inputs")
    lineage = _get_typed(entry, "lineage", dict)
    if lineage:
        _get_typed(lineage, "stage", str), _get_typed(lineage, "fingerprint", str)
        for lineage_input in _get_typed(lineage, "inputs", dict).values():
            _parse_input(lineage_input)
    return Input(_get_typed(entry, "fingerprint", str), path, lineage)
