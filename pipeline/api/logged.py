"""The messages of a library about its work: warnings to Python's logging, and no progress bars."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager

from tfm.pipeline.errors import as_message
from tfm.pipeline.runtime.progress import Bar, NullReporter

LOGGER = logging.getLogger("tfm")


class LoggingReporter:
    """A reporter whose warnings and lines go to the logger `tfm`; Python shows its warnings where nothing is set up."""

    def line(self, text: str) -> None:
        LOGGER.info("%s", as_message(text))

    def warn(self, text: str) -> None:
        LOGGER.warning("%s", as_message(text))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        LOGGER.info("%s: %s", as_message(title), [dict(zip(columns, row, strict=True)) for row in rows])

    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> AbstractContextManager[Bar]:
        return NullReporter().bar(label, total, unit, done)
