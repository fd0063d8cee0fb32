"""Docstrings say what a thing is or does: no sentence begins with a word that needs the rest of it to be understood,
and names in them are names of the code.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.sources import PACKAGES, ROOT, parse_modules

UNCLEAR = ("Of", "What", "Where", "Within", "Those", "Whoever")
NAME = r"[A-Za-z_]\w*(?:\.\w+)*"
MARKED_NAME = rf"`({NAME})(?:\(\))?`"
CONSTANT = r"(?<![\w`<{.-])[A-Z]{3,}(?:_[A-Z]{2,})+(?!\w)"
OTHER_PROGRAMS = {
    *("approved", "classification_report", "corpus.tc", "creationid", "de_DE", "do_spin", "index.sense", "lexnames"),
    *(
        "letters_only",
        "lzma.LZMAFile",
        "nohup",
        "remove_duplicates",
        "sacrebleu.sentence_bleu",
        "Tokenizer.to_json",
        "__de__",
    ),
}
"""Names in docstrings that are other programs' or formats'."""
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
        f"{path}:{line}: {match[0].strip()}"
        for path, tree in parse_modules().items()
        if path.startswith(f"{package}/")
        for line, text in docstrings(tree)
        if (match := unclear.search(text)) is not None
    ]
    assert found == []


def code_words(source: str, tree: ast.Module) -> Iterator[str]:
    """The words of a module without its docstrings."""
    lines = source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    yield from re.findall(r"\w+", "\n".join(lines))


def test_names_in_docstrings_are_names_of_the_code() -> None:
    known, named = set[str](), list[tuple[str, str]]()
    for path, tree in parse_modules().items():
        file = PurePosixPath(path)
        known |= {*file.with_suffix("").parts, file.name, *code_words((ROOT / path).read_text("utf-8"), tree)}
        for line, text in docstrings(tree):
            names = re.findall(MARKED_NAME, text) + re.findall(CONSTANT, text)
            named += [(f"{path}:{line}", name) for name in names if name not in OTHER_PROGRAMS]
    assert [(where, name) for where, name in named if not known.issuperset(name.split("."))] == []


def test_exceptions_in_docstrings_are_classes_of_the_code_or_of_python() -> None:
    known, named = {*dir(builtins)}, list[tuple[str, str]]()
    for path, tree in parse_modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(name=name) | ast.Attribute(attr=name):  # typer.BadParameter
                    known.add(name)
                case ast.alias():
                    known.add(node.asname or node.name)
        for line, text in docstrings(tree):
            section = text.partition("Raises:\n")[2].partition("\n\n")[0]
            names = re.findall(r"^ +([A-Z]\w+):", section, re.MULTILINE) + re.findall(r"\b[Rr]aises? ([A-Z]\w+)", text)
            named += [(f"{path}:{line}", name) for name in names]
    assert len(named) > 100
    assert [(where, name) for where, name in named if name not in known] == []
