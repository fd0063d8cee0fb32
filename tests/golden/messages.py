"""Every message, help text, description and table head of the program, by module: read from the source, not by running.

python -m tests.golden.messages      writes tests/golden/messages.txt anew, so that a change of words is seen
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.sources import parse_modules

FILE = Path(__file__).with_name("messages.txt")
ERRORS = ("Error", "WriteError", "Stopped", "Failed", "BadParameter")
REPORTS = {"warn", "line", "table", "bar", "reject_flags", "refuse", "warning", "Warning"}
OPTIONS = {"Option", "Argument", "Field", "Typer"}
WORDS = {"help", "description"}


def messages() -> list[str]:
    """A line for each text that a user may read: the module, and the text with `{…}` for what is filled in."""
    return sorted({f"{module}: {text}" for module, tree in parse_modules().items() for text in texts_of(tree)})


def texts_of(tree: ast.Module) -> Iterator[str]:
    """The texts of one module: of errors, reports, options, and of functions that return a problem or reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.endswith(ERRORS) or name in REPORTS:
                yield from (
                    text for part in (*node.args, *(key.value for key in node.keywords)) for text in shown(part)
                )
            elif name in OPTIONS:
                yield from (text for key in node.keywords if key.arg in WORDS for text in shown(key.value))
        elif isinstance(node, ast.FunctionDef) and node.name.endswith(("_problem", "_reason")):
            returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value]
            yield from (text for value in returned for text in shown(value))


def shown(value: ast.expr) -> Iterator[str]:
    """Texts in an expression, if they have words; what is formatted into them is `{…}`."""
    if isinstance(value, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else filled_in(part) for part in value.values)
        yield from [" ".join(text.split())] if any(map(str.isalpha, text.replace("{…}", ""))) else []
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield from [" ".join(value.value.split())] if " " in value.value.strip() else []
    elif isinstance(value, ast.BinOp | ast.IfExp | ast.BoolOp | ast.List | ast.Tuple | ast.Starred):
        for part in ast.iter_child_nodes(value):
            if isinstance(part, ast.expr):
                yield from shown(part)


def filled_in(part: ast.expr) -> str:
    """The stand-in of a formatted value: `{…}`, and the words of what `format_count` and `format_share` count."""
    match part:
        case ast.FormattedValue(
            value=ast.Call(func=ast.Name(id="format_count"), args=[_, ast.Constant(value=word), *_])
        ):
            return f"{{…}} {word}(s)"
        case ast.FormattedValue(
            value=ast.Call(
                func=ast.Name(id="format_share"), args=[_, _, ast.Constant(value=word), ast.Constant(value=has), _]
            )
        ):
            return f"{{…}} of {{…}} {word}(s) {has}"
    return "{…}"


if __name__ == "__main__":
    FILE.write_text("".join(line + "\n" for line in messages()), "utf-8")
