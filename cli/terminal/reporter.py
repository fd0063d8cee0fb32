"""The display of a stage's messages on a terminal: live bars, and lines and tables above them."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from tfm.cli.console import ProgressStats, are_numeric, as_single_line, format_cell
from tfm.pipeline.errors import format_for_terminal
from tfm.pipeline.runtime.progress import Bar

COLUMN_GAP = 2  # spaces between the columns of a table


def choose_column_widths(cells: Sequence[Sequence[str]], width: int) -> Sequence[int | None]:
    """Choose the widths of columns so that no word is cut, the widest made narrower first.

    Args:
        cells: the rows of a table.
        width: of the terminal.

    Returns:
        A width for each column; None for each where the longest words of all have no room: words are cut then.
    """
    columns = [*zip(*cells, strict=True)]
    room = width - COLUMN_GAP * (len(columns) - 1)
    shortest = [max(cell_len(word) for text in texts for word in ["", *text.split()]) for texts in columns]
    widths = [min(max(map(cell_len, texts)), room) for texts in columns]
    if sum(shortest) > room:
        return [None] * len(columns)
    while sum(widths) > room:
        _, widest = max((each, column) for column, each in enumerate(widths) if each > shortest[column])
        widths[widest] -= 1
    return widths


class TerminalReporter:
    """A reporter for people at a terminal: bars that move, lines and tables above them."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic):
        self._console, self._clock = console, clock
        self._progress: Progress | None = None

    def line(self, text: str) -> None:
        self._console.print(Text(format_for_terminal(text)))

    def warn(self, text: str) -> None:
        self._console.print(Text(format_for_terminal(f"warning: {text}"), style="yellow"))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self._console.print(
            Text(as_single_line(title), style="bold")
        )  # a table's own title is wrapped to the table's width
        table = Table(box=None, header_style="dim", pad_edge=False)
        cells = [[*map(as_single_line, columns)], *([*map(format_cell, row)] for row in rows)]
        widths = choose_column_widths(cells, self._console.width)
        for heading, width, numeric in zip(cells[0], widths, are_numeric(columns, rows), strict=True):
            justify: Literal["right", "left"] = "right" if numeric else "left"
            table.add_column(Text(heading), justify=justify, overflow="fold", width=width)
        for texts in cells[1:]:
            table.add_row(*map(Text, texts))
        self._console.print(table)

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        # A terminal has room for one live display: a bar opened inside another becomes a second row of it.
        outermost = self._progress is None
        if self._progress is None:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24))
            status = TextColumn("{task.fields[status]}", markup=False)
            self._progress = Progress(*columns, status, console=self._console, transient=True)
            self._progress.start()
        progress = self._progress
        label, meter = as_single_line(label), ProgressStats(total, unit, done, self._clock)
        task = progress.add_task(label, total=total, completed=done, status=meter.text())
        try:
            yield _TerminalBar(progress, task, meter)
            self.line(f"{label}: {meter.text(finished=True)}")
        finally:
            progress.remove_task(task)
            if outermost:
                progress.stop()
                self._progress = None


class _TerminalBar:
    def __init__(self, progress: Progress, task: TaskID, meter: ProgressStats):
        self._progress, self._task, self._meter = progress, task, meter

    def advance(self, amount: int = 1, note: str = "") -> None:
        self._meter.advance(amount, note)
        self._progress.update(self._task, completed=self._meter.done, status=self._meter.text())
