"""What docs/python.md shows, run on the run that it speaks of."""

import doctest
from pathlib import Path

import pytest

from tests.cli.user import tfm

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run of the examples, as docs/python.md makes it."""
    command = "tfm run recipes/demo.toml --set training.max_steps=600"
    assert f"    {command}\n" in (ROOT / "docs" / "python.md").read_text("utf-8")
    found = tmp_path_factory.mktemp("examples")
    (found / "recipes").symlink_to(ROOT / "recipes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found)
        done = tfm(*command.split()[1:], "--device", "cpu")
    assert done.code == 0, done.err
    return found


def test_the_examples_of_the_manual(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    found = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, encoding="utf-8")
    assert (found.failed, found.attempted > 20) == (0, True)
