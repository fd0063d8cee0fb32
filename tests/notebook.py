"""A notebook executed without Jupyter: its code cells one after the other, and what each would show.

As a program, in the folder of docs/python.md's run, it writes what the cells show into the notebook:

    python -m tests.notebook docs/notebook.ipynb
"""

import ast
import io
import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def executed(cells: list[Cell]) -> list[Cell]:
    """The cells with the outputs that they have when they are run in order."""
    names: dict[str, Any] = {}
    found, count = [], 0
    for cell in cells:
        if cell["cell_type"] == "code":
            count += 1
            outputs = _outputs("".join(cell["source"]), names, count)
            cell = {**cell, "execution_count": count, "outputs": outputs}
        found.append(cell)
    return found


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What is printed, and what the last line, if it is an expression, gives."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "notebook", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        found.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return found


def texts(output: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The kinds of an output, and its plain text."""
    data = output.get("data", {"text/plain": output.get("text")})
    return sorted(data), data["text/plain"]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    notebook = json.loads(file.read_text("utf-8"))
    notebook["cells"] = executed(notebook["cells"])
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
