"""metrics.jsonl: one JSON object per line, of training or of a validation."""

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from tfm.data.safe_files import read_log
from tfm.pipeline.artifacts.files import add_path_to_errors, convert_os_errors, write_text_atomically
from tfm.pipeline.artifacts.no_symlinks import make_folder_below, open_file_below
from tfm.pipeline.reports.training_curves import draw_curves

MetricsLine = Mapping[str, Any]
MIN_SECONDS_BETWEEN_CURVES = 30.0


class MetricsSink(Protocol):
    """A place for figures besides metrics.jsonl."""

    def append(self, line: MetricsLine) -> None: ...
    def close(
        self, files: Sequence[Path] = (), tags: Mapping[str, str] | None = None, *, is_finished: bool
    ) -> None: ...


class MetricsLog:
    """The lines of a metrics.jsonl, on disk and in `lines`; a figure that is not a number is null.

    The file lies in a folder of the run's; the run's own folder may be a link, nothing below it is followed.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.mirrors: Sequence[MetricsSink] = ()
        self.run = file.parent.parent
        self.lines: list[MetricsLine] = []

    def truncate(self, *, step: int, last_validation_step: int) -> None:
        """Cut the file back to training up to `step` and validations up to `validated`: later ones come again."""
        self.lines = []
        if self.file.exists():
            for text in read_log(self.file):
                try:
                    line = json.loads(text)
                    if line["step"] <= {"train": step, "valid": last_validation_step}[line["event"]]:
                        self.lines.append(line)
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue  # the rest of a line that a crash cut
        with convert_os_errors(self.file.parent):
            make_folder_below(self.run, self.file.parent)
            write_text_atomically(self.file, "".join(f"{json.dumps(line)}\n" for line in self.lines), root=self.run)

    def append(self, line: MetricsLine) -> None:
        """Add a line."""
        line = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in line.items()
        }
        self.lines.append(line)
        with add_path_to_errors(self.file), self._open_log() as stream:
            stream.write(json.dumps(line) + "\n")
        for mirror in self.mirrors:
            mirror.append(line)

    def close(self, files: Sequence[Path] = (), tags: Mapping[str, str] | None = None, *, is_finished: bool) -> None:
        """Close the mirrors.

        Args:
            files: files for those that take files.
            tags: what else to say of the run there.
            is_finished: whether the training reached its end.
        """
        for mirror in self.mirrors:
            mirror.close(files, tags, is_finished=is_finished)

    def sha256(self) -> str:
        """Return the sha256 of the file as it is."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    def sync(self) -> None:
        """Make sure that all lines are on the disk: before the checkpoint that counts on them."""
        with add_path_to_errors(self.file), self._open_log() as stream:
            os.fsync(stream.fileno())

    def _open_log(self) -> IO[str]:
        return open_file_below(self.run, self.file, "a", encoding="utf-8")


class CurvesSink:
    """Callback that draws curves.svg again, but not so often that it costs time."""

    def __init__(self, log: MetricsLog, file: Path) -> None:
        self.log, self.file = log, file
        self._last_curve_time = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._last_curve_time >= MIN_SECONDS_BETWEEN_CURVES:
            draw_curves(self.log.lines, self.file)
            self._last_curve_time = time.monotonic()
