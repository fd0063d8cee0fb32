"""Several models as one: the ensemble's probability of a piece is the mean of its members'.

    p(v) = 1/M sum over m of p_m(v)

The members may differ in size and architecture, as long as they read and write the same pieces.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfm.data.errors import DataError
from tfm.data.image_config import IMAGES_FILE
from tfm.model.layers.log_probs import LogProbFn, RowSelection
from tfm.model.layout import Layout
from tfm.pipeline.artifacts.manifest import Manifest, open_artifact
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.runtime.progress import NullReporter, Reporter
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.tokenizer import SHARED, SOURCE, TARGET


@dataclass(frozen=True)
class EnsembleState:
    """The states of the models, one each, for the same hypotheses."""

    states: tuple[Any, ...]

    def select(self, rows: Tensor) -> "EnsembleState":
        """The state whose row i is row rows[i] of this one."""
        return EnsembleState(tuple(state.select(rows) for state in self.states))

    def replace(self, rows: Tensor, other: "EnsembleState") -> "EnsembleState":
        """The state in which these rows have given their places to those of `other`."""
        pairs = zip(self.states, other.states, strict=True)
        return EnsembleState(tuple(state.replace(rows, new) for state, new in pairs))


class Ensemble(nn.Module):
    """A `Stepper` of M steppers, and so is its state of their states."""

    def __init__(self, members: Sequence[Any]) -> None:
        super().__init__()
        self.members = tuple(members)
        self.networks = nn.ModuleList(each for each in members if isinstance(each, nn.Module))
        self.max_length = min(each.max_length for each in members)

    def empty_state(self, batch: int, device: torch.device | str = "cpu") -> EnsembleState:
        """Return the state of some texts of which nothing has been read."""
        return EnsembleState(tuple(each.empty_state(batch, device) for each in self.members))

    def source_layout(self, source: Tensor, lengths: Tensor) -> Layout:
        """Return the layout of the first model; models of images may differ in the number of tokens of an image."""
        layout: Layout = self.members[0].source_layout(source, lengths)
        return layout

    def start(self, source: Tensor, layout: Layout) -> EnsembleState:
        """Read source ids (N,) or images; a state of one row a sentence."""
        return EnsembleState(
            tuple(each.start(source, each.source_layout(source, layout.lengths)) for each in self.members)
        )

    def step(self, tokens: Tensor, state: EnsembleState) -> tuple[LogProbFn, EnsembleState]:
        """The next token of every row (R,) -> log of the mean probabilities, when asked for, and the state after it."""
        steps = [each.step(tokens, member_state) for each, member_state in zip(self.members, state.states, strict=True)]

        def predict(row_selection: RowSelection) -> Tensor:
            return torch.stack([each(row_selection) for each, _ in steps]).logsumexp(0).sub_(math.log(len(steps)))

        return predict, EnsembleState(tuple(member_state for _, member_state in steps))


def load_ensemble(
    folders: Sequence[Path],
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
    *,
    reporter: Reporter | None = None,
) -> LoadedModel:
    """Load the model in a folder, or the ensemble of those in several, with the tokenizers that they share.

    Args:
        folders: of models.
        device: cpu, cuda, mps or auto.
        dtype: of the weights.
        reporter: shows warnings; None: nobody reads them.

    Raises:
        DataError: the models do other work, or cut text in another way.
    """
    first, *further_manifests = manifests = [open_artifact(folder, "train") for folder in folders]
    for manifest in further_manifests:
        _check_same_vocabulary(first, manifest)
    warn_of_repeated_members(
        folders, [manifest.fingerprint for manifest in manifests], NullReporter() if reporter is None else reporter
    )
    members = [load_model(folder, device, dtype) for folder in folders]
    if len(members) == 1:
        return members[0]
    for member in members:
        _check_same_task(members[0], member)
    ensemble: Any = Ensemble([member.model for member in members])
    blocks = [member.config.block for member in members if member.config.block is not None]
    config = members[0].config.model_copy(update={"block": min(blocks, default=None)})
    return replace(members[0], model=ensemble, config=config)


def warn_of_repeated_members(folders: Sequence[Path | str], fingerprints: Sequence[str], reporter: Reporter) -> None:
    """Warn of each model that an ensemble has had before; an ensemble of one model alone is that model.

    Args:
        folders: of the models.
        fingerprints: of the models.
        reporter: shows the warnings.
    """
    effect = "has the weight of several models in it" if len({*fingerprints}) > 1 else "alone gives the probabilities"
    for index, fingerprint in enumerate(fingerprints):
        first = fingerprints.index(fingerprint)
        if first < index:
            folder, earlier = folders[index], folders[first]
            repetition = "is in the ensemble more than once" if folder == earlier else f"is the same model as {earlier}"
            reporter.warn(f"{folder}: {repetition}, so that it {effect}: remove it, or name another model")


def _check_same_task(first: LoadedModel, second: LoadedModel) -> None:
    task = second.config.task
    if not TASK_SPECS[task].writes:
        raise DataError(f"was trained for {task}, but an ensemble needs models that generate text", file=second.folder)
    if task != first.config.task:
        raise DataError(
            f"no ensemble with {first.folder}: it was trained for {task}, not {first.config.task}", file=second.folder
        )
    if (second.config.block is None) != (first.config.block is None):
        problem = "one of them was trained on running text, and the other on lines"
        raise DataError(f"no ensemble with {first.folder}: {problem}", file=second.folder)


def _check_same_vocabulary(first: Manifest, second: Manifest) -> None:
    if IMAGES_FILE in first.files or IMAGES_FILE in second.files:
        first_digest, second_digest = (
            manifest.files[IMAGES_FILE].sha256 if IMAGES_FILE in manifest.files else "" for manifest in (first, second)
        )
        if first_digest != second_digest:
            raise DataError(
                f"no ensemble with {first.path}: it reads images in another way: take models of one dataset",
                file=second.path,
            )
    for side in (SOURCE, TARGET):
        first_digest, second_digest = (
            manifest.files[SHARED if SHARED in manifest.files else side].sha256 for manifest in (first, second)
        )
        if first_digest != second_digest:
            name = side.removesuffix(".json")
            problem = (
                f"no ensemble with {first.path}: its {name} tokenizer is different, so their pieces are not the same"
            )
            raise DataError(problem, file=second.path)
