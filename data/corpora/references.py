"""Several references for a segment: pairs with the same source merged, and the files that store them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from tfm.data.errors import DataError, format_count
from tfm.data.lines import normalize_whitespace, open_lines

Row: TypeAlias = tuple[str, ...]  # source, target and any further references


def group_references(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of one source as one, in the order in which the sources come first; references that are there once.

    Sources that differ only in white space or Unicode's normal form are one. Holds all rows in memory.
    """
    groups: dict[str, tuple[str, dict[str, str]]] = {}
    for source, *targets in rows:
        _, references = groups.setdefault(normalize_whitespace(source), (source, {}))
        for target in targets:
            references.setdefault(normalize_whitespace(target), target)
    return ((source, *references.values()) for source, references in groups.values())


def write_further_references(folder: Path, rows: Sequence[Row]) -> None:
    """Write the references of each row after the first into reference.2.txt, ...; an empty line for a missing one."""
    for number in range(2, 2 + max(map(len, rows), default=0)):
        lines = (row[number - 2] if number - 2 < len(row) else "" for row in rows)
        text = "".join(line.replace("\r", " ") + "\n" for line in lines)
        (folder / f"reference.{number}.txt").write_text(text, encoding="utf-8", newline="\n")


def read_further_references(folder: Path, num_rows: int) -> list[list[str]]:
    """The lines of each further reference, as `write_further_references` wrote. Raises DataError on a wrong number."""
    columns: list[list[str]] = []
    while (file := folder / f"reference.{len(columns) + 2}.txt").exists():
        columns.append(list(open_lines(file)))
        if len(columns[-1]) != num_rows:
            has = f"has {format_count(len(columns[-1]), 'line')} for {format_count(num_rows, 'segment')}"
            raise DataError(f"{has}: make the dataset again", file=file)
    return columns
