"""docs/start.md: its commands run in the order in which they stand there, on a smaller model and fewer lines."""

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import ROOT, TINY, tfm, write_corpora

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "start.md"
SMALLER = {
    "60000": "300",
    "1000": "20",
    "vocab_size = 2000": "vocab_size = 200",
    "vocab_size = 8000": "vocab_size = 40",
    "layers = 2": "layers = 1",
    "dim = 128": "dim = 16",
    "dim = 512": "dim = 16",
    "max_epochs = 5": "max_epochs = 1",
    "max_epochs = 10": "max_epochs = 1",
    "warmup_steps = 200": "warmup_steps = 5",
}
SMALLER_WORDS = {"10000": "40", "5000": "20"}


def typed() -> Iterator[tuple[str | None, list[str]]]:
    """The commands of the blocks of the page, with the text that is piped into each."""
    text = PAGE.read_text("utf-8").replace("\\\n", " ")
    for line in re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE):
        piped = re.fullmatch(r"echo '(.*)' \| (.*)", line)
        yield (f"{piped[1]}\n" if piped else None), shlex.split(piped[2] if piped else line)


def smaller(text: str) -> str:
    for large, small in SMALLER.items():
        text = text.replace(large, small)
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a smaller recipe, the reader's files, and the recipe that the page has them write."""
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path)
    (tmp_path / "folder").mkdir()
    for file in tmp_path.glob("*.??"):
        shutil.copy(file, tmp_path / "folder")
    (tmp_path / "recipes").mkdir()
    demo = (ROOT / "recipes" / "demo.toml").read_text("utf-8")
    (tmp_path / "recipes" / "demo.toml").write_text(smaller(demo), "utf-8")
    (mine,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "mine.toml").write_text(smaller(mine), "utf-8")
    return tmp_path


def test_the_commands_of_the_page_run(folder: Path) -> None:
    names = []
    for stdin, (program, *words) in typed():
        if program == "make":
            assert words == ["demo"]
            program, words = "tfm", ["run", "recipes/demo.toml"]
        assert program == "tfm"
        words = [SMALLER_WORDS.get(word, word) for word in words]
        done = tfm(*words, *(TINY if words[:2] == ["train", "--data"] else ()), stdin=stdin)
        assert done.code == 0, f"{' '.join(words)}\n{done.err}"
        names.append(words[0])
        if words == ["run", "recipes/demo.toml"] and names.count("run") == 2:
            assert done.err.count("nothing to do") >= 5
        if words[0] == "compare":
            assert re.search(r"rotary +model\.positions +rotary +sinusoidal", done.out)
    assert names.count("run") == 4
    assert {"inspect", "translate", "attend", "compare", "plan", "evaluate", "tokenize", "preprocess"} <= {*names}
    assert (folder / "attention.html").is_file()
