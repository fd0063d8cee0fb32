"""The reporter of a trial: its lines go into a file in its folder, as nobody can read those of many trials."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tfm.pipeline.errors import as_message
from tfm.pipeline.runtime.progress import Bar, NullReporter


class TrialLog(NullReporter):
    """Reporter that writes lines down, and counts updates. updates: those of the training that ran last."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.updates = 0

    def line(self, text: str) -> None:
        self._file.write(as_message(text) + "\n")
        self._file.flush()

    def warn(self, text: str) -> None:
        self.line(f"warning: {text}")

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        """Open a bar that shows nothing; that of training moves by updates.

        Args:
            label: its label.
            total: number of units; None where it is not known.
            unit: name of the units.
            done: units done before.
        """
        if label == "training":
            self.updates = done
            yield self
        else:
            with super().bar(label, total, unit, done) as quiet:
                yield quiet

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Count updates."""
        self.updates += amount
