"""Three updates and a validation of a recipe, measured on this machine by `tfm train`, in a folder of their own."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tfm.pipeline.errors import RecipeError

NUM_UPDATES = 3
"""Updates that are timed, after a first one that also compiles and fills caches."""


@dataclass(frozen=True)
class ShortTrainingMeasurement:
    """Time and memory that a short training took.

    Args:
        start_seconds: of the command before and after its updates.
        update_seconds: of an update.
        validation_seconds: of a validation, and of the checkpoint that follows it.
        peak_bytes: the most memory that was resident.
        memory_limit: bytes that this machine has.
    """

    start_seconds: float
    update_seconds: float
    validation_seconds: float
    peak_bytes: float
    memory_limit: float

    @property
    def uncounted_costs_note(self) -> str:
        """Parts of the costs that the figures leave out."""
        return "translate and evaluate are not in the time"

    def training_seconds(self, updates: int, validations: int) -> dict[str, float]:
        """Seconds of a training of so many updates and validations."""
        return {"train": self.start_seconds + updates * self.update_seconds + validations * self.validation_seconds}

    def split_peak_memory(self, estimated_bytes: Mapping[str, float]) -> dict[str, float]:
        """The measured peak by holder: what their sizes leave is the program's."""
        fixed = {name: size for name, size in estimated_bytes.items() if name != "activations"}
        rest = self.peak_bytes - sum(fixed.values())
        activations = min(estimated_bytes["activations"], max(rest, 0.0))
        return {**fixed, "activations": activations, "program": rest - activations}


def measure_short_training(recipe: Path, sets: Sequence[str]) -> ShortTrainingMeasurement:
    """Train a recipe for a few updates, twice: with one validation and with two.

    Raises RecipeError where the short training fails.
    """
    updates = NUM_UPDATES + 1
    with TemporaryDirectory() as folder:
        whole, peak = _measure_seconds_and_peak_memory(
            recipe, sets, Path(folder) / "one", updates, validate_every=updates
        )
        seconds = _update_seconds(Path(folder) / "one")
        again, _ = _measure_seconds_and_peak_memory(
            recipe, sets, Path(folder) / "two", updates, validate_every=updates // 2
        )
    validation = max(again - whole, 0.0)
    start = max(whole - validation - updates * seconds, 0.0)
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return ShortTrainingMeasurement(start, seconds, validation, peak, float(pages))


def _measure_seconds_and_peak_memory(
    recipe: Path, sets: Sequence[str], out: Path, updates: int, *, validate_every: int
) -> tuple[float, float]:
    """The seconds of a short training, and its peak memory in bytes."""
    changed = [
        *sets,
        f"training.max_steps={updates}",
        "training.log_every=1",
        f"training.validation.every_steps={validate_every}",
    ]
    words = [word for each in changed for word in ("--set", each)]
    command = [sys.executable, "-m", "tfm", "train", "--recipe", str(recipe), *words, "--out", str(out)]
    began = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RecipeError(f"{recipe}: its first updates fail, so nothing was measured:\n{done.stderr.strip()[-2000:]}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return time.monotonic() - began, peak * (1.0 if sys.platform == "darwin" else 1024.0)


def _update_seconds(run: Path) -> float:
    """The mean seconds of the updates after the first."""
    lines = (run / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    seconds = [each["seconds"] for each in map(json.loads, lines) if each["event"] == "train"]
    return float((seconds[-1] - seconds[0]) / max(len(seconds) - 1, 1))
