"""The commands of docs/tutorials/, typed one after the other on the recipes of each page, with smaller models."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.user import ROOT, tfm, write_corpora

TUTORIALS = ROOT / "docs" / "tutorials"
RUN = {"own-data.md": 10, "script.md": 8, "finetuning.md": 5}
"""How many commands are run of each page."""
NOT_RUN = "Not run by a test"
COMMAND = re.compile(r"^ {4}(tfm .*)$", re.MULTILINE)
SMALLER = (
    (r"layers = \d+", "layers = 1"),
    (r"dim = 128", "dim = 16"),
    (r"heads = 4", "heads = 2"),
    (r"feed_forward_dim = \d+", "feed_forward_dim = 16"),
    (r"max_epochs = \d+", "max_epochs = 1"),
    (r"max_steps = ?\d+", "max_steps = 4"),
    (r"every_steps = \d+", "every_steps = 2"),
    (r"size = \d{3,}", "size = 60"),
    (r"vocab_size = \d+", "vocab_size = 400"),
)


def smaller(recipe: str) -> str:
    """A recipe whose training takes seconds."""
    for pattern, replacement in SMALLER:
        recipe = re.sub(rf"(?<![\w])(?:{pattern})", replacement, recipe, flags=re.MULTILINE)
    return recipe


def commands_of(page: Path) -> list[str]:
    """The commands of a page that are run, each on one line; none where its introduction says so."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    if NOT_RUN in text.partition("\n## ")[0]:
        return []
    blocks = text.split("\n\n")
    pairs = zip(["", *blocks], blocks, strict=False)
    return [found for before, block in pairs if NOT_RUN not in before for found in COMMAND.findall(block)]


def write_files(page: Path, here: Path) -> None:
    """The recipes that the page shows or names, and a corpus."""
    for text in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        named = re.match(r"# (\S+\.toml)\n", text)
        if named:
            (here / named[1]).write_text(smaller(text), "utf-8")
    (here / "recipes").mkdir()
    for name in ("demo.toml", "finetune.toml"):
        (here / "recipes" / name).write_text(smaller((ROOT / "recipes" / name).read_text("utf-8")), "utf-8")
    (here / "corpus").mkdir()
    write_corpora(here / "corpus")


@pytest.mark.parametrize("name", sorted(path.name for path in TUTORIALS.glob("[a-z]*.md")))
def test_commands_of_a_tutorial_are_run_but_where_it_says_that_they_are_not(name: str) -> None:
    assert len(commands_of(TUTORIALS / name)) == RUN.get(name, 0)
    assert f"({name})" in (TUTORIALS / "README.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_the_commands_of_a_tutorial_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(TUTORIALS / name, tmp_path)
    for command in commands_of(TUTORIALS / name):
        words = shlex.split(command.replace("max_steps=600", "max_steps=4"))
        done = tfm(*words[1:])
        assert done.code == 0, f"{command}\n{done.err}"
