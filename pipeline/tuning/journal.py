"""The file in which a search keeps its trials: Optuna's journal, one JSON object a line, which somebody may have sent.

Reading neither writes nor waits; a link or special file in its place is refused.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.exceptions import OptunaError
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from tfm.data.json_documents import parse_json
from tfm.data.safe_files import open_regular_file
from tfm.pipeline.artifacts.files import convert_os_errors
from tfm.pipeline.artifacts.no_symlinks import check_no_symlinks, open_file_below
from tfm.pipeline.errors import DataError, TfmError

MAX_JOURNAL_BYTES = 2**30
MAX_LINE_BYTES = 4 * 2**20
MAX_TRIALS = 100_000
MAX_STUDIES = 100
NUM_OPERATIONS = 11
CREATE_STUDY_OPERATION, DELETE_STUDY_OPERATION, CREATE_TRIAL_OPERATION = 0, 1, 4
DAMAGED_JOURNAL_REMEDY = "move that folder away, or remove what is wrong there"


@contextmanager
def hold_lock(file: Path) -> Iterator[float]:
    """Hold the lock on a file in this process alone while the body runs; others wait. A killed worker leaves none
    behind. Yields the seconds that this process waited.
    """
    with convert_os_errors(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = open_file_below(file.parent, file, "a")
    with stream:
        start = time.monotonic()
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX)
        yield time.monotonic() - start


class JournalFile(BaseJournalBackend):
    """The lines of a journal. Its `line` is the number of the line that was read last, from 1."""

    def __init__(self, file: Path) -> None:
        self.file, self.line, self._offset = file, 0, 0
        self._num_trials, self._num_studies, self._study_ids = 0, 0, dict[str, int]()

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """The operations after the first `log_number_from`. A last line without its end is not there yet."""
        assert log_number_from == self.line, "a storage reads each line once"
        check_no_symlinks(self.file.parent, self.file)
        try:
            stream = open_regular_file(self.file, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):  # the writer creates it, or reports why it cannot
            return
        with stream:
            if (size := os.fstat(stream.fileno()).st_size) > MAX_JOURNAL_BYTES:
                raise DataError(
                    f"has {size:,} bytes, and tfm reads {MAX_JOURNAL_BYTES:,}; {DAMAGED_JOURNAL_REMEDY}", file=self.file
                )
            stream.seek(self._offset)
            while line := stream.readline(MAX_LINE_BYTES):
                if not line.endswith(b"\n"):
                    if len(line) == MAX_LINE_BYTES:
                        self.line += 1
                        raise self.line_error(f"has more than {MAX_LINE_BYTES:,} bytes")
                    return
                self._offset, self.line = self._offset + len(line), self.line + 1
                yield self._parse_operation(line)

    def _parse_operation(self, line: bytes) -> dict[str, Any]:
        try:
            operation = parse_json(line)
        except ValueError as error:
            raise self.line_error(str(error)) from None
        code, name = operation.get("op_code"), operation.get("study_name")
        if type(code) is not int or not 0 <= code < NUM_OPERATIONS:
            raise self.line_error(f"op_code: {code!r:.60} is no operation of Optuna's")
        if code == CREATE_STUDY_OPERATION:
            if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) < 1000:
                raise self.line_error(f"study_name: {name!r:.60} is no name")
            if name not in self._study_ids:  # Optuna passes over one that is there
                self._study_ids[name] = self._num_studies
                self._num_studies += 1
        for key, count in (("study_id", self._num_studies), ("trial_id", self._num_trials)):
            number = operation.get(key, 0)  # Optuna passes over what is about none that it knows
            if type(number) is not int or (key in operation and not 0 <= number < count):
                raise self.line_error(f"{key}: {number!r:.60} is none that stands before")
        if not isinstance(operation.get("worker_id"), str):
            raise self.line_error(f"worker_id: {operation.get('worker_id')!r:.60} is no name")
        if code == DELETE_STUDY_OPERATION:
            self._study_ids = {each: id_ for each, id_ in self._study_ids.items() if id_ != operation.get("study_id")}
        self._num_trials += code == CREATE_TRIAL_OPERATION
        if self._num_trials > MAX_TRIALS or self._num_studies > MAX_STUDIES:
            raise self.line_error(f"has more than {MAX_TRIALS:,} trials, or {MAX_STUDIES} studies")
        return operation

    def line_error(self, problem: str) -> DataError:
        """The error about the line that was read last."""
        return DataError(f"{problem}; {DAMAGED_JOURNAL_REMEDY}", file=self.file, line=self.line)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write operations behind the last whole line: the writer of a line without its end died, or had no room."""
        text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in logs)
        with hold_lock(self.file.with_name(".trials.lock")):
            with convert_os_errors(self.file.parent), open_file_below(self.file.parent, self.file, "ab"):
                pass  # now it is there
            with open_file_below(self.file.parent, self.file, "r+b") as stream:
                _remove_incomplete_last_line(stream)
                stream.write(text.encode())
                stream.flush()
                os.fsync(stream.fileno())


def _remove_incomplete_last_line(stream: Any) -> None:
    """Remove a last line without its end, and stand there."""
    size = stream.seek(0, os.SEEK_END)
    begin = stream.seek(max(0, size - MAX_LINE_BYTES))
    end = stream.read().rfind(b"\n") + 1
    stream.seek(begin + end)
    stream.truncate()


class Journal(JournalStorage):
    """Optuna's storage in a journal, which names the line at which Optuna fails."""

    def __init__(self, file: Path) -> None:
        self._lines = JournalFile(file)
        super().__init__(self._lines)

    def _sync_with_backend(self) -> None:
        try:
            super()._sync_with_backend()
        except (TfmError, OptunaError, OSError):  # Optuna's own are about what this process asked for
            raise
        except Exception as error:  # it checks nothing, and so fails in every way
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
            raise self._lines.line_error(f"is not an operation that Optuna can apply ({problem:.200})") from error
