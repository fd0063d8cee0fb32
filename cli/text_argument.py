"""An argument that is the name of a file, `-`, or a text."""

import os
import re
import shlex
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

STDIN = Path("-")
FILE_NAME_PATTERN = r"[\w.~+-]*[\w~+-]|.*[/\\].*|.*\.[A-Za-z]\w{0,4}"
"""Pattern of probable file names; a text has spaces, or characters or punctuation that file names seldom have."""


def parse_file_or_text(argument: str) -> Path:
    """The argument as typer is to pass it on. Raises typer's usage error for an empty one, or a URL."""
    if not argument:
        raise typer.BadParameter("is empty: give a file, a text, or - for stdin")
    if re.fullmatch(r"https?://\S+", argument):
        raise typer.BadParameter("is a URL: download its file, and give that")
    return Path(argument)


def resolve_text_argument(argument: Path | None, model: Path, stack: ExitStack) -> Path:
    """Return the file to translate; for a text, a temporary file with it.

    Args:
        argument: the name of a file, a text, `-`, or None for standard input.
        model: the model, for the message.
        stack: keeps the temporary file while it is open.

    Raises:
        DataError: the argument looks like the name of a file that does not exist, or the file is no text a line.
    """
    if argument is None or argument == STDIN:
        return STDIN
    if os.path.lexists(argument):
        from tfm.cli.console import make_reporter
        from tfm.pipeline.text_files import check_text_file

        check_text_file(argument, make_reporter())
        return argument
    words = str(argument)
    if re.fullmatch(FILE_NAME_PATTERN, words, re.ASCII | re.DOTALL):
        from tfm.pipeline.errors import DataError

        command = shlex.join(["tfm", "translate", str(model)])
        raise DataError(f"no such file; to translate a text: echo TEXT | {command}", file=argument)
    text = Path(stack.enter_context(TemporaryDirectory())) / "text"
    text.write_text(words + "\n", encoding="utf-8", newline="\n")
    return text
