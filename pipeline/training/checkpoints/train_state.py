"""All state that a resumed training needs, in one object that is saved together.

Batches, dropout and the learning rate are pure functions of the numbers kept here, so no random generator is saved.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn

from tfm.data.errors import DataError, validation_problem
from tfm.pipeline.model_io.model_weights import check_shapes_match, load_weights
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.fully_sharded import full_tensor
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint
from tfm.pipeline.training.checkpoints.weight_averaging import Ema, local_weights
from tfm.pipeline.training.early_stopping import Validation
from tfm.pipeline.training.optimizers import restore_state, state_tensors

NUM_PROCESSES_KEY = "processes"
"""The name of a change of the number of processes."""


class ExecutionSettings(BaseModel):
    """The decisions of the first start that depend on the machine, and that a resumed run must not make again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    precision: Literal["fp32", "bf16"]
    threads: int = Field(ge=1, le=1024)
    parallel: Literal["threads", "processes"] = Field("threads", description="what as many as `threads` are")
    world_size: int = Field(ge=1, le=2**20)
    batch_tokens: int = Field(ge=1, le=2**40)
    torch: str = str(torch.__version__)

    @property
    def num_gradient_workers(self) -> int:
        """The number of processes that help this one with each update."""
        return self.threads - 1 if self.parallel == "processes" else 0

    def describe(self) -> str:
        """The settings as a person reads them."""
        processes = f", {self.world_size} processes" if self.world_size > 1 else ""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} {self.parallel}"
        return f"{self.precision} on {self.device}, {threads}{processes}"


class RunningSums(BaseModel):
    """Sums since the last line of metrics.jsonl, over target tokens."""

    model_config = ConfigDict(extra="forbid")

    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, loss: float, nll: float, tokens: int) -> None:
        """Add an update's sums.

        Args:
            loss: the loss, summed over its tokens, in nats.
            nll: -log p, summed over its tokens, in nats.
            tokens: the number of its target tokens.
        """
        self.loss, self.nll, self.tokens = self.loss + loss, self.nll + nll, self.tokens + tokens

    def means(self) -> dict[str, float]:
        """The figures of the line; nan where no update was made."""
        tokens = self.tokens or math.nan
        speed = self.tokens / self.seconds if self.seconds else 0.0
        return {"loss": self.loss / tokens, "nll": self.nll / tokens, "tokens_per_second": speed}


class SettingChange(BaseModel):
    """A setting that changed after so many updates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int = Field(ge=0, le=2**53)
    key: str
    old: Any
    new: Any

    def describe(self) -> str:
        """Return the change as text for a person."""
        return f"after update {self.step:,}: {self.key} {self.old} -> {self.new}"


class Progress(BaseModel):
    """The progress of a training: everything but the tensors."""

    model_config = ConfigDict(extra="forbid")

    settings: ExecutionSettings
    plan: dict[str, Any] = Field(description="what is trained, on what: a resumed run must be of the same plan")
    step: int = Field(0, ge=0, le=2**53, description="updates done")
    epoch: int = Field(0, ge=0, le=2**53, description="whole passes over the data done")
    batch: int = Field(0, ge=0, le=2**53, description="batches of the present pass done")
    seconds: float = 0.0
    line: RunningSums = Field(default_factory=RunningSums)
    not_finite: int = Field(0, ge=0, description="updates in a row that were left out, up to now")
    validations: list[Validation] = Field(default_factory=list)
    saved: list[int] = Field(default_factory=list, description="steps of the kept last regular checkpoints, ascending")
    total_steps: int = Field(0, ge=0, le=2**53, description="updates that the schedule counts towards; 0: not known")
    changes: list[SettingChange] = Field(default_factory=list, description="made after the training began")

    @property
    def num_processes(self) -> int:
        """The number of processes of the last update; each update has the batches of as many as at the beginning."""
        count: int = next(
            (each.new for each in reversed(self.changes) if each.key == NUM_PROCESSES_KEY), self.settings.world_size
        )
        return count

    @property
    def last_validated_step(self) -> int:
        """The step of the last validation."""
        return self.validations[-1].step if self.validations else 0

    @property
    def current_epoch(self) -> int:
        """The epoch, from 1, that the last update belongs to."""
        return self.epoch if self.batch == 0 and self.step else self.epoch + 1


@dataclass
class TrainState:
    """The state of a training: weights, optimizer, moving average, progress.

    world: the processes over which the weights are sharded. build: () -> the whole network, if they are.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    ema: Ema | None
    progress: Progress
    world: World = field(default_factory=World)
    build: Callable[[], nn.Module] | None = None

    @property
    def is_sharded(self) -> bool:
        """Whether this process has a part of the weights alone."""
        return self.build is not None

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return the tensors of a checkpoint, file by file."""
        files = {"model": local_weights(self.model), "optimizer": state_tensors(self.optimizer, self.model)}
        if self.ema is not None:
            files["ema"] = self.ema.weights
        return files

    @contextmanager
    def model_to_validate(self) -> Iterator[nn.Module]:
        """Yield the whole network with the weights to validate and publish: the moving average if it is enabled.

        With sharded weights it is another network, for as long as the body runs; all processes call this together.
        """
        with nullcontext() if self.ema is None else self.ema.use_ema_weights():
            if self.build is None:
                yield self.model
                return
            model = self.build()
            for name, parameter in self.model.named_parameters():
                model.get_parameter(name).data.copy_(full_tensor(parameter.detach()))
        yield model

    def model_with_weights(self, weights: dict[str, Tensor], path: Path) -> nn.Module:
        """Return the whole network with other weights: the trained network itself, or a new one if that is sharded.

        Args:
            weights: by name.
            path: of the weights, for messages.
        """
        model = self.model if self.build is None else self.build()
        load_weights(model, weights, path)
        return model

    def restore(self, checkpoint: Checkpoint) -> None:
        """Become the state that was saved; weights are copied into the tensors that are there."""
        shard = (self.world.rank, self.world.size) if self.is_sharded else (0, 1)
        weights, local = checkpoint.tensors("model", *shard), local_weights(self.model)
        expected_shapes, saved_shapes = (
            {name: tuple(each.shape) for name, each in group.items()} for group in (local, weights)
        )
        check_shapes_match(expected_shapes, saved_shapes, checkpoint.folder)
        _check_tensors(local, weights, checkpoint.folder)
        with torch.no_grad():
            for name, tensor in local.items():
                tensor.copy_(weights[name])
        try:
            restore_state(self.optimizer, self.model, checkpoint.tensors("optimizer", *shard))
            if self.ema is not None:
                averages = checkpoint.tensors("ema", *shard)
                _check_tensors(self.ema.weights, averages, checkpoint.folder)
                self.ema.load(averages)
        except (KeyError, RuntimeError) as error:
            raise DataError(f"checkpoint does not fit this training: {error}", file=checkpoint.folder) from error
        self.progress = read_progress(checkpoint)


def _check_tensors(expected: dict[str, Tensor], saved_tensors: dict[str, Tensor], folder: Path) -> None:
    """Raise DataError if a tensor found is of another type or shape than the own one, which a copy would change."""
    for name, tensor in expected.items():
        if (saved_tensor := saved_tensors.get(name)) is None:
            continue
        kinds = (f"{each.dtype} {tuple(each.shape)}" for each in (saved_tensor, tensor))
        if (kind := next(kinds)) != (expected_kind := next(kinds)):
            raise DataError(
                f"checkpoint does not fit this training: {name} is {kind}, not {expected_kind}", file=folder
            )


def read_progress(checkpoint: Checkpoint) -> Progress:
    """Read the progress of a checkpoint. Raises DataError if this version of tfm did not write it."""
    try:
        progress = Progress.model_validate(checkpoint.state)
        if progress.step != checkpoint.step:
            raise DataError(
                f"checkpoint is damaged: its folder and its content name different steps (content: {progress.step})",
                file=checkpoint.folder,
            )
        return progress
    except ValidationError as error:
        raise DataError(f"checkpoint is not readable: {validation_problem(error)}", file=checkpoint.folder) from error


def published_weights(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The weights of the published model: the moving average if there is one, else the model's own."""
    return checkpoint.tensors("ema" if checkpoint.has_tensors("ema") else "model")
