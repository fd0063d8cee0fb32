"""Ray's tokens: the cause and remedy of a missing or wrong token, before or after Ray connects."""

import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODE_ENV_VAR = "RAY_AUTH_MODE"
TOKEN_ENV_VAR = "RAY_AUTH_TOKEN"
TOKEN_PATH_ENV_VAR = "RAY_AUTH_TOKEN_PATH"
TOKEN_MODE = "token"
TOKEN_BYTES = 32
MAX_STDERR_BYTES = 1 << 20
TOKEN_ERROR_PATTERN = re.compile("Unauthenticated|InvalidAuthToken")
"""The words of a cluster that refuses a connection for its token."""
TOKEN_DESCRIPTION = "what `ray get-auth-token` prints where the cluster was started"


def default_token_file() -> Path:
    """The file in which Ray stores a user's token; a path that does not exist for a user without a home folder."""
    return Path(os.path.expanduser("~/.ray/auth_token"))


def set_token_for_new_cluster() -> None:
    """Give a cluster that this process starts a token of its own, if there is none: Ray would write one into the
    home folder, which may not be writable, and every cluster that is started later would ask for that.
    """
    if _token_source() is None and _requires_token(is_new_cluster=True):
        os.environ[TOKEN_ENV_VAR] = secrets.token_hex(TOKEN_BYTES)


def missing_token_problem(*, is_new_cluster: bool) -> str | None:
    """Return why Ray finds no token where it needs one; None if it finds one, or needs none.

    Args:
        is_new_cluster: whether a cluster is started on this machine, which has a token in any case.
    """
    if not _requires_token(is_new_cluster=is_new_cluster) or os.environ.get(TOKEN_ENV_VAR):
        return None
    if path := os.environ.get(TOKEN_PATH_ENV_VAR):
        remedy = "unset it" if is_new_cluster else f"put {TOKEN_DESCRIPTION} there"
        return None if _is_nonempty_file(Path(path)) else f"{TOKEN_PATH_ENV_VAR}: {path:.200} holds no token; {remedy}"
    if is_new_cluster or _is_nonempty_file(default_token_file()):
        return None
    return f"{MODE_ENV_VAR}={TOKEN_MODE}, and there is no token; put {TOKEN_DESCRIPTION} into {default_token_file()}"


def refused_token_problem(stderr_text: str) -> str | None:
    """Return why a cluster refused the connection, where that was for the token; else None.

    Args:
        stderr_text: what Ray wrote to stderr meanwhile.
    """
    if TOKEN_ERROR_PATTERN.search(stderr_text) is None:
        return None
    source = _token_source()
    if os.environ.get(MODE_ENV_VAR, "").lower() == TOKEN_MODE:
        return f"the cluster refuses the token of {source}; put {TOKEN_DESCRIPTION} there"
    remedy = (
        f"put {TOKEN_DESCRIPTION} into {default_token_file()}" if source is None else f"that of {source} is then sent"
    )
    return f"the cluster asks for a token; set {MODE_ENV_VAR}={TOKEN_MODE}, and {remedy}"


def _requires_token(*, is_new_cluster: bool) -> bool:
    """Whether Ray uses a token: since Ray 2.59 a cluster that it starts does, unless it is configured otherwise."""
    mode = os.environ.get(MODE_ENV_VAR)
    return is_new_cluster if mode is None else mode.lower() == TOKEN_MODE


def _token_source() -> str | None:
    """The place from which Ray reads the token; None if there is none."""
    if os.environ.get(TOKEN_ENV_VAR):
        return TOKEN_ENV_VAR
    if path := os.environ.get(TOKEN_PATH_ENV_VAR):
        return f"{TOKEN_PATH_ENV_VAR} ({path:.200})"
    return str(default_token_file()) if _is_nonempty_file(default_token_file()) else None


def _is_nonempty_file(file: Path) -> bool:
    try:
        with open(file, "rb") as stream:
            return bool(stream.read(1))
    except OSError:
        return False


@contextmanager
def capture_stderr() -> Iterator[list[str]]:
    """Keep what this process writes to file descriptor 2 while the body runs, as Ray's C++ does; yields a list that
    has it afterwards.
    """
    texts: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        original = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield texts
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
            file.seek(0)
            texts.append(file.read(MAX_STDERR_BYTES).decode(errors="replace"))
