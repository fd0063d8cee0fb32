"""The checkpoints of a training in their folder: written, verified, removed.

A checkpoint is written under a temporary name, synced and then renamed, so that it is complete or missing.
"""

import json
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from tfm.data.errors import DataError
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.files import add_path_to_errors, sync_folder
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks, make_folder_below, open_file_below, remove_path_below
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.training.checkpoints.checkpoint import (
    Checkpoint,
    document_sha256,
    file_fingerprint,
    part_file_name,
    read_verified,
)

FORMAT_VERSION = 1


_CHECKPOINT_NAME_PATTERN = re.compile(r"step-(\d{7,})")


_LEFTOVER_NAME_PATTERN = re.compile(r"\.(draft|dropped)-\d{7,}")


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
        reports = world.all_gather_object({"files": files, "failed": None if failed is None else str(failed)})
        if failed is not None:
            raise failed
        problem = next((each["failed"] for each in reports if each["failed"] is not None), None)

        def publish_or_remove_draft() -> None:
            try:
                if problem is not None:
                    raise OSError(problem)
                self._publish_draft(
                    step,
                    {name: fingerprint for report in reports for name, fingerprint in report["files"].items()},
                    state,
                )
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
            files[name] = file_fingerprint(contents)
            self._write_file(self._draft_folder(step) / name, contents)
        return files

    def _publish_draft(self, step: int, files: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Write the document of a checkpoint, and give it its name."""
        draft = self._draft_folder(step)
        document = {"format": FORMAT_VERSION, "state": dict(state), "files": dict(files)}
        document["sha256"] = document_sha256(document)
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
            expected_sha256, state, files = document.pop("sha256"), document["state"], document["files"]
            version = document["format"]
            if not (isinstance(state, dict) and isinstance(files, dict)):
                raise TypeError("wrong structure")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"checkpoint is damaged: {type(error).__name__}: {error}", file=file) from error
        if expected_sha256 != document_sha256(document):
            raise DataError("checkpoint is damaged: its own sha256 does not fit", file=file)
        if version != FORMAT_VERSION:
            raise DataError(f"checkpoint has format {version}; this tfm reads format {FORMAT_VERSION}", file=file)
        names = {entry.name for entry in folder.iterdir()} - {"state.json"}
        if mismatches := sorted(names ^ files.keys()):
            raise DataError(f"checkpoint is damaged: {mismatches[0]} is missing or does not belong", file=folder)
        for name in files:
            read_verified(folder / name, files)
        return Checkpoint(folder, step, state, files)

    def newest_verified(self, reporter: Reporter) -> Checkpoint | None:
        """The newest checkpoint that verifies, saying which newer ones do not; none if there are no checkpoints.

        Raises DataError if there are some and none verifies: starting over would throw work away unasked.
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
        """Remove a checkpoint, its name first, so that no partial checkpoint is ever visible."""
        check_no_symlinks(self._run, self.checkpoint_folder(step))
        if self.checkpoint_folder(step).exists():
            dropped_folder = self.folder / f".dropped-{step:07d}"
            self._try_to_remove(dropped_folder)
            self.checkpoint_folder(step).rename(dropped_folder)
            remove_path_below(self._run, dropped_folder)

    def _try_to_remove(self, leftover: Path) -> None:
        """Remove a folder that does no harm if it stays."""
        with suppress(OSError):
            remove_path_below(self._run, leftover)

    def _write_file(self, file: Path, contents: bytes) -> None:
        with add_path_to_errors(file), open_file_below(self._run, file, "xb") as stream:
            stream.write(contents)
            stream.flush()
            os.fsync(stream.fileno())


def recovery_hint(checkpoints: Checkpoints) -> str:
    """Advice for a training that cannot continue."""
    newest_step = max(checkpoints.steps(), default=None)
    remedy = "To start over, lower training.schedule.peak or raise training.schedule.warmup_steps"
    if newest_step is None:
        return f"there is no checkpoint yet.\n{remedy}"
    return (
        f"the checkpoint of step {newest_step} is intact.\n{remedy}; or publish what there is (training.max_steps = "
        f"{newest_step}) and start another training from it (--init-from)"
    )
