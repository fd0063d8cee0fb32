"""The command of an external metric: segments go into its stdin, and numbers come out of its stdout."""

import json
import math
import os
import re
import selectors
import signal
import subprocess
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO

from tfm.data.credentials import redact_credentials
from tfm.data.errors import format_count
from tfm.pipeline.errors import escape_unprintable
from tfm.pipeline.external_metric import ExternalMetric
from tfm.pipeline.scoring.metrics.references import drop_blank_references

MAX_LINE_BYTES = 1000  # bytes of a line that may be a number
MAX_REASON_LENGTH = 200
_PIPE_BYTES = 1 << 16
_NUMBER_PATTERN = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class ExternalMetricError(Exception):
    """Failure of an external metric; its message is the rest of a sentence that begins with the metric's name."""


class SegmentCountError(ExternalMetricError):
    """Another number of numbers than of segments: it is not known of which segment each is."""


def run_command(
    metric: ExternalMetric,
    sources: Sequence[str] | None,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    on_done: Callable[[int], None],
) -> Sequence[float]:
    """Run the command of a metric on segments.

    An early end, by whatever cause, Ctrl-C too, also ends the processes that the command has started.

    Args:
        metric: the command.
        sources: one for each segment, if they are known.
        hypotheses: one for each segment.
        references: one or more lists as long.
        on_done: called with the number of further segments whose numbers are read.

    Returns:
        The number that the command prints for each segment (n,).

    Raises:
        ExternalMetricError: the command cannot be started, fails, takes longer than its limit, or prints anything else.
    """
    numbers = _NumberParser(len(hypotheses))
    _run_subprocess(metric, _input_chunks(sources, hypotheses, references), lambda data: on_done(numbers.feed(data)))
    return numbers.all_numbers()


def run_command_on_pairs(
    metric: ExternalMetric,
    pairs: Iterable[tuple[str | None, str]],
    on_numbers: Callable[[Sequence[float]], None],
) -> None:
    """Run the command of a metric on a stream of pairs, which it reads as segments without references.

    Args:
        metric: the command.
        pairs: source and hypothesis; they are read as the command takes them.
        on_numbers: called with the numbers of further pairs, in order.

    Raises:
        ExternalMetricError: as for `run_command`; SegmentCountError if numbers that were given to `on_numbers` may be
            those of other pairs.
    """
    numbers, count, num_given = _NumberParser(None), 0, 0

    def chunks() -> Iterator[bytes]:
        nonlocal num_given
        chunk = b""
        for source, hypothesis in pairs:
            chunk += _segment_line(source, hypothesis, [])
            num_given += 1
            if len(chunk) >= _PIPE_BYTES:
                yield chunk
                chunk = b""
        if chunk:
            yield chunk

    def parse_output(data: bytes) -> None:
        nonlocal count
        numbers.feed(data)
        printed = numbers.pop_numbers()
        count += len(printed)
        if count > num_given:
            raise SegmentCountError(_too_many_lines_problem(num_given))
        on_numbers(printed)

    _run_subprocess(metric, chunks(), parse_output)
    printed = numbers.all_numbers()
    if count + len(printed) != num_given:
        raise SegmentCountError(
            f"printed {format_count(count + len(printed), 'number')} for {format_count(num_given, 'segment')}"
        )
    on_numbers(printed)


def _run_subprocess(metric: ExternalMetric, chunks: Iterator[bytes], on_read: Callable[[bytes], None]) -> None:
    """Run the command of a metric: chunks go into its stdin, and `on_read` is called with the output."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    try:
        # a group of its own, which can be ended as a whole
        process = subprocess.Popen(metric.command, bufsize=0, start_new_session=True, **pipes)  # type: ignore[call-overload]
    except OSError as error:
        raise ExternalMetricError(
            f"cannot be started: {escape_unprintable(metric.command[0])}: {error.strerror or error}"
        ) from None
    with process:
        try:
            _exchange_data(process, metric.limit, chunks, on_read)
        except BaseException:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _exchange_data(
    process: "subprocess.Popen[bytes]", limit: float, chunks: Iterator[bytes], on_read: Callable[[bytes], None]
) -> None:
    """Write and read as the command is ready for it, so that neither waits for the other for ever; until it ends.

    `on_read` is called with the output. Raises ExternalMetricError if the command ends with another code than 0, or
    not within `limit` seconds.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    deadline, timeout = time.monotonic() + limit, ExternalMetricError(f"did not end within its limit of {limit:g} s")
    text, errors = _PipeWriter(process.stdin, chunks), b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdin, selectors.EVENT_WRITE)
        reading = {process.stdout, process.stderr}
        for stream in reading:
            selector.register(stream, selectors.EVENT_READ)
        while reading:
            if (remaining := deadline - time.monotonic()) <= 0:
                raise timeout
            for key, _ in selector.select(min(remaining, 3600)):
                if key.fileobj is process.stdin:
                    if not text.write():
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                data = os.read(key.fd, _PIPE_BYTES)
                if not data:
                    reading.remove(selector.unregister(key.fileobj).fileobj)  # type: ignore[arg-type]
                elif key.fileobj is process.stdout:
                    on_read(data)
                else:
                    errors = (errors + data)[-_PIPE_BYTES:]
    try:
        code = process.wait(max(deadline - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        raise timeout from None
    if code:
        raise ExternalMetricError(_exit_reason(code, errors))


class _PipeWriter:
    """The text of some chunks on its way into a pipe."""

    def __init__(self, pipe: IO[bytes], chunks: Iterator[bytes]) -> None:
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._chunks = chunks
        self._unsent = b""

    def write(self) -> bool:
        """Write as much as the pipe takes; False once all is written, or where the command reads no more."""
        self._unsent = self._unsent or next(self._chunks, b"")
        try:
            self._unsent = self._unsent[os.write(self._pipe.fileno(), self._unsent) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._unsent = self._unsent or next(self._chunks, b"")
        return bool(self._unsent)


class _NumberParser:
    """Parser of numbers as they are printed, one a line; raises ExternalMetricError at the first line that is none.

    count: the number of lines to come; None if it is not known.
    """

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._taken = 0
        self._found = array("d")
        self._rest = b""

    def feed(self, data: bytes) -> int:
        """Parse further bytes, and return the number of new numbers."""
        num_before = len(self._found)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._add_number(line)
        if len(self._rest) > MAX_LINE_BYTES:
            self._add_number(self._rest)
        return len(self._found) - num_before

    def all_numbers(self) -> Sequence[float]:
        """Return the numbers at the end of the output."""
        if self._rest:
            self._add_number(self._rest)
        if self._count is not None and len(self._found) != self._count:
            raise ExternalMetricError(
                f"printed {format_count(len(self._found), 'number')} for {format_count(self._count, 'segment')}"
            )
        return self._found

    def pop_numbers(self) -> Sequence[float]:
        """Return the numbers so far, and forget them."""
        numbers, self._found = self._found, array("d")
        self._taken += len(numbers)
        return numbers

    def _add_number(self, line: bytes) -> None:
        if self._count is not None and len(self._found) == self._count:
            raise ExternalMetricError(_too_many_lines_problem(self._count))
        text = line.strip()
        number = float(text) if len(text) <= MAX_LINE_BYTES and _NUMBER_PATTERN.fullmatch(text) else math.nan
        if not math.isfinite(number):
            printed = _decode_output(text[:MAX_LINE_BYTES])
            raise ExternalMetricError(
                f"printed {printed!r:.60} for segment {self._taken + len(self._found) + 1:,}: not a finite number"
            )
        self._found.append(number)


def _input_chunks(
    sources: Sequence[str] | None, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> Iterator[bytes]:
    """The segments as JSON lines, of which some make up a chunk; ASCII alone, so that a line is a line to everybody."""
    chunk = b""
    for row, hypothesis in enumerate(hypotheses):
        source = None if sources is None else sources[row]
        chunk += _segment_line(source, hypothesis, drop_blank_references([each[row] for each in references]))
        if len(chunk) >= _PIPE_BYTES:
            yield chunk
            chunk = b""
    if chunk:
        yield chunk


def _too_many_lines_problem(num_segments: int) -> str:
    return f"printed more lines than the {format_count(num_segments, 'segment')} that it was given"


def _segment_line(source: str | None, hypothesis: str, references: Sequence[str]) -> bytes:
    entry = {"source": source, "hypothesis": hypothesis, "references": references}
    return json.dumps(entry).encode() + b"\n"


def _exit_reason(code: int, errors: bytes) -> str:
    """The end of a command in words, and its last line of output on stderr."""
    if code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    error_lines = [line.strip() for line in _decode_output(errors).splitlines() if line.strip()]
    return f"ended with exit code {code}" + (
        f": {escape_unprintable(redact_credentials(error_lines[-1])[-MAX_REASON_LENGTH:])}" if error_lines else ""
    )


def _decode_output(data: bytes) -> str:
    return data.decode("utf-8", "replace")
