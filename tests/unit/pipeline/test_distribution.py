"""The distribution has a name of its own, which is what users are told to install."""

import re
import tomllib
from pathlib import Path

import pytest

from tfm.pipeline.distribution import DISTRIBUTION_NAME, install_command, version

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TOLD = [
    file
    for pattern in ("cli/**/*.py", "pipeline/**/*.py", "docs/**/*.md", "docs/**/*.ipynb", "*.md", "bench/*.md")
    for file in sorted(ROOT.glob(pattern))
]


def test_the_name_is_that_of_the_project_and_the_command_stays_tfm() -> None:
    assert PROJECT["name"] == DISTRIBUTION_NAME == "tfm-toolkit"
    assert list(PROJECT["scripts"]) == ["tfm"]
    assert version() in (PROJECT["version"], None)


def test_an_install_command_names_an_extra_that_exists() -> None:
    texts = {file: file.read_text("utf-8") for file in TOLD}
    extras = {name for text in texts.values() for name in re.findall(r"install_command\(['\"](\w+)['\"]\)", text)}
    assert {"search", "onnx", "export", "ja", "ko", "tensorboard"} <= extras <= PROJECT["optional-dependencies"].keys()
    assert install_command("search") == 'pip install "tfm-toolkit[search]"'


@pytest.mark.parametrize("file", TOLD, ids=lambda file: str(file.relative_to(ROOT)))
@pytest.mark.few(293)
def test_nobody_is_told_to_install_another_project(file: Path) -> None:
    assert not re.findall(r"""install\s+(?:-\S+\s+)*["'`]?tfm(?![-\w])|["'`]tfm\[""", file.read_text("utf-8"))
