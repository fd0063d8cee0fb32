"""A repository of a hub, and its errors in our words.

The hub's address and the user's token are those of the library huggingface_hub: HF_ENDPOINT; HF_TOKEN or
`hf auth login`. A token is never written down or shown.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tfm.pipeline.errors import DataError, RecipeError

MODEL_FOLDER = "model"
"""The folder of a repository that has the model: an artifact like any other."""
REPOSITORY = re.compile(r"(?:[A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.ASCII)


def check_repository_and_revision(name: str, revision: str | None) -> None:
    """Raise RecipeError for a name or revision that no repository has.

    Args:
        name: OWNER/NAME, or NAME.
        revision: a branch, tag or commit; None: the main branch.
    """
    if not REPOSITORY.fullmatch(name) or ".." in name or "--" in name:
        raise RecipeError(f"{name!r} is not the name of a repository: OWNER/NAME, of letters, digits, '-', '_' and '.'")
    if revision is not None and (not REVISION.fullmatch(revision) or ".." in revision):
        raise RecipeError(f"--revision {revision!r} is not the name of a branch, tag or commit")


@contextmanager
def convert_hub_errors(name: str, revision: str | None) -> Iterator[None]:
    """Turn the errors of huggingface_hub into DataError, with cause and remedy; of the network into OSError.

    Args:
        name: the repository.
        revision: the branch, tag or commit that was asked for.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        LocalTokenNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    hub, login = constants.ENDPOINT, "log in with `hf auth login`, or set HF_TOKEN"
    try:
        yield
    except OfflineModeIsEnabled as error:
        raise DataError(f"the hub was not asked: HF_HUB_OFFLINE forbids it ({hub})", file=name) from error
    except LocalTokenNotFoundError as error:
        raise DataError(f"{hub} wants a token: {login}", file=name) from error
    except LocalEntryNotFoundError as error:  # it asked for the file, and no answer came
        raise OSError(errno.EHOSTUNREACH, f"{hub} cannot be reached", name) from error
    except RevisionNotFoundError as error:
        raise DataError(f"has no revision {revision or 'main'!r} on {hub}", file=name) from error
    except EntryNotFoundError as error:
        problem = f"has no {MODEL_FOLDER}/manifest.json on {hub}: it is no model that `tfm push` sent"
        raise DataError(problem, file=name) from error
    except RepositoryNotFoundError as error:
        raise DataError(f"is not on {hub}, or you may not see it: {login}", file=name) from error
    except HFValidationError as error:
        raise DataError(f"{hub} does not take this name", file=name) from error
    except HfHubHTTPError as error:
        code = getattr(error.response, "status_code", None)
        remedy = f": {login}" if code in (401, 403) else ""
        raise DataError(f"{hub} answered with status {code}{remedy}", file=name) from error
    except Exception as error:
        if isinstance(error, (DataError, RecipeError)) or not _is_connection_error(error):
            raise
        problem = f"{hub} cannot be reached ({type(error).__name__})"
        raise OSError(errno.EHOSTUNREACH, problem, name) from error


def _is_connection_error(error: Exception) -> bool:
    """Return whether the network failed, by whichever library of HTTP huggingface_hub uses."""
    modules = [each.__module__ for each in type(error).__mro__]
    is_of_library = any(name.startswith(("http", "requests", "urllib3")) for name in modules)
    return is_of_library or isinstance(error, (ConnectionError, TimeoutError))
