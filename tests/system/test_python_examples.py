"""What docs/python.md and docs/notebook.ipynb show, run on the run that they speak of."""

import doctest
import json
import re
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tests.notebook import executed, texts

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


def test_the_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells run, and show what is kept of them but where they say that figures vary."""
    monkeypatch.chdir(folder)
    file = ROOT / "docs" / "notebook.ipynb"
    kept = json.loads(file.read_text("utf-8"))["cells"]
    assert file.stat().st_size < 100_000
    compared = 0
    for cell, again in zip(kept, executed(kept), strict=True):
        for one, other in zip(cell.get("outputs", []), again.get("outputs", []), strict=True):
            (kinds, text), (kinds_again, text_again) = texts(one), texts(other)
            assert kinds == kinds_again
            if "varies" not in cell["metadata"].get("tags", []):
                assert text == text_again
                compared += 1
    assert compared > 5


def test_the_lines_of_the_readme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (lines,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    compared = 0
    for line in filter(None, lines.splitlines()):
        code, _, says = line.partition("  #")
        if says.strip().startswith("["):
            assert repr(eval(code, names)) == says.strip()
            compared += 1
        else:
            exec(code, names)
    assert compared == 1
