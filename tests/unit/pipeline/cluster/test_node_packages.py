"""Nodes whose packages differ from those of the process that was started: refused, with the package and the node."""

import re

import pytest

from tfm.pipeline.cluster import node_packages
from tfm.pipeline.cluster.node_packages import (
    CODE_LABEL,
    check_same_packages,
    import_problem,
    installed_packages,
    require_same_packages,
)
from tfm.pipeline.errors import RecipeError


def double(number: int, *, plus: int = 0) -> int:
    return 2 * number + plus


def test_the_same_packages_compute() -> None:
    checked = require_same_packages(double)
    assert checked(4, plus=1) == 9
    assert checked.__name__ == "double"  # the title of the process on a node


@pytest.mark.parametrize("package", ["python", "tfm-toolkit", "torch", "numpy", CODE_LABEL])
def test_a_node_with_another_package_is_refused(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = require_same_packages(double)
    there = {**installed_packages(), package: "0.0.9"}
    monkeypatch.setattr(node_packages, "installed_packages", lambda: there)
    with pytest.raises(RecipeError, match=rf"--cluster: {re.escape(package)} is 0\.0\.9 on node .*, and .+ here"):
        checked(4)
    with pytest.raises(RecipeError):
        check_same_packages({**there, package: "1"})


def test_a_node_without_the_package_is_named() -> None:
    failed = (
        "ray::encode_columns() (pid=30450, ip=10.0.0.2)\n"
        "RuntimeError: The remote function failed to import on the worker. This may be ...\n\n"
        "ray::encode_columns() (pid=30450, ip=10.0.0.2)\n  File ...\n"
        "ModuleNotFoundError: No module named 'tfm'\n"
    )
    wanted = "--cluster: node 10.0.0.2 cannot load tfm (ModuleNotFoundError: No module named 'tfm'): pip install"
    assert (import_problem(RuntimeError(failed)) or "").startswith(wanted)
    arguments = "System error: No module named 'tfm'\ntraceback: ...\nModuleNotFoundError: No module named 'tfm'"
    assert "a node cannot load tfm (ModuleNotFoundError" in (import_problem(RuntimeError(arguments)) or "")
    assert import_problem(ValueError("No module named 'tfmx'; ip=1")) is None
