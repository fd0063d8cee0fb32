"""Files of labelled texts: a line is LABEL and, after a space, the text; also as fastText has it, __label__LABEL."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.lines import open_lines

LABEL_PREFIX = "__label__"
IS_LABEL_COLUMN = {"text": False, "label": True, "source": False, "target": True}


def read_labelled(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The text or label of each line that is not blank, as `columns` ask. Raises DataError naming file and line."""
    for number, line in enumerate(open_lines(path), 1):
        if not line.strip():
            continue
        label, text = _split_label(line.strip(" \t"))
        if label.startswith(LABEL_PREFIX):
            label = label.removeprefix(LABEL_PREFIX)
            if text.startswith(LABEL_PREFIX):
                problem = (
                    f"has more than one label ({label:.40}, {_split_label(text)[0].removeprefix(LABEL_PREFIX):.40})"
                )
                raise DataError(problem, file=path, line=number)
        if not label:
            raise DataError(f"its label is empty: {LABEL_PREFIX} must be followed by a name", file=path, line=number)
        yield tuple((text, label)[IS_LABEL_COLUMN[column]] for column in columns)


def _split_label(line: str) -> tuple[str, str]:
    """The first word of a line, and the rest."""
    first, *rest = re.split(r"[ \t]+", line, maxsplit=1)
    return first, "".join(rest)
