"""The distribution that this package is installed from: its name differs from that of the import package."""

DISTRIBUTION_NAME = "tfm-toolkit"  # `tfm` belongs to another project on package indexes


def version() -> str | None:
    """The version that is installed; None if this code runs from its source."""
    from importlib.metadata import PackageNotFoundError  # a tenth of the start of `tfm --help`
    from importlib.metadata import version as version_of

    try:
        return version_of(DISTRIBUTION_NAME)
    except PackageNotFoundError:
        return None


def install_command(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "{DISTRIBUTION_NAME}[{extra}]"'
