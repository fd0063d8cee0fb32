"""Docstrings say what a thing is or does: no sentence begins with a word that needs the rest of it to be understood."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("cli", "data", "model", "pipeline", "tokenizer")
UNCLEAR = ("Of", "What", "Where", "Within", "Those", "Whoever")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of the docstrings of a module: its own, those of functions and classes, and of names."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)) is not None:
            yield getattr(node, "lineno", 1), text
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, each in zip(node.body, node.body[1:], strict=False):
                is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
                if is_text and isinstance(before, ast.Assign | ast.AnnAssign):
                    yield each.lineno, str(each.value.value)  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_sentence_of_a_docstring_begins_with_a_clause(package: str) -> None:
    unclear = re.compile(rf"(?:^|[.!?]\s+|\n\n\s*)({'|'.join(UNCLEAR)})\b")
    found = [
        f"{file.relative_to(ROOT)}:{line}: {match[0].strip()}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for line, text in docstrings(ast.parse(file.read_text("utf-8")))
        if (match := unclear.search(text)) is not None
    ]
    assert found == []
