"""The parts of which a training is assembled: settings and data, starting point, and setup."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.data.batching.epochs import EpochBatches
from tfm.data.batching.resegmentation import Resegmenter
from tfm.data.dataset.split import Dataset
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.task import Task
from tfm.pipeline.training.checkpoints.train_state import TrainState
from tfm.pipeline.training.early_stopping import ValidationCallback
from tfm.pipeline.training_config import TrainingConfig


def training_folder(plan: Plan) -> Path:
    """The folder of the work in progress on a model."""
    return plan.folder.parent / "training"


@dataclass(frozen=True)
class TrainingSession:
    """The settings and data of one training, and the process it runs in."""

    plan: Plan
    config: TrainingConfig
    model: ModelConfig
    decoding: DecodingConfig
    evaluation: EvaluationConfig
    data: Dataset
    reporter: Reporter
    world: World
    on_validation: ValidationCallback = lambda validation, is_last: None

    @property
    def folder(self) -> Path:
        """The folder of the work in progress."""
        return training_folder(self.plan)

    @property
    def run_folder(self) -> Path:
        """The folder of the run, which may be a link; nothing below it is followed."""
        return self.plan.folder.parent

    @property
    def seed(self) -> int:
        """The recipe's, which a training always has."""
        assert self.plan.seed is not None
        return self.plan.seed


@dataclass(frozen=True)
class StartingPoint:
    """The state that a training has when its first or next update is due, and the plan that it had up to here."""

    state: TrainState
    previous_plan: Mapping[str, Any]
    is_new: bool


@dataclass(frozen=True)
class TrainingSetup:
    """The setup of a training from a start on: the task, its batches epoch by epoch, and the number of its last
    update.
    """

    task: Task
    batches: EpochBatches
    total_steps: int
    resegmentation: Resegmenter | None
