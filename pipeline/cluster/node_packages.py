"""Compares the packages of a node with those of the driver, since other versions may compute other bytes."""

import hashlib
import platform
import re
import socket
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ParamSpec, TypeVar

from tfm.pipeline.distribution import DISTRIBUTION_NAME, install_command
from tfm.pipeline.errors import RecipeError

COMPARED_PACKAGES = (
    *(DISTRIBUTION_NAME, "torch", "tokenizers", "numpy", "numba", "pyarrow"),
    *("regex", "rapidfuzz", "ftfy", "py3langid", "rensa"),
)
"""Packages that shape the results of nodes."""
CODE_LABEL = "the source of tfm"
CODE_DIGITS = 12
IMPORT_FAILURE_PATTERN = re.compile(r"failed to import on the worker|No module named 'tfm\b")
"""The words of Ray where a node cannot load a function, or its arguments."""
IMPORT_ERROR_PATTERN = re.compile(r"^(?:ImportError|ModuleNotFoundError|AttributeError): .+", re.M)
NODE_PATTERN = re.compile(r"\bip=([^)\s,]+)")
"""The address of a node in an error of a task."""

P = ParamSpec("P")
R = TypeVar("R")


@cache
def installed_packages() -> dict[str, str]:
    """Versions of Python and of COMPARED_PACKAGES, and a hash of the source files of tfm: an editable installation
    keeps its version while its files change.
    """
    versions = {"python": platform.python_version()}
    for package in COMPARED_PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {**versions, CODE_LABEL: _hash_source_files(Path(__file__).parents[2])}


def check_same_packages(packages: Mapping[str, str]) -> None:
    """Raise RecipeError if this node has other packages than the process that was started.

    Args:
        packages: `installed_packages` of that process.
    """
    versions = installed_packages()
    for name, value in packages.items():
        if versions.get(name) != value:
            problem = f"--cluster: {name} is {versions.get(name)} on node {socket.gethostname()}, and {value} here"
            raise RecipeError(f"{problem}: install the same packages on all nodes, and start its part of Ray again")


def require_same_packages(compute: Callable[P, R]) -> Callable[P, R]:
    """Return a function that a node calls in place of another, and that refuses where packages differ from here."""
    versions = installed_packages()

    @wraps(compute)
    def compute_with_same_packages(*arguments: P.args, **keywords: P.kwargs) -> R:
        check_same_packages(versions)
        return compute(*arguments, **keywords)

    return compute_with_same_packages


def import_problem(error: BaseException) -> str | None:
    """Return why a node could not load the function that it was to call; None for another error of a task."""
    text = str(error)
    if IMPORT_FAILURE_PATTERN.search(text) is None:
        return None
    node, reasons = NODE_PATTERN.search(text), IMPORT_ERROR_PATTERN.findall(text)
    reason = reasons[-1] if reasons else text.strip().splitlines()[-1]
    node_name = "a node" if node is None else f"node {node[1]}"
    return (
        f"--cluster: {node_name} cannot load tfm ({reason:.200}): {install_command('cluster')} on every node, as here"
    )


def _hash_source_files(package: Path) -> str:
    digest = hashlib.sha256()
    folders = [package, *sorted(each.resolve() for each in package.iterdir() if each.is_dir())]
    files = [file for folder in folders for file in sorted(folder.glob("*.py" if folder == package else "**/*.py"))]
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()[:CODE_DIGITS]
