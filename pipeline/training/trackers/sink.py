"""A tracker beside a training: its lines are sent by a thread, and what the tracker does costs the training nothing.

`training/trackers/NAME.json` has what was sent: a training that goes on goes on in the same tracked
run, sends what a kill or a dead server kept back, and sends nothing twice.
"""

import json
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.files import write_text_atomically
from tfm.pipeline.artifacts.no_symlinks import make_folder_below
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.training.trackers.tracker import MetricsLine, Tracker

MIN_SECONDS_BETWEEN_TRIES = 30.0
MAX_SECONDS_OF_CLOSING = 60.0
MAX_SECONDS_OF_STOPPING = 10.0
"""Time for the last lines: of a training at its end, and of one that was stopped."""
MAX_STATE_BYTES = 10_000
RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass
class SentLines:
    """Lines of a training that a tracker has, and where.

    Attributes:
        training: hash of the training's plan.
        place: the service that has the run.
        run_id: the identifier that the service gave it; None before it did.
        steps: the last step that was sent, by event.
        scores: fingerprint of the scores of the test sets that were sent.
    """

    training: str
    place: str
    run_id: str | None = None
    steps: dict[str, int] = field(default_factory=dict)
    scores: str | None = None

    def contains(self, line: MetricsLine) -> bool:
        """Return whether a line was sent."""
        return int(line["step"]) <= self.steps.get(line["event"], -1)

    def add(self, lines: Sequence[MetricsLine]) -> None:
        """Note that lines were sent."""
        for line in lines:
            self.steps[line["event"]] = max(int(line["step"]), self.steps.get(line["event"], -1))


def read_sent_state(file: Path, plan_hash: str | None, service_address: str) -> SentLines:
    """Read what a tracker has of a training; nothing if the file is of another training or place, or damaged.

    Args:
        file: the JSON file of the tracker.
        plan_hash: hash of the training's plan; None for whichever the file names.
        service_address: the service that is asked for now; the file's is only compared with it.
    """
    try:
        state = SentLines(**read_json(file, max_bytes=MAX_STATE_BYTES))
    except (OSError, DataError, TypeError):
        return SentLines(plan_hash or "", service_address)
    is_valid = (
        isinstance(state.training, str)
        and isinstance(state.run_id, str)
        and RUN_ID.fullmatch(state.run_id)
        and isinstance(state.steps, dict)
        and all(type(step) is int for step in state.steps.values())
        and (state.scores is None or isinstance(state.scores, str))
    )
    if not is_valid or state.place != service_address or state.training != (plan_hash or state.training):
        return SentLines(plan_hash or "", service_address)
    return state


def write_sent_state(state: SentLines, file: Path, root: Path) -> None:
    """Write down what a tracker has of a training.

    Args:
        state: what it has.
        file: the JSON file of the tracker.
        root: the folder of the run, below which no link is followed.
    """
    make_folder_below(root, file.parent)
    write_text_atomically(file, json.dumps(vars(state)) + "\n", root=root)


@dataclass(frozen=True)
class _RunEnd:
    """The last message to the thread: files and tags of the run, and whether the training reached its end."""

    files: Sequence[Path]
    tags: Mapping[str, str]
    is_whole: bool


class TrackerSink:
    """Sink that sends figures to a tracker, in a thread of its own.

    A failure is a warning; the lines are kept and sent later, at most every MIN_SECONDS_BETWEEN_TRIES.

    Args:
        name: the tracker's name in the recipe.
        connect: opens the tracked run, by its identifier of an earlier session or as a new one.
        state: what the tracker has already.
        file: the JSON file that keeps this.
        root: the folder of the run, below which no link is followed.
        reporter: receives warnings.
    """

    def __init__(
        self,
        name: str,
        connect: Callable[[str | None], Tracker],
        state: SentLines,
        file: Path,
        root: Path,
        reporter: Reporter,
    ) -> None:
        self.name, self._connect, self._state, self._file, self._root = name, connect, state, file, root
        self._reporter = reporter
        self._messages: queue.SimpleQueue[MetricsLine | _RunEnd] = queue.SimpleQueue()
        self._lines: list[MetricsLine] = []
        self._num_done = 0
        self._tracker: Tracker | None = None
        self._next_try = 0.0
        self._problem: str | None = None
        self._is_warned = False
        self._thread = threading.Thread(target=self._run_thread, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    def append(self, line: MetricsLine) -> None:
        """Send a line, unless the tracker has it already."""
        self._warn_of_failure()
        self._messages.put(dict(line))

    def close(self, files: Sequence[Path] = (), tags: Mapping[str, str] | None = None, *, is_finished: bool) -> None:
        """Send the rest and close the tracked run; a service that is slow is left.

        Args:
            files: files to send.
            tags: what else to say of the run.
            is_finished: whether the training reached its end.
        """
        if not self._thread.is_alive():
            return
        self._messages.put(_RunEnd(files, tags or {}, is_finished))
        self._thread.join(MAX_SECONDS_OF_CLOSING if is_finished else MAX_SECONDS_OF_STOPPING)
        if self._thread.is_alive():
            self._problem = self._problem or "the service does not answer"
        self._warn_of_failure()

    def _warn_of_failure(self) -> None:
        """Show the first failure, in the thread of the training."""
        if self._problem is not None and not self._is_warned:
            self._is_warned = True
            self._reporter.warn(
                f"training.trackers: {self.name} does not take the figures ({self._problem}); training goes on, and "
                "metrics.jsonl has all of them"
            )

    def _run_thread(self) -> None:
        while True:
            messages = [self._messages.get()]
            while not self._messages.empty():
                messages.append(self._messages.get())
            ending = next((each for each in messages if isinstance(each, _RunEnd)), None)
            self._lines += [each for each in messages if not isinstance(each, _RunEnd)]
            if ending is not None or time.monotonic() >= self._next_try:
                self._send_or_warn(ending)
            if ending is not None:
                return

    def _send_or_warn(self, ending: _RunEnd | None) -> None:
        """Send what is due; whatever the tracker raises becomes a warning."""
        try:
            self._send(ending)
        except Exception as error:  # a client library may raise anything, which is no reason to end a training
            words = " ".join(str(error).split())[:200]
            self._problem = f"{type(error).__name__}: {words}" if words else type(error).__name__
            self._next_try = time.monotonic() + MIN_SECONDS_BETWEEN_TRIES

    def _send(self, ending: _RunEnd | None) -> None:
        if self._tracker is None:
            self._tracker = self._connect(self._state.run_id)
            if self._tracker.run_id != self._state.run_id:
                self._state.run_id, self._state.steps = self._tracker.run_id, {}
            write_sent_state(self._state, self._file, self._root)
        num_lines = len(self._lines)
        if missing := [each for each in self._lines[self._num_done :] if not self._state.contains(each)]:
            self._tracker.log(missing)
            self._state.add(missing)
            write_sent_state(self._state, self._file, self._root)
        self._num_done = num_lines
        if ending is not None:
            self._tracker.save(ending.files, ending.tags)
            self._tracker.finish(is_finished=ending.is_whole)
