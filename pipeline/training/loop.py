"""The training loop: update, log, save, validate, until it is done. The loop does not depend on task or model."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfm.pipeline.errors import ComputationError, StoppedError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import Bar, Reporter
from tfm.pipeline.runtime.stop_signal import StopRequest
from tfm.pipeline.tasks.task import Rows
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints, recovery_hint
from tfm.pipeline.training.checkpoints.train_state import RunningSums, TrainState
from tfm.pipeline.training.early_stopping import Validation, ValidationCallback, Validator, sort_best_first
from tfm.pipeline.training.metrics_log import MetricsLog
from tfm.pipeline.training.optimizers import can_skip_step, set_learning_rate, step_or_skip
from tfm.pipeline.training.schedules import SCHEDULES, ScheduleContext
from tfm.pipeline.training.timetable import Timetable
from tfm.pipeline.training.update import GradientComputer, PendingUpdate, UpdateSums
from tfm.pipeline.training_config import TrainingConfig

MAX_NON_FINITE_UPDATES = 5
ASYNC_DEVICES = ("cuda",)
"""Devices that compute while the program goes on: the result of an update is read while they compute the next."""
PROGRESS_INTERVAL_SECONDS = 0.5


@dataclass
class Trainer:
    """Trainer that takes a model on from its state.

    batches(epoch): the batches of an epoch, as arrays of row numbers; a pure function. total_steps: at most. width: D,
    for the schedule that scales by it. redraw: called after each validation, for the curves. on_update: called after
    each update. on_validation: called with each validation once it is written down, in the process that writes; an
    exception that it raises ends the training.
    """

    config: TrainingConfig
    state: TrainState
    gradients: GradientComputer
    batches: Callable[[int], Sequence[Rows]]
    validator: Validator
    checkpoints: Checkpoints
    log: MetricsLog
    reporter: Reporter
    total_steps: int
    width: int
    world: World = field(default_factory=World)
    stop: StopRequest = field(default_factory=StopRequest)
    redraw: Callable[[], None] = lambda: None
    on_update: Callable[[], None] = lambda: None
    on_validation: ValidationCallback = lambda validation, is_last: None

    def __post_init__(self) -> None:
        self._epoch: tuple[int, Sequence[Rows]] | None = None
        self._last_message_time = -math.inf
        self._timetable = Timetable(self.config, self.state)
        self._pending: PendingUpdate | None = None
        self._clock = 0.0
        self._all_stop = False
        reads_later = self.world.device.type in ASYNC_DEVICES and can_skip_step(self.state.optimizer)
        self._reads_later = reads_later and not self.state.is_sharded

    def run(self) -> None:
        """Train until the end. Raises StoppedError, with all saved, when asked to stop; ComputationError if the loss
        explodes.
        """
        self.state.model.train()
        self.drop_previous_final_checkpoint()
        with self.reporter.bar("training", self.total_steps, "steps", done=self.state.progress.step) as bar:
            while True:
                if self._timetable.should_validate():
                    self.register_checkpoint()
                    self.validate()
                if self._timetable.is_finished():
                    return
                self.update(bar)
                self.on_update()
                if self._timetable.should_save():
                    self.save()
                if self.should_stop():
                    self.save_and_stop()

    def should_stop(self) -> bool:
        """Return whether to stop now: all processes at once, or the only one at its own wish."""
        return self._all_stop or (self.world.size == 1 and bool(self.stop))

    def update(self, bar: Bar) -> None:
        """Update the weights once from the next batches.

        A device that computes while the program goes on decides itself whether the gradient can be used, and the
        result of the update before is read here, while the device is busy with this one.
        """
        progress, group = self.state.progress, self.next_batches()
        rate = self.learning_rate(progress.step + 1)
        if self._pending is None:
            self._clock = time.perf_counter()
        set_learning_rate(self.state.optimizer, rate)
        try:
            gradient = self.gradients.start_gradient(group, progress.step + 1, stop=bool(self.stop))
        finally:
            self.finish_pending_update()
        if self._reads_later:
            step_or_skip(self.state.optimizer, gradient.should_skip())
        progress.step += 1
        self._pending = PendingUpdate(gradient, group, rate, progress.step, progress.epoch + 1, progress.batch + 1, bar)
        self.advance_in_epoch(len(group))
        if not self._reads_later:
            self.finish_pending_update()

    def finish_pending_update(self) -> None:
        """Read the result of the last update, where that is not done, and act on it."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        update = pending.gradient.wait_for_update_sums()
        if update.is_finite:
            self.apply_update(pending)
        else:
            self.skip_update(pending)
        self._all_stop |= update.stop
        seconds, self._clock = time.perf_counter() - self._clock, time.perf_counter()
        self.log_update(update, pending, seconds)
        pending.bar.advance(1, self.progress_message(update, pending, seconds))

    def next_batches(self) -> Sequence[Rows]:
        """The batches of the next update, of all processes; fewer at the end of an epoch."""
        progress = self.state.progress
        size = self.config.accumulation_steps_at(progress.step + 1) * progress.settings.world_size
        return self.epoch_batches()[progress.batch : progress.batch + size]

    def epoch_batches(self) -> Sequence[Rows]:
        """The batches of the present epoch, made once."""
        epoch = self.state.progress.epoch
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = epoch, self.batches(epoch)
        return self._epoch[1]

    def advance_in_epoch(self, num_batches: int) -> None:
        """Move on in the epoch, or to the next."""
        progress, last = self.state.progress, len(self.epoch_batches())
        progress.batch += num_batches
        if progress.batch >= last:
            progress.epoch, progress.batch = progress.epoch + 1, 0

    def learning_rate(self, step: int) -> float:
        """The rate of update number `step`."""
        schedule = self.config.schedule
        context = ScheduleContext(self.total_steps, self.width, [each.loss for each in self.state.progress.validations])
        return SCHEDULES[schedule.name](step, schedule, context)

    def apply_update(self, pending: PendingUpdate) -> None:
        """Change the weights by the gradient, where the device has not done so, and their average."""
        self.state.progress.not_finite = 0
        if not self._reads_later:
            self.state.optimizer.step()
        if self.state.ema is not None:
            self.state.ema.update(pending.step)

    def skip_update(self, pending: PendingUpdate) -> None:
        """Pass over an update whose loss or gradient is not finite; raise ComputationError after several in a row, and
        at once where the weights are changed already.
        """
        progress = self.state.progress
        if not self.gradients.can_skip:
            raise ComputationError(f"loss is not finite at {pending.describe()}; {recovery_hint(self.checkpoints)}")
        progress.not_finite += 1
        if progress.not_finite >= MAX_NON_FINITE_UPDATES:
            problem = (
                f"loss or gradient was not finite {progress.not_finite} times in a row, last at {pending.describe()}"
            )
            raise ComputationError(f"{problem}; {recovery_hint(self.checkpoints)}")
        self.reporter.warn(f"loss or gradient is not finite at {pending.describe()}: update skipped")

    def log_update(self, update: UpdateSums, pending: PendingUpdate, seconds: float) -> None:
        """Add an update to the sums, and write a line when one is due.

        Args:
            update: its result.
            pending: the update as it was begun.
            seconds: its duration.
        """
        progress, line = self.state.progress, self.state.progress.line
        progress.seconds += seconds
        line.seconds += seconds
        if update.is_finite:
            line.add(update.loss, update.nll, update.tokens)
        if pending.step % self.config.log_every == 0:
            entry = {"event": "train", "step": pending.step, "epoch": pending.epoch}
            rest = {"learning_rate": pending.rate, "gradient_norm": update.norm, "seconds": progress.seconds}
            self.log_line({**entry, **line.means(), **rest})
            progress.line = RunningSums()

    def progress_message(self, update: UpdateSums, pending: PendingUpdate, seconds: float) -> str:
        """Return the text beside the progress bar at most twice a second, and an empty text otherwise.

        Args:
            update: the result of the last update.
            pending: the update as it was begun.
            seconds: its duration.
        """
        if (now := time.monotonic()) - self._last_message_time < PROGRESS_INTERVAL_SECONDS:
            return ""
        self._last_message_time = now
        loss, speed = update.loss / update.tokens, update.tokens / seconds
        description = f"epoch {pending.epoch}, loss {loss:.3f}, learning rate {pending.rate:.2e}"
        return f"{description}, {speed:,.0f} target tokens/s"

    def log_line(self, line: dict[str, Any]) -> None:
        """A line of metrics.jsonl, by the one process that writes."""
        if self.world.is_main_process:
            self.log.append(line)

    def save(self) -> None:
        """A checkpoint that counts among the last ones."""
        self.register_checkpoint()
        self.write_checkpoint()

    def register_checkpoint(self) -> None:
        """Count the checkpoint of this update among the last ones, also if training stops here for good; a final
        checkpoint alone replaces no other.
        """
        progress, max_saved = self.state.progress, self.config.keep.last + (not self._timetable.is_checkpoint_step())
        if progress.step not in progress.saved:
            progress.saved = [*progress.saved, progress.step][-max_saved:]

    def drop_previous_final_checkpoint(self) -> None:
        """Drop the checkpoint of the former end of a training that goes on beyond it from the last ones: the model is
        to be as if this end had been set from the beginning.
        """
        progress = self.state.progress
        if progress.saved[-1:] == [progress.step] and not (
            self._timetable.is_checkpoint_step() or self._timetable.has_reached_limit()
        ):
            progress.saved.pop()

    def write_checkpoint(self) -> None:
        """The state as it is; checkpoints that nothing needs any more go."""
        self.finish_pending_update()
        progress = self.state.progress
        if self.world.is_main_process:
            self.log.sync()
        if self.state.is_sharded:
            self.checkpoints.write_parts(progress.step, self.state.tensors(), progress.model_dump(), self.world)
        elif self.world.is_main_process:
            self.checkpoints.write(progress.step, self.state.tensors(), progress.model_dump())
        if self.world.is_main_process:
            self.prune_checkpoints()

    def prune_checkpoints(self) -> None:
        """Keep the last and best checkpoints, and the newest, from which a run is resumed.

        A validation at the end alone displaces none of the best checkpoints, which a later end may need.
        """
        progress, metric = self.state.progress, self.config.early_stopping.metric
        on_clock = [
            validation
            for validation in progress.validations
            if validation.step != progress.step or self._timetable.is_validation_step()
        ]
        best = [
            validation
            for validations in (progress.validations, on_clock)
            for validation in sort_best_first(validations, metric)[: self.config.keep.best]
        ]
        self.checkpoints.retain_only({*progress.saved, *(validation.step for validation in best), progress.step})

    def validate(self) -> None:
        """Compute the figures of the validation split; the checkpoint is saved already, so that validation can be
        repeated.
        """
        progress, start_time = self.state.progress, time.perf_counter()
        with self.state.model_to_validate() as model, self.gradients.helpers.use_all_threads():
            figures = self.validator.compute_metrics(model, self.world, self.check_interrupt)
        seconds = time.perf_counter() - start_time
        progress.seconds += seconds
        validation = Validation(step=progress.step, epoch=progress.current_epoch, **figures)
        progress.validations.append(validation)
        self.log_line({"event": "valid", **validation.as_log_entry(), "seconds": seconds})
        best = sort_best_first(progress.validations, self.config.early_stopping.metric)[0] is validation
        for line in validation.report_lines(is_best=best):
            self.reporter.line(line)
        if self.world.is_main_process:
            self.prune_checkpoints()
            self.redraw()
            self.on_validation(validation, self._timetable.is_finished())

    def check_interrupt(self) -> None:
        """Break off a validation; several processes must agree on it, which they do at the next update."""
        if self.stop and self.world.size == 1:
            raise self.stop_error()

    def save_and_stop(self) -> None:
        """Save, where that is not done, and raise StoppedError in all processes together."""
        progress = self.state.progress
        if progress.step not in progress.saved:
            self.write_checkpoint()
        self.world.barrier()
        raise self.stop_error()

    def stop_error(self) -> StoppedError:
        """Return the error for the user who asked to stop."""
        signal_note = f" by {self.stop.signal}" if self.stop else ""
        return StoppedError(
            f"training stopped{signal_note} after step {self.state.progress.step:,}; the same command resumes it"
        )
