"""Remarks of readers on files, which are no errors but should be known: a delimiter that was recognised, lines that
were skipped.

Readers are generators far below the stages; a stage collects what they remark while it reads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_collected_remarks: ContextVar[dict[str, None] | None] = ContextVar("_collected_remarks", default=None)


def add_remark(file: Path | str, text: str) -> None:
    """Add a remark about a file to those that are collected; one that was made before is not made again."""
    if (remarks := _collected_remarks.get()) is not None:
        remarks[f"{file}: {text}"] = None


@contextmanager
def collect_remarks() -> Iterator[dict[str, None]]:
    """Collect what readers remark within this context, in order and each remark once."""
    remarks: dict[str, None] = {}
    token = _collected_remarks.set(remarks)
    try:
        yield remarks
    finally:
        _collected_remarks.reset(token)
