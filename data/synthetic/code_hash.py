"""A hash of code that depends on what it does and hardly on its names: renaming a function makes no other corpus.

Imports, docstrings, comments and the order of files do not count. A name that the code defines (of a function, class,
variable, parameter, attribute) or imports from this project counts as the position of its first use; other names and
all values count unchanged.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator

IGNORED_FIELDS = {"ctx", "kind", "type_comment", "type_params"}
"""Fields of nodes without a meaning, or that only some versions of Python have."""


def hash_code(sources: Iterable[str]) -> str:
    """Return the sha256 of the code in some files, in hex.

    Args:
        sources: the contents of the files.
    """
    trees = [ast.parse(source) for source in sources]
    defined = {name for tree in trees for name in _defined_names(tree)}
    trees = [_remove_imports(tree) for tree in trees]
    trees.sort(key=lambda tree: [*_code_tokens(tree, dict.fromkeys(defined, "_"))])  # independently of names
    places: dict[str, str] = {}
    digest = hashlib.sha256()
    for tree in trees:
        for name in _names_in_order(tree):
            if name in defined:
                places.setdefault(name, f"_{len(places)}")
        digest.update("\n".join(_code_tokens(tree, places)).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _remove_imports(tree: ast.Module) -> ast.Module:
    """The same tree without imports and docstrings."""

    class ImportRemoval(ast.NodeTransformer):
        def visit_Import(self, node: ast.Import) -> None: ...

        def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

        def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
            is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            return None if is_text else self.generic_visit(node)

    ImportRemoval().visit(tree)
    return tree


def _defined_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code defines or imports from this project."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfm."):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _names_in_order(tree: ast.AST) -> Iterator[str]:
    """Yield all names of a tree, in the order of its tokens."""
    for field, value in _walk_fields(tree):
        if field in ("name", "arg", "id", "attr") and isinstance(value, str):
            yield value


def _code_tokens(tree: ast.AST, names: dict[str, str]) -> Iterator[str]:
    """Yield the kinds of nodes and the values of their fields, names replaced by `names`."""
    for field, value in _walk_fields(tree):
        is_name = field in ("name", "arg", "id", "attr")
        shown = names.get(str(value), value) if is_name else repr(value)
        yield f"{field}={shown}"


def _walk_fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Yield the kind of each node, then its fields in order, with the nodes inside them."""
    yield "node", type(node).__name__
    for field, value in ast.iter_fields(node):
        if field in IGNORED_FIELDS:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _walk_fields(each)
            elif each is not None:
                yield field, each
        yield "end", field
