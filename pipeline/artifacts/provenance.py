"""The record of origin in a manifest: versions, git commit, hardware. Does not import the packages it names."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tfm.pipeline import distribution
from tfm.pipeline.runtime.cpu import describe_processor

REPORTED_PACKAGES = {
    "tfm": distribution.DISTRIBUTION_NAME,
    "torch": "torch",
    "tokenizers": "tokenizers",
}  # by the manifest's key
_REPOSITORY = Path(__file__).resolve().parents[2]


@cache
def package_versions() -> dict[str, str | None]:
    """Version of Python and of each package that shapes a result; None if it is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for key, package in REPORTED_PACKAGES.items():
        try:
            versions[key] = version(package)
        except PackageNotFoundError:
            versions[key] = None
    return versions


@cache
def git_commit() -> str | None:
    """The commit this code was run from, with `-dirty` after it where files differ; None outside a checkout."""
    top = _run_git("rev-parse", "--show-toplevel")
    # An environment inside somebody's checkout is not that checkout's code.
    if top is None or Path(top).resolve() != _REPOSITORY:
        return None
    return _run_git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


@cache
def describe_hardware() -> dict[str, str | int | list[str] | None]:
    """Number, name and instructions of the processors, machine type, operating system, and names of NVIDIA's GPUs."""
    system = {"cpus": os.cpu_count(), "machine": platform.machine(), "platform": platform.platform()}
    return {**system, **describe_processor(), "gpus": nvidia_gpu_names(Path("/proc/driver/nvidia/gpus"))}


def nvidia_gpu_names(driver_folder: Path) -> list[str]:
    """The names of GPUs in the folder of NVIDIA's driver for Linux; empty if there is none."""
    files = sorted(driver_folder.glob("*/information"))
    lines = [line for file in files for line in file.read_text("utf-8", errors="replace").splitlines()]
    return [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]


def _run_git(*arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(_REPOSITORY), *arguments]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return process.stdout.strip() or None
