"""Pages of the reference: every command, generated from the same help that `--help` prints."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from tfm.cli.app import app

FOLDER = "reference/commands"


def command_pages() -> dict[str, str]:
    """The pages by path in the site: one a command, and one that lists them."""
    top: Any = typer.main.get_command(app)
    commands = dict(_commands(top))
    lines = [
        "# Commands\n",
        f"{top.help}\n",
        "Data goes to stdout, everything else to stderr. Exit codes: 0 done, 2 usage, 65 bad data, 73 cannot write",
        "there, 74 I/O; 75 stopped, and the same command resumes; 130 stopped, and the same command begins again.",
        "`tfm --debug` before a command shows the traceback of an error.\n",
        "| command | |",
        "|---|---|",
        *(f"| [`tfm {name}`]({_file(name)}) | {_summary(command)} |" for name, command in commands.items()),
    ]
    pages = {f"{FOLDER}/index.md": "\n".join(lines) + "\n"}
    return pages | {f"{FOLDER}/{_file(name)}": _command_page(name, command) for name, command in commands.items()}


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Names and commands; those of a group within by both names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} ")
        else:
            yield f"{before}{name}", command


def _file(name: str) -> str:
    return f"{name.replace(' ', '-')}.md"


def _summary(command: Any) -> str:
    return _escape((command.help or "").partition("\n\n")[0])


def _command_page(name: str, command: Any) -> str:
    context = command.make_context(f"tfm {name}", [], resilient_parsing=True)
    usage = f"tfm {name} {' '.join(command.collect_usage_pieces(context))}"
    lines = [f"# `tfm {name}`\n", f"{_escape(command.help or '')}\n", f"```text\n{usage}\n```\n"]
    for kind, title in (("argument", "Arguments"), ("option", "Options")):
        records = [each.get_help_record(context) for each in command.params if each.param_type_name == kind]
        rows = [f"| `{_cell(record[0])}` | {_cell(_escape(record[1]))} |" for record in records if record is not None]
        if rows:
            lines += [f"## {title}\n", f"| {title.removesuffix('s').lower()} | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def _escape(text: str) -> str:
    """Help as Markdown: what could be mistaken for markup is escaped, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)
