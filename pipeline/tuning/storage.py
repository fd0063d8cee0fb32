"""The storage of a search's trials, a journal or a database, and errors if that cannot be opened or read."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from optuna.storages import BaseStorage, RDBStorage

from tfm.pipeline.errors import DataError, RecipeError, TfmError
from tfm.pipeline.tuning.journal import DAMAGED_JOURNAL_REMEDY, Journal

OPTUNA_NOT_FOUND_MESSAGE = "Record does not exist."
MAX_ATTEMPTS = 50
SECONDS_BETWEEN_ATTEMPTS = 0.2
TABLE_CREATION_RACE_MESSAGES = ("already exists", "is locked", "duplicate", "unique constraint", "no such table")
"""The words, in small letters, in which databases refuse one of several workers that make the tables at one time."""


def open_storage(folder: Path, url: str | None, *, create: bool = True) -> BaseStorage | None:
    """Return the storage of the trials: the database at a URL, or a journal in the folder of the search.

    Args:
        folder: the folder of the search.
        url: the URL of the database; None for a journal.
        create: whether the tables of a new database are made; else the result is None if there are none.

    Raises:
        RecipeError: the database cannot be opened.
    """
    if url is None:
        return Journal(folder / "trials.journal")
    try:
        return _open_database(url) if create or _has_tables(url) else None
    except Exception as error:  # SQLAlchemy's many, and a driver that is not installed
        problem = hide_password(str(error).partition("\n")[0], url)
        # the cause has the password in its text, which --debug would show
        raise RecipeError(f"--storage {hide_password(url, url)}: cannot be opened: {problem}") from None


def _open_database(url: str) -> RDBStorage:
    """The database at a URL, with its tables; another worker may be making them, maybe on another machine."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return RDBStorage(url)
        except Exception as error:
            if not any(each in str(error).lower() for each in TABLE_CREATION_RACE_MESSAGES):
                raise
        time.sleep(SECONDS_BETWEEN_ATTEMPTS)
    return RDBStorage(url)


def _has_tables(url: str) -> bool:
    """Return whether a database has Optuna's tables; nothing is written, where SQLite makes a file by opening it."""
    from sqlalchemy import create_engine, inspect, make_url

    name = make_url(url).database
    if (
        make_url(url).get_backend_name() == "sqlite"
        and name
        and not name.startswith("file:")
        and not Path(name).exists()
    ):
        return False
    engine = create_engine(url)
    try:
        return inspect(engine).has_table("studies")
    finally:
        engine.dispose()


def hide_password(text: str, url: str) -> str:
    """A text about a database with *** for the password in its URL."""
    secrets = [unquote(password) for password in re.findall(r"://[^/@]*?:(.*)@", url)]
    secrets += re.findall(r"://[^/@]*?:(.*)@", url) + re.findall(r"(?i)(?:pass\w*|pwd|token|secret)=([^&]+)", url)
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


@contextmanager
def raise_storage_errors(source: str) -> Iterator[None]:
    """Raise DataError about the place of the trials where Optuna, or a check of ours, fails in the body."""
    try:
        yield
    except (TfmError, OSError):
        raise
    except Exception as error:  # Optuna checks nothing that it reads, and SQLAlchemy has its own
        if isinstance(error, KeyError) and error.args == (OPTUNA_NOT_FOUND_MESSAGE,):
            raise DataError("another worker began the search anew: run the same command again", file=source) from None
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise DataError(
            f"{kind}{str(error).partition(chr(10))[0]:.500}; {DAMAGED_JOURNAL_REMEDY}", file=source
        ) from None
