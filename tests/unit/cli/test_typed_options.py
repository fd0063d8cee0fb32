from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

from tfm.cli.options import Device
from tfm.cli.typed_options import values_by_flag, with_options


@dataclass(frozen=True)
class Options:
    file: Annotated[Path, typer.Argument(metavar="[FILE]...")]
    count: Annotated[int | None, typer.Option("--count", "-c", help="So many.")] = None
    loud: Annotated[bool, typer.Option("--loud/--quiet")] = False
    device: Device = None


def show(options: Options) -> None:
    """Show a file."""
    print(options)


def test_typer_sees_a_parameter_for_each_field() -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(with_options(show))
    done = CliRunner().invoke(app, ["a.txt", "-c", "3", "--loud"])
    assert done.output == f"{Options(Path('a.txt'), 3, True)}\n"
    assert CliRunner().invoke(app, []).exit_code == 2, "a field without a default is required"
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Show a file." in text
    assert "So many." in text


def test_values_are_named_as_the_user_names_them() -> None:
    options = Options(Path("a"), 3, True, "cpu")
    assert values_by_flag(options, "device", "loud", "file", "count") == {
        "--device": "cpu",
        "--loud": True,
        "FILE": Path("a"),
        "--count": 3,
    }
