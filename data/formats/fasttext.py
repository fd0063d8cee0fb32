"""Files of labelled texts: a line is LABEL and, after a space, the text; also as fastText has it, __label__LABEL.

So are dictionaries of pronunciations, whose label is the word: CMUdict has comments among them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tfm.data.errors import DataError, format_count
from tfm.data.lines import open_lines

LABEL_PREFIX = "__label__"
IS_LABEL_COLUMN = {"text": False, "label": True, "source": False, "target": True}

COMMENT_LINE_MARK = ";;;"
PRONUNCIATION_PATTERN = re.compile(r"(?=.*[A-Z][0-2])(\S+\s+[A-Z]{1,3}[0-2]?(?:[ \t]+[A-Z]{1,3}[0-2]?)*)([ \t]+#.*)?")
"""A word and its phones in ARPAbet, of which one has a stress, and behind them perhaps a comment."""
SOUND_PATTERN = re.compile(r"<[^<>\s]+>|\[[^][\s]+\]|\{[^{}\s]+\}|\([a-z]+\)|!SIL|!sil")
"""Words of a lexicon that stand for silence, noise and unknown words."""
VARIANT_PATTERN = re.compile(r"\S+\([0-9]+\)")


def read_labelled(
    path: Path, columns: Sequence[str], on_warning: Callable[[Path, str], None] | None = None
) -> Iterator[tuple[str, ...]]:
    """The text or label of each line that is not blank, as `columns` ask.

    Args:
        path: the file.
        columns: names, of IS_LABEL_COLUMN.
        on_warning: is told how many comments of a dictionary of pronunciations are left out, and how many of its words
            have the number of a variant, or stand for silence or noise.

    Raises:
        DataError: naming file and line; also of a line without a label in a file whose first one has fastText's, which
            may stand behind the text too.
    """
    is_prefixed: bool | None = None
    is_dictionary, has_words = True, columns[0] == "label"
    num_comments = num_variants = num_sounds = 0
    for number, line in enumerate(open_lines(path), 1):
        if is_dictionary and line.startswith(COMMENT_LINE_MARK):
            num_comments += 1
            continue
        if not line.strip():
            continue
        line = line.strip(" \t")
        if is_prefixed is None:
            is_dictionary = is_pronunciation(line)
        if is_dictionary and (match := PRONUNCIATION_PATTERN.fullmatch(line)) is not None:
            num_comments += match[2] is not None
            line = match[1]
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
        if is_dictionary or has_words:
            num_variants += VARIANT_PATTERN.fullmatch(label) is not None
            num_sounds += has_words and SOUND_PATTERN.fullmatch(label) is not None
        yield tuple((text, label)[IS_LABEL_COLUMN[column]] for column in columns)
    if on_warning is not None and num_comments:
        on_warning(path, f"{format_count(num_comments, 'comment')} (;;; or #) left out")
    if on_warning is not None and num_variants:
        have = format_count(num_variants, "word has", "words have")
        remedy = r"cut it by sed -E 's/^([^ ]+)\([0-9]+\)/\1/' FILE"
        on_warning(path, f"{have} the number of a variant, as in a(2), which is read as part of the word: {remedy}")
    if on_warning is not None and num_sounds:
        stand = format_count(num_sounds, "word stands", "words stand")
        remedy = r"leave these lines out, as by grep -vE '^([<[{(][^ ]+[]>})]|!SIL|!sil)[[:space:]]' FILE"
        on_warning(path, f"{stand} for silence or noise, as <SIL> does, and would be learned: {remedy}")


def is_pronunciation(line: str) -> bool:
    """Whether a line is that of a dictionary of pronunciations: a word and its phones in ARPAbet, or a comment."""
    return line.startswith(COMMENT_LINE_MARK) or PRONUNCIATION_PATTERN.fullmatch(line.strip()) is not None


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


def _several_labels_error(label: str, second_label: str, path: Path, number: int) -> DataError:
    names = f"{label:.40}, {second_label.removeprefix(LABEL_PREFIX):.40}"
    return DataError(f"has more than one label ({names})", file=path, line=number)


def _split_last(line: str) -> tuple[str, str]:
    """A line without its last word, and that."""
    *head, last = re.split(r"[ \t]+(?=[^ \t]*$)", line, maxsplit=1)
    return "".join(head), last


def _split_label(line: str) -> tuple[str, str]:
    """The first word of a line, and the rest."""
    first, *rest = re.split(r"[ \t]+", line, maxsplit=1)
    return first, "".join(rest)
