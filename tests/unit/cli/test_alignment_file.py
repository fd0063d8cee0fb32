"""The file of `tfm translate --alignments`: it is whole or as it was, and errors name what they are of."""

import errno
from pathlib import Path

import pytest

from tests.tiny_model import tiny_model
from tfm.cli.alignment_file import open_alignment_file
from tfm.pipeline.inference.translation_records import Translation


def test_a_file_is_written_when_all_is_aligned(tmp_path: Path) -> None:
    file = tmp_path / "links"
    file.write_text("old\n")
    with open_alignment_file(file, tiny_model) as align:
        assert align is not None
        for count in (2, 600):
            align("a dog", [Translation("the sea", -1.0, -1.0, 3)] * count)
        assert file.read_text() == "old\n"
    lines = file.read_text().splitlines()
    assert len(lines) == 602
    assert {*lines} == {lines[0]}
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["stdout is full", "Ctrl-C"])
def test_other_work_that_fails_leaves_the_old_file_and_is_not_named_after_it(
    tmp_path: Path, stop: BaseException
) -> None:
    file = tmp_path / "links"
    file.write_text("old\n")
    with pytest.raises(type(stop)) as caught, open_alignment_file(file, tiny_model):
        raise stop
    assert getattr(caught.value, "filename", None) is None
    assert file.read_text() == "old\n"
    assert [*tmp_path.iterdir()] == [file]
