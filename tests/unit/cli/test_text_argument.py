"""An argument that is a file or a text."""

import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest

from tfm.cli.text_argument import resolve_text_argument
from tfm.pipeline.errors import DataError


def test_the_command_advised_can_be_copied_whatever_the_folder_is_called(tmp_path: Path) -> None:
    model = tmp_path / "my runs" / "größer's"
    with ExitStack() as stack, pytest.raises(DataError) as caught:
        resolve_text_argument(tmp_path / "texts.txt", model, stack)
    command = str(caught.value).partition("echo TEXT | ")[2]
    assert shlex.split(command) == ["tfm", "translate", str(model)]
