"""Text files that a person names: one of another form is refused or warned of before its tags are read as words."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tfm.data.corpora.markup.problems import (
    MAX_LINES_READ,
    PROBLEMS_OF_PAIRS,
    check_lines,
    markup_problem,
    tag_columns_problem,
)
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.text_remarks import table_remark
from tfm.data.lines import open_lines
from tfm.pipeline.runtime.progress import Reporter

REFUSED_FORMS = (markup_problem, tag_columns_problem)


def check_text_file(file: Path, reporter: Reporter, *, displayed_name: str | None = None) -> None:
    """Refuse a file of tags or times, or of words and their tags in columns, which would be words; warn of one that
    seems to be a table, JSON, a catalog or another form of which a text may be.

    A pipe can be read once, and is not looked at.

    Args:
        file: the file.
        reporter: receives the warning.
        displayed_name: of the file, for messages.

    Raises:
        DataError: the file is of a form that is no text a line.
    """
    if file.is_file():
        name = Path(displayed_name or file)
        warn_of_form(check_lines(open_lines(file), name, REFUSED_FORMS), name, reporter)


def warn_of_form(lines: Sequence[str], file: Path | str, reporter: Reporter) -> None:
    """Warn if lines, the first of a file, seem to be no texts."""
    if (remark := form_remark(lines)) is not None:
        reporter.warn(f"{file}: {remark}")


def form_remark(lines: Sequence[str]) -> str | None:
    """The form that lines, the first of a file, seem to have, and what makes texts of them; None if they seem texts."""
    return next(filter(None, (find(lines) for find in (markup_problem, *PROBLEMS_OF_PAIRS, table_remark))), None)


@contextmanager
def show_remarks(show: Callable[[str], None], shown: Collection[str] = ()) -> Iterator[None]:
    """Show what readers remark while the body runs, at its end; also before its error, of which it may be the cause.

    Args:
        show: (remark), shows one.
        shown: those that were shown before.
    """
    with collect_remarks() as remarks:
        try:
            yield
        finally:
            for remark in remarks:
                if remark not in shown:
                    show(remark)


def warn_of_remarks(rows: Callable[[], Iterable[object]], reporter: Reporter) -> frozenset[str]:
    """Read the first row of a corpus, warn of what its reader remarks, and return that.

    Args:
        rows: opens the corpus.
        reporter: receives the warnings.
    """
    with collect_remarks() as remarks:
        next(iter(rows()), None)
    for remark in remarks:
        reporter.warn(remark)
    return frozenset(remarks)


def watch_lines(lines: Iterable[str], name: str, reporter: Reporter) -> Iterator[str]:
    """The lines of a stream as they come; the first of them are looked at when they have passed.

    Args:
        lines: of the stream.
        name: of the stream, for messages.
        reporter: receives the warning.
    """
    head: list[str] = []
    for line in lines:
        if len(head) < MAX_LINES_READ:
            head.append(line)
            if len(head) == MAX_LINES_READ:
                warn_of_form(head, name, reporter)
        yield line
    if len(head) < MAX_LINES_READ:
        warn_of_form(head, name, reporter)
