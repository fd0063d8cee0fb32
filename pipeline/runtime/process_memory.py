"""Memory of a process and of those that it has started, as Linux counts it."""

import ctypes
import re
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

PSS_PATTERN = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)
SECONDS_BETWEEN_LOOKS = 1.0


class TreeMemoryWatch(threading.Thread):
    """The most memory that a process and those that it has started had at once, looked at every second.

    Args:
        process_id: of the first of them.
    """

    def __init__(self, process_id: int) -> None:
        super().__init__(daemon=True)
        self.process_id, self.peak = process_id, 0
        self._is_over = threading.Event()

    def run(self) -> None:
        """Look until `stop` is called."""
        while not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            self.peak = max(self.peak, tree_memory(self.process_id))

    def stop(self) -> int:
        """Look no more, and return the most that was seen, in bytes."""
        self._is_over.set()
        self.join()
        return self.peak


def tree_memory(process_id: int) -> int:
    """Return the bytes of a process and its descendants, where pages that several share count once in all.

    It is 0 if the system does not tell (/proc/N/smaps_rollup of Linux), or the process has ended.
    """
    children_by_parent = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        if (parent := _parent_of(status)) is not None:
            children_by_parent[parent].append(int(status.parent.name))
    total, unvisited_ids = 0, [process_id]
    while unvisited_ids:
        current = unvisited_ids.pop()
        unvisited_ids += children_by_parent[current]
        total += _proportional_memory(current)
    return total


def trim_heap() -> None:
    """Give memory that was freed back to the system: glibc keeps what lies between blocks that are in use."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _parent_of(status: Path) -> int | None:
    """The parent of a process; None if it has ended."""
    try:
        return int(status.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


def _proportional_memory(process_id: int) -> int:
    """The bytes of a process, each page divided by the number of processes that have it (PSS)."""
    try:
        sizes = PSS_PATTERN.findall(Path(f"/proc/{process_id}/smaps_rollup").read_text(encoding="ascii"))
    except OSError:
        return 0
    return sum(map(int, sizes)) * 1024
