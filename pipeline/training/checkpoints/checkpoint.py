"""Checkpoints: folders `step-0000500` of safetensors and one state.json that lists their files.

A checkpoint is written under a temporary name, synced and then renamed, so that it is complete or missing. state.json
has the size and sha256 of every file, and of itself.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from tfm.data.errors import DataError
from tfm.data.json_documents import read_json
from tfm.data.safe_files import open_regular_file
from tfm.pipeline.artifacts.files import add_path_to_errors, sync_folder
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks, make_folder_below, open_file_below, remove_path_below
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.fully_sharded import shard_of_rank
from tfm.pipeline.runtime.progress import Reporter

FORMAT_VERSION = 1
_CHECKPOINT_NAME_PATTERN = re.compile(r"step-(\d{7,})")
_LEFTOVER_NAME_PATTERN = re.compile(r"\.(draft|dropped)-\d{7,}")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was verified: its state is a JSON object, its tensors are read when asked for."""

    folder: Path
    step: int
    state: dict[str, Any]
    files: dict[str, dict[str, Any]]

    def has_tensors(self, name: str) -> bool:
        """Return whether there are tensors of this name."""
        return bool(self._part_files(name))

    def tensors(self, name: str, rank: int = 0, size: int = 1) -> dict[str, Tensor]:
        """Return the tensors of `<name>.safetensors`, or of the files that each process of a sharded training wrote.

        Args:
            name: what they are of.
            rank: the process whose parts are wanted, of a training of `size` processes; by default all of them.
            size: number of processes.

        Raises:
            DataError: a file is damaged, or the parts do not belong together.
        """
        parts = self._part_files(name) or [f"{name}.safetensors"]
        if len(parts) == size > 1:
            return self._load_tensors(parts[rank])
        loaded = [self._load_tensors(part) for part in parts]
        if any(each.keys() != loaded[0].keys() for each in loaded):
            raise DataError(f"checkpoint is damaged: the parts of {name} have different tensors", file=self.folder)
        try:
            found = {key: join_shards([each[key] for each in loaded]) for key in loaded[0]}
        except (RuntimeError, ValueError) as error:
            problem = f"checkpoint is damaged: the parts of {name} do not fit: {str(error).splitlines()[0]:.100}"
            raise DataError(problem, file=self.folder) from error
        return {key: shard_of_rank(tensor, rank, size) for key, tensor in found.items()}

    def _part_files(self, name: str) -> list[str]:
        """The files with tensors of this name, in the order of the processes. Raises DataError where one is missing."""
        if f"{name}.safetensors" in self.files:
            return [f"{name}.safetensors"]
        found = sorted(file for file in self.files if re.fullmatch(rf"{name}-\d{{5}}-of-\d{{5}}\.safetensors", file))
        if found != [part_file_name(name, rank, len(found)) for rank in range(len(found))]:
            raise DataError(f"checkpoint is damaged: the parts of {name} are not complete", file=self.folder)
        return found

    def _load_tensors(self, name: str) -> dict[str, Tensor]:
        file = self.folder / name
        try:
            return safetensors.torch.load(_read_verified(file, self.files))
        except SafetensorError as error:
            raise DataError(f"not safetensors: {error}", file=file) from error


class Checkpoints:
    """The checkpoints in a folder, RUN/training/checkpoints: RUN may be a link, nothing below it is followed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._run = folder, folder.parent.parent

    def steps(self) -> list[int]:
        """Return the steps that have a folder here, whole or damaged, ascending."""
        if not self.folder.is_dir():
            return []
        return sorted(
            int(match[1])
            for entry in self.folder.iterdir()
            if (match := _CHECKPOINT_NAME_PATTERN.fullmatch(entry.name))
        )

    def checkpoint_folder(self, step: int) -> Path:
        """Return the folder of the checkpoint of a step."""
        return self.folder / f"step-{step:07d}"

    def write(self, step: int, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> None:
        """Save a checkpoint, in place of one of the same step.

        Args:
            step: the number of updates done.
            tensors: of each file `<name>.safetensors`, its tensors by name.
            state: the JSON document beside them.
        """
        self._make_draft_folder(step)
        try:
            files = self._write_tensors(step, {f"{name}.safetensors": group for name, group in tensors.items()})
            self._publish_draft(step, files, state)
        except BaseException:
            self._try_to_remove(self._draft_folder(step))
            raise

    def write_parts(
        self, step: int, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any], world: World
    ) -> None:
        """Save a checkpoint of which every process has a part; all call it together.

        Args:
            step: the number of updates done.
            tensors: of each group of files `<name>-NNNNN-of-NNNNN.safetensors`, the part of this process.
            state: the JSON document beside them.
            world: the processes.
        """
        world.run_on_rank_zero(lambda: self._make_draft_folder(step))
        failed, files = None, dict[str, Any]()
        try:
            groups = {part_file_name(name, world.rank, world.size): group for name, group in tensors.items()}
            files = self._write_tensors(step, groups)
        except OSError as error:
            failed = error
        written = world.all_gather_object({"files": files, "failed": None if failed is None else str(failed)})
        if failed is not None:
            raise failed
        problem = next((each["failed"] for each in written if each["failed"] is not None), None)

        def publish_or_remove_draft() -> None:
            try:
                if problem is not None:
                    raise OSError(problem)
                self._publish_draft(step, {name: each for one in written for name, each in one["files"].items()}, state)
            except BaseException:
                self._try_to_remove(self._draft_folder(step))
                raise

        world.run_on_rank_zero(publish_or_remove_draft)

    def _draft_folder(self, step: int) -> Path:
        return self.folder / f".draft-{step:07d}"

    def _make_draft_folder(self, step: int) -> None:
        """Make the folder that a checkpoint is written to."""
        make_folder_below(self._run, self.folder)
        self._try_to_remove(self._draft_folder(step))
        self._draft_folder(step).mkdir()

    def _write_tensors(self, step: int, groups: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Any]:
        """Write files of tensors; the fingerprint of each."""
        files = {}
        for name, group in groups.items():
            contents = safetensors.torch.save(dict(group))
            files[name] = _file_fingerprint(contents)
            self._write_file(self._draft_folder(step) / name, contents)
        return files

    def _publish_draft(self, step: int, files: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write the document of a checkpoint, and give it its name."""
        draft = self._draft_folder(step)
        document = {"format": FORMAT_VERSION, "state": dict(state), "files": dict(files)}
        document["sha256"] = _document_sha256(document)
        self._write_file(draft / "state.json", json.dumps(document, indent=1).encode())
        sync_folder(draft)
        self._delete_checkpoint(step)
        draft.rename(self.checkpoint_folder(step))
        sync_folder(self.folder)

    def read(self, step: int) -> Checkpoint:
        """The checkpoint of a step, every file of it verified. Raises DataError, whose message names the problem."""
        folder = self.checkpoint_folder(step)
        file = folder / "state.json"
        try:
            document = read_json(file)
            sealed, state, files = document.pop("sha256"), document["state"], document["files"]
            version = document["format"]
            if not (isinstance(state, dict) and isinstance(files, dict)):
                raise TypeError("wrong structure")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"checkpoint is damaged: {type(error).__name__}: {error}", file=file) from error
        if sealed != _document_sha256(document):
            raise DataError("checkpoint is damaged: its own sha256 does not fit", file=file)
        if version != FORMAT_VERSION:
            raise DataError(f"checkpoint has format {version}; this tfm reads format {FORMAT_VERSION}", file=file)
        found = {entry.name for entry in folder.iterdir()} - {"state.json"}
        if odd := sorted(found ^ files.keys()):
            raise DataError(f"checkpoint is damaged: {odd[0]} is missing or does not belong", file=folder)
        for name in files:
            _read_verified(folder / name, files)
        return Checkpoint(folder, step, state, files)

    def newest_verified(self, reporter: Reporter) -> Checkpoint | None:
        """The newest checkpoint that verifies, saying which newer ones do not; none where there are no checkpoints.

        Raises DataError where there are some and none verifies: starting over would throw work away unasked.
        """
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self.read(step)
            except DataError as error:
                reporter.warn(str(error))
        if steps:
            raise DataError(
                f"no checkpoint of {len(steps)} can be read; move the folder away to start over",
                file=self.folder,
            )
        return None

    def retain_only(self, steps: Collection[int]) -> None:
        """Remove every checkpoint but those of these steps."""
        for step in self.steps():
            if step not in steps:
                self._delete_checkpoint(step)

    def remove_leftovers(self) -> None:
        """Remove the folders that a killed process left half-written or half-removed."""
        check_no_symlinks(self._run, self.folder)
        if self.folder.is_dir():
            for name in filter(_LEFTOVER_NAME_PATTERN.fullmatch, os.listdir(self.folder)):
                self._try_to_remove(self.folder / name)

    def _delete_checkpoint(self, step: int) -> None:
        """Remove a checkpoint; its name is gone first, so that it is never half there."""
        check_no_symlinks(self._run, self.checkpoint_folder(step))
        if self.checkpoint_folder(step).exists():
            dropped = self.folder / f".dropped-{step:07d}"
            self._try_to_remove(dropped)
            self.checkpoint_folder(step).rename(dropped)
            remove_path_below(self._run, dropped)

    def _try_to_remove(self, leftover: Path) -> None:
        """Remove a folder that does no harm if it stays."""
        with suppress(OSError):
            remove_path_below(self._run, leftover)

    def _write_file(self, file: Path, contents: bytes) -> None:
        with add_path_to_errors(file), open_file_below(self._run, file, "xb") as stream:
            stream.write(contents)
            stream.flush()
            os.fsync(stream.fileno())


def part_file_name(name: str, rank: int, size: int) -> str:
    """Return the name of the file with a process's part of tensors.

    Args:
        name: what they are of.
        rank: number of the process.
        size: number of processes.
    """
    return f"{name}-{rank + 1:05d}-of-{size:05d}.safetensors"


def join_shards(parts: Sequence[Tensor]) -> Tensor:
    """Return the whole tensor of which these are the rows that each process has; numbers are the same in all.

    Raises:
        ValueError: the parts are of different types, or numbers differ.
        RuntimeError: the shapes of the parts do not fit.
    """
    if len({each.dtype for each in parts}) > 1:
        raise ValueError(f"one is {parts[0].dtype}, another is not")
    if not parts[0].ndim and not all(torch.equal(parts[0], each) for each in parts):
        raise ValueError("a number differs")
    return parts[0] if len(parts) == 1 or not parts[0].ndim else torch.cat(list(parts))


def _file_fingerprint(contents: bytes) -> dict[str, Any]:
    return {"size": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}


def _document_sha256(document: Mapping[str, Any]) -> str:
    """Return the sha256 of a document's canonical JSON."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _read_verified(file: Path, files: Mapping[str, Any]) -> bytes:
    """The bytes of a file, which are those that were written."""
    wanted = files.get(file.name)
    try:
        status = file.lstat()
        ours = stat.S_ISREG(status.st_mode) and isinstance(wanted, dict) and status.st_size == wanted.get("size")
        contents = b""
        if ours:
            with open_regular_file(file, follow_symlinks=False) as stream:
                contents = stream.read()
    except OSError as error:
        raise DataError(f"checkpoint is damaged: {error.strerror}", file=file) from error
    if _file_fingerprint(contents) != wanted:
        raise DataError(f"checkpoint is damaged: size or sha256 is not that of {wanted!r:.120}", file=file)
    return contents


def recovery_hint(checkpoints: Checkpoints) -> str:
    """Advice for a training that cannot continue."""
    saved = max(checkpoints.steps(), default=None)
    remedy = "To start over, lower training.schedule.peak or raise training.schedule.warmup_steps"
    if saved is None:
        return f"there is no checkpoint yet.\n{remedy}"
    return (
        f"the checkpoint of step {saved} is intact.\n{remedy}; or publish what there is (training.max_steps = "
        f"{saved}) and start another training from it (--init-from)"
    )
