"""Two short trainings of a recipe, measured on this machine by `tfm train`, in folders of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.process_memory import TreeMemoryWatch

FIRST_UPDATES = 4
"""Updates of the first training, which says how many the second can have."""
MAX_UPDATES = 200
"""Updates of the second training, at most: batches of many shapes, for each of which torch keeps what it prepared."""
MEASURED_SECONDS = 20.0
"""Seconds that the updates of the second training may take, where there are more than in the first."""
POLL_SECONDS = 0.01

TimedLine = tuple[float, str]
"""When a line of metrics.jsonl was there, in seconds, and its event."""


@dataclass(frozen=True)
class ShortTrainingMeasurement:
    """Time and memory that a short training took.

    Args:
        start_seconds: of the command before and after its updates.
        update_seconds: of an update.
        validation_seconds: of a validation, and of the checkpoint before it.
        peak_bytes: the most memory that was resident, or that was reserved on a device with its own.
        memory_limit: bytes that this machine, or that device, has.
        updates: the number of updates that were timed.
    """

    start_seconds: float
    update_seconds: float
    validation_seconds: float
    peak_bytes: float
    memory_limit: float
    updates: int

    @property
    def uncounted_costs_note(self) -> str:
        """Parts of the costs that the figures leave out."""
        return "translate and evaluate are not in the time"

    def training_seconds(self, updates: float, validations: int) -> dict[str, float]:
        """Seconds of a training.

        Args:
            updates: their number, counted in updates as large as those measured.
            validations: their number.
        """
        return {"train": self.start_seconds + updates * self.update_seconds + validations * self.validation_seconds}

    def split_peak_memory(self, estimated_bytes: Mapping[str, float]) -> dict[str, float]:
        """The measured peak by holder: what their sizes leave is the program's."""
        fixed = {name: size for name, size in estimated_bytes.items() if name != "activations"}
        rest = self.peak_bytes - sum(fixed.values())
        activations = min(estimated_bytes["activations"], max(rest, 0.0))
        return {**fixed, "activations": activations, "program": rest - activations}


def measure_short_training(
    recipe: Path, sets: Sequence[str], translation_length: int | None, training_updates: int
) -> ShortTrainingMeasurement:
    """Train a recipe twice: for few updates with a validation, and for more with two.

    The first validates a model that has learned nothing, which translates to the most tokens: that is where memory
    may be highest. The second translates to the mean length of the references, as a model does that has learned.

    Args:
        recipe: the recipe.
        sets: values that are changed, KEY=VALUE.
        translation_length: tokens of a translation in validations of the second; None: they do not translate.
        training_updates: of the whole training: no more shapes of batches are measured than it has.

    Raises:
        RecipeError: a short training fails.
    """
    with TemporaryDirectory() as folder:
        run_seconds, first_memory, lines = _train(recipe, sets, Path(folder) / "one", FIRST_UPDATES, FIRST_UPDATES)
        updates = num_updates_to_measure(update_seconds(lines), training_updates)
        limit_sets = [] if translation_length is None else length_limit(translation_length)
        run_seconds, second_memory, lines = _train(
            recipe, [*sets, *limit_sets], Path(folder) / "two", updates, updates // 2
        )
    seconds, validation = update_seconds(lines), validation_seconds(lines)
    start = max(run_seconds - 2 * validation - updates * seconds, 0.0)
    (_, limit), peak = first_memory, max(each[0] for each in (first_memory, second_memory))
    return ShortTrainingMeasurement(start, seconds, validation, peak, limit, updates)


def length_limit(tokens: int) -> list[str]:
    """Return the values, KEY=VALUE, by which translations have at most so many tokens, whatever limit a recipe has."""
    ratio = DecodingConfig.model_fields["max_ratio"].default
    return [f"decoding.max_length={tokens}", f"decoding.max_ratio={ratio}"]


def num_updates_to_measure(seconds: float, training_updates: int) -> int:
    """Return the number of updates of the second training, an even one.

    Args:
        seconds: of an update.
        training_updates: of the whole training.
    """
    max_updates = min(MEASURED_SECONDS / max(seconds, 1e-9), MAX_UPDATES, training_updates)
    return max(FIRST_UPDATES, int(max_updates) // 2 * 2)


def update_seconds(lines: Sequence[TimedLine]) -> float:
    """Return the mean seconds of an update after another; the first also compiles and fills caches."""
    durations = [
        end - begin
        for (begin, previous_event), (end, event) in _neighbours(lines)
        if previous_event == event == "train"
    ]
    return sum(durations) / len(durations)


def validation_seconds(lines: Sequence[TimedLine]) -> float:
    """Return the seconds from an update to the next one with a validation between them, less those of that update."""
    (index, *_) = (number for number, (_, event) in enumerate(lines) if event == "valid")
    return max(lines[index + 1][0] - lines[index - 1][0] - update_seconds(lines), 0.0)


def _neighbours(lines: Sequence[TimedLine]) -> list[tuple[TimedLine, TimedLine]]:
    return list(zip(lines, lines[1:], strict=False))


def _train(
    recipe: Path, sets: Sequence[str], out: Path, updates: int, validate_every: int
) -> tuple[float, tuple[float, float], list[TimedLine]]:
    """The seconds of a short training, its peak memory and the limit, and when each line of its figures came."""
    settings = [
        *sets,
        f"training.max_steps={updates}",
        "training.max_epochs=none",
        "training.log_every=1",
        "training.validation.every_epochs=none",
        f"training.validation.every_steps={validate_every}",
        "training.early_stopping.patience=none",
        "training.trackers=[]",  # no run of a tracker that people look at
        "training.tensorboard=false",
    ]
    words = [word for each in settings for word in ("--set", each)]
    command = [sys.executable, "-m", "tfm", "train", "--recipe", str(recipe), *words, "--out", str(out)]
    start = time.monotonic()
    with (out.parent / f"{out.name}.txt").open("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        watch = TreeMemoryWatch(process.pid)  # the processes that share an update, too: `usage` has the largest alone
        watch.start()
        times: list[float] = []
        usage = None
        while usage is None:
            ended_process, status, child_usage = os.wait4(process.pid, os.WNOHANG)
            usage = child_usage if ended_process else None
            count = _count_lines(out / "training" / "metrics.jsonl")
            times += [time.monotonic()] * (count - len(times))
            if usage is None:
                time.sleep(POLL_SECONDS)
        seconds = time.monotonic() - start
        tree_peak = watch.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        if process.returncode:
            problem = output.read().strip()[-2000:]
            raise RecipeError(f"{recipe}: its first updates fail, so nothing was measured:\n{problem}")
    lines = (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    resident = max(usage.ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0), float(tree_peak))
    figures = open_artifact(out / "model", "train").figures
    return seconds, peak_and_limit(figures, resident), list(zip(times, events, strict=True))


def peak_and_limit(figures: Mapping[str, Any], resident_bytes: float) -> tuple[float, float]:
    """Return the peak of the memory that limits a training, and that limit, in bytes: a device's own, where it has
    some.

    Args:
        figures: of the model that was trained.
        resident_bytes: the most memory of this machine that was resident.
    """
    if (of_device := figures.get("device_memory")) is not None:
        return float(of_device["peak_reserved"]), float(of_device["total"])
    return resident_bytes, float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _count_lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
