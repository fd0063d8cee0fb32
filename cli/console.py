"""The display of a stage's messages: live bars and tables on a terminal, plain lines in a log.

Messages contain names and texts of users: no reporter passes on a control character or a credential.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO, cast

from tfm.cli.streams import MessageStream, TerminalStream, print_message
from tfm.pipeline.errors import escape_control_characters, format_for_terminal
from tfm.pipeline.runtime.progress import Bar, Reporter

SECONDS_BETWEEN_PROGRESS_LINES = 10.0


def make_reporter(*, tables_on_stdout: bool = False) -> Reporter:
    """The reporter for stderr: a terminal, or a pipe or file.

    tables_on_stdout: for a command whose result is tables.
    """
    # a screen would spell out the colors and movements that rich writes
    stderr = cast("TextIO", MessageStream(sys.stderr.stream if isinstance(sys.stderr, TerminalStream) else sys.stderr))
    reporter = _make_terminal_reporter(stderr) if sys.stderr.isatty() else PlainReporter(stderr)
    if not tables_on_stdout:
        return reporter
    return TeeReporter(reporter, _make_terminal_reporter() if sys.stdout.isatty() else PlainReporter(sys.stdout))


def _make_terminal_reporter(stream: TextIO | None = None) -> Reporter:
    """The reporter for a terminal; None: stdout. A pipe and a file do without rich."""
    from rich.console import Console

    from tfm.cli.terminal.reporter import TerminalReporter

    return TerminalReporter(Console(file=stream))


def format_duration(seconds: float) -> str:
    """Format seconds as 0:07, 12:34 or 1:02:03."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def format_cell(value: object) -> str:
    """A table cell: integers with thousands separators, fractions with at least four significant digits."""
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 10 or value == 0 else f"{value:.4g}"
    return as_single_line(str(value))


def as_single_line(text: str) -> str:
    """A text as a part of a line, such as a cell: the ends of lines and tabs in it are spelled out too."""
    return escape_control_characters(format_for_terminal(text), keep="")


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The rows under their headings in aligned columns: numbers to the right, the rest to the left."""
    cells = [[format_cell(value) for value in row] for row in rows]
    columns = [*map(as_single_line, columns)]
    widths = [max(len(text) for text in column) for column in zip(columns, *cells, strict=True)]
    right = are_numeric(columns, rows)

    def format_row(texts: Sequence[str]) -> str:
        parts = (t.rjust(w) if r else t.ljust(w) for t, w, r in zip(texts, widths, right, strict=True))
        return "  ".join(parts).rstrip()

    return [format_row(columns), "  ".join("-" * width for width in widths), *map(format_row, cells)]


def are_numeric(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[bool]:
    """Return for each column whether it has only numbers, as values or already as text (1,234 or <5.2 % or 1:02 or 3 ±
    1* or ∞).
    """
    number = re.compile(r"([-+<>]?[\d,.:]+ ?%?|[∞–-]?)( ± [\d,.:]+ ?%?)?[*†]*")
    texts = [[format_cell(row[i]) for row in rows] for i in range(len(columns))]
    return [bool(column) and all(number.fullmatch(text) for text in column) for column in texts]


class ProgressStats:
    """Count the units done in an open bar and format its status: done, rate, time left, note.

    Args:
        total: number of units; None if it is not known.
        unit: name of the units.
        done: units done before.
        clock: () -> seconds.
    """

    def __init__(self, total: int | None, unit: str, done: int, clock: Callable[[], float]):
        self.total, self.unit, self.done, self.note = total, unit, done, ""
        self._first, self._clock, self._start = done, clock, clock()

    def advance(self, amount: int, note: str) -> None:
        self.done += amount
        self.note = note or self.note

    def text(self, finished: bool = False) -> str:
        seconds = max(self._clock() - self._start, 1e-9)
        rate = (self.done - self._first) / seconds
        parts = [f"{self.done:,} {self.unit}"]
        if self.total is not None:
            parts = [f"{self.done:,}/{self.total:,} {self.unit}"]
        if finished:
            parts.append(f"in {format_duration(seconds)}")
        elif rate > 0:
            parts.append(f"{rate:,.0f} {self.unit}/s" if rate >= 10 else f"{rate:.2g} {self.unit}/s")
            if self.total is not None and self.total >= self.done:
                parts.append(f"{format_duration((self.total - self.done) / rate)} left")
        return as_single_line(", ".join([*parts, self.note] if self.note else parts))


class PlainReporter:
    """A reporter for logs: whole lines only; for a bar at most one line every ten seconds, and one at its end."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic):
        self._stream, self._clock = stream, clock

    def line(self, text: str) -> None:
        print_message(text, self._stream)

    def warn(self, text: str) -> None:
        self.line(f"warning: {text}")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.line("\n".join([as_single_line(title), *(f"  {line}" for line in table_lines(columns, rows))]))

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        label = as_single_line(label)
        bar = _PlainBar(self, label, ProgressStats(total, unit, done, self._clock), self._clock)
        yield bar
        self.line(f"{label}: {bar.meter.text(finished=True)}")


class _PlainBar:
    def __init__(self, plain: PlainReporter, label: str, meter: ProgressStats, clock: Callable[[], float]):
        self._plain, self._label, self.meter, self._clock = plain, label, meter, clock
        self._last_line = clock()

    def advance(self, amount: int = 1, note: str = "") -> None:
        self.meter.advance(amount, note)
        seconds = self._clock()
        if seconds - self._last_line >= SECONDS_BETWEEN_PROGRESS_LINES:
            self._last_line = seconds
            self._plain.line(f"{self._label}: {self.meter.text()}")


class TeeReporter:
    """A reporter that also sends its tables to another one."""

    def __init__(self, reporter: Reporter, tables: Reporter):
        self.line, self.warn, self.bar = reporter.line, reporter.warn, reporter.bar
        self.table = tables.table
