"""The table of flags in docs/decoding/README.md says what the commands take."""

import re

import pytest
from typer.main import get_command

from tests.cli.user import ROOT
from tfm.cli.app import app

COMMANDS = ("translate", "evaluate", "generate")


def flags_of(command: str) -> set[str]:
    found = get_command(app).commands[command]  # type: ignore[attr-defined]
    return {flag for parameter in found.params for flag in (*parameter.opts, *parameter.secondary_opts)}


def rows() -> list[tuple[list[str], list[str]]]:
    """The flags of each row, and what it says of each command."""
    text = (ROOT / "docs" / "decoding" / "README.md").read_text("utf-8")
    (table,) = re.findall(r"^\| \| `tfm translate` \| .*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [(re.findall(r"--[a-z-]+", first), said) for first, *said in lines]


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=COMMANDS)
def test_the_table_of_flags_is_right(number: int) -> None:
    flags = flags_of(COMMANDS[number])
    assert len(rows()) == 8
    for named, said in rows():
        for flag in named:
            if flag != "--seed" or COMMANDS[number] != "evaluate":  # whose seed is that of the bootstrap
                assert (flag in flags) == (said[number] == "yes"), (flag, said[number])
        assert {*re.findall(r"--[a-z-]+", said[number])} <= flags


def test_every_flag_of_decoding_is_in_the_table() -> None:
    ours = {*(flag for named, _ in rows() for flag in named)}
    others = {"--recipe", "--step", "--jsonl", "--device", "--cluster", "--set", "--out"}
    assert flags_of("translate") - others - {"model", "file", "more"} == ours


def test_a_command_that_advises_a_recipe_takes_one() -> None:
    """`require_flag` says "give it, or --recipe"."""
    files = [file for file in (ROOT / "cli").rglob("*.py") if "require_flag(" in file.read_text("utf-8")]
    assert len(files) > 6
    for file in files:
        assert re.search(r"\brecipe: RecipeFile|options\.recipe|def require_flag", file.read_text("utf-8")), file
