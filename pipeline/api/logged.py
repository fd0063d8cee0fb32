"""The messages of a library about its work: warnings to Python's logging, and no progress bars."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

from tfm.pipeline.errors import format_for_terminal
from tfm.pipeline.runtime.progress import Bar, NullReporter

LOGGER = logging.getLogger("tfm")


class LoggingReporter:
    """A reporter whose warnings and lines go to the logger `tfm`; Python shows its warnings where nothing is set up."""

    def line(self, text: str) -> None:
        LOGGER.info("%s", format_for_terminal(text))

    def warn(self, text: str) -> None:
        LOGGER.warning("%s", format_for_terminal(text))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        LOGGER.info("%s: %s", format_for_terminal(title), [dict(zip(columns, row, strict=True)) for row in rows])

    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> AbstractContextManager[Bar]:
        return NullReporter().bar(label, total, unit, done)
