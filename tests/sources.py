"""The modules of the program as syntax trees, parsed once for all tests that judge its source."""

import ast
import gc
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("cli", "data", "model", "pipeline", "tokenizer")


@cache
def parse_modules() -> Mapping[str, ast.Module]:
    """The tree of each module by its path from the top, in order."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    gc.disable()  # to look for garbage among the nodes takes most of the time, here and in all tests after this one
    try:
        trees = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text("utf-8")) for file in files}
        gc.freeze()
    finally:
        gc.enable()
    return trees
