"""Validations, checkpoints and the end of a training: which of them is due after an update."""

from dataclasses import dataclass

from tfm.pipeline.training.checkpoints.train_state import TrainState
from tfm.pipeline.training.early_stopping import is_patience_exhausted
from tfm.pipeline.training_config import TrainingConfig


@dataclass(frozen=True)
class Timetable:
    """Timetable of a training, read from its progress."""

    config: TrainingConfig
    state: TrainState

    def has_reached_limit(self) -> bool:
        """Return whether all steps or epochs are done."""
        progress, config = self.state.progress, self.config
        return (config.max_steps is not None and progress.step >= config.max_steps) or (
            config.max_epochs is not None and progress.epoch >= config.max_epochs
        )

    def is_finished(self) -> bool:
        """Return whether all is done, or nothing becomes better any more."""
        stopping = self.config.early_stopping
        return self.has_reached_limit() or is_patience_exhausted(
            self.state.progress.validations, stopping.metric, stopping.patience
        )

    def should_validate(self) -> bool:
        """Return whether the clock says so (or this is the end), and it has not been done."""
        progress = self.state.progress
        return progress.step not in (0, progress.last_validated_step) and (
            self.is_validation_step() or self.has_reached_limit()
        )

    def is_validation_step(self) -> bool:
        """Return whether the clock has a validation after this update, wherever the training ends."""
        progress, config = self.state.progress, self.config.validation
        if config.every_steps is not None:
            return progress.step % config.every_steps == 0
        return progress.batch == 0 and progress.epoch % (config.every_epochs or 1) == 0

    def should_save(self) -> bool:
        """Return whether to save: before every validation, and as often as asked for besides."""
        return self.should_validate() or self.is_checkpoint_step()

    def is_checkpoint_step(self) -> bool:
        """Return whether the clock has a checkpoint after this update, wherever the training ends."""
        save_interval = self.config.save_every
        return self.is_validation_step() or (
            save_interval is not None and self.state.progress.step % save_interval == 0
        )
