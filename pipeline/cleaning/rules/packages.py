"""Packages that some rules need, and that are installed only where they are asked for."""

from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError


def missing_package_error(rule: str, package: str) -> RecipeError:
    """Return the error of a rule whose package is not installed."""
    return RecipeError(f"clean.{rule} needs the package {package}: {install_command('clean')}, or leave the rule out")
