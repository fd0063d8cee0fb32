"""Files of labelled texts: a line is LABEL and, after a space, the text; also as fastText has it, __label__LABEL."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfm.data.errors import DataError
from tfm.data.lines import open_lines

LABEL_PREFIX = "__label__"
IS_LABEL_COLUMN = {"text": False, "label": True, "source": False, "target": True}


def read_labelled(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The text or label of each line that is not blank, as `columns` ask.

    Raises:
        DataError: naming file and line; also of a line without a label in a file whose first one has fastText's, which
            may stand behind the text too.
    """
    is_prefixed: bool | None = None
    for number, line in enumerate(open_lines(path), 1):
        if not line.strip():
            continue
        line = line.strip(" \t")
        if is_prefixed is None:
            is_prefixed = line.startswith(LABEL_PREFIX) or _split_last(line)[1].startswith(LABEL_PREFIX)
        label, text = _split_label(line)
        if is_prefixed:
            label, text = _prefixed_label(line, path, number)
        if label.startswith(LABEL_PREFIX):
            label = label.removeprefix(LABEL_PREFIX)
            if text.startswith(LABEL_PREFIX):
                raise _several_labels_error(label, _split_label(text)[0], path, number)
        if not label:
            raise DataError(f"its label is empty: {LABEL_PREFIX} must be followed by a name", file=path, line=number)
        yield tuple((text, label)[IS_LABEL_COLUMN[column]] for column in columns)


def _prefixed_label(line: str, path: Path, number: int) -> tuple[str, str]:
    """The label of a line of fastText's, with its prefix, and the text before or behind it."""
    first, rest = _split_label(line)
    text, last = _split_last(line)
    if last.startswith(LABEL_PREFIX) and text:
        if first.startswith(LABEL_PREFIX):
            raise _several_labels_error(first.removeprefix(LABEL_PREFIX), last, path, number)
        if _split_last(text)[1].startswith(LABEL_PREFIX):
            raise _several_labels_error(_split_last(text)[1].removeprefix(LABEL_PREFIX), last, path, number)
        return last, text
    if not first.startswith(LABEL_PREFIX):
        problem = f"has no label: those of the lines before begin with {LABEL_PREFIX}, before or behind the text"
        raise DataError(problem, file=path, line=number)
    return first, rest


def _several_labels_error(label: str, other: str, path: Path, number: int) -> DataError:
    names = f"{label:.40}, {other.removeprefix(LABEL_PREFIX):.40}"
    return DataError(f"has more than one label ({names})", file=path, line=number)


def _split_last(line: str) -> tuple[str, str]:
    """A line without its last word, and that."""
    *before, last = re.split(r"[ \t]+(?=[^ \t]*$)", line, maxsplit=1)
    return "".join(before), last


def _split_label(line: str) -> tuple[str, str]:
    """The first word of a line, and the rest."""
    first, *rest = re.split(r"[ \t]+", line, maxsplit=1)
    return first, "".join(rest)
