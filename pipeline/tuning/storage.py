"""Where a search keeps its trials, a journal or a database, and what is said if that cannot be opened or read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from optuna.storages import BaseStorage, RDBStorage

from tfm.pipeline.errors import DataError, RecipeError, TfmError
from tfm.pipeline.tuning.journal import REMEDY, Journal


def storage_at(folder: Path, url: str | None) -> BaseStorage:
    """Where the trials are kept: in the database at a URL, or in a journal in the folder of the search."""
    if url is None:
        return Journal(folder / "trials.journal")
    try:
        return RDBStorage(url)
    except Exception as error:  # SQLAlchemy's many, and a driver that is not installed
        problem = without_password(str(error).partition("\n")[0], url)
        # the cause has the password in its text, which --debug would show
        raise RecipeError(f"--storage {without_password(url, url)}: cannot be opened: {problem}") from None


def without_password(text: str, url: str) -> str:
    """A text about a database with *** for the password in its URL."""
    secrets = [unquote(found) for found in re.findall(r"://[^/@]*?:(.*)@", url)]
    secrets += re.findall(r"://[^/@]*?:(.*)@", url) + re.findall(r"(?i)(?:pass\w*|pwd|token|secret)=([^&]+)", url)
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


@contextmanager
def reading(source: str) -> Iterator[None]:
    """Within, what Optuna fails at, or a check of ours, is a DataError about the place of the trials."""
    try:
        yield
    except (TfmError, OSError):
        raise
    except Exception as error:  # Optuna checks nothing that it reads, and SQLAlchemy has its own
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise DataError(f"{kind}{str(error).partition(chr(10))[0]:.500}; {REMEDY}", file=source) from None
