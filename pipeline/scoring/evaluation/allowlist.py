"""Commands and folders that an artifact names: used only if the user named them too, or allowed them once.

A run that somebody sent has the settings of its evaluation in a manifest, and with them the commands of external
metrics, which would run as the user who opens it.
"""

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.data.errors import DataError
from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError, escape_unprintable
from tfm.pipeline.runtime.progress import Reporter

if TYPE_CHECKING:
    from tfm.pipeline.artifacts.manifest import Manifest

ALLOW_EXTERNAL_FLAG = "--allow-external"
MAX_ALLOWED_ARTIFACTS = 10_000


def check_commands_allowed(
    manifest: "Manifest",
    artifact_config: EvaluationConfig,
    user_config: EvaluationConfig | None,
    *,
    allow: bool,
    reporter: Reporter,
) -> None:
    """Check that the user named or allowed all that the settings of an artifact would run or read outside of it.

    Args:
        manifest: the manifest of the artifact.
        artifact_config: the settings of the evaluation, as the artifact has them.
        user_config: those of the recipe that the user named in this call; None if there is none.
        allow: whether the user allows them now; then they are shown, and the artifact's fingerprint is kept.
        reporter: shows what is allowed.

    Raises:
        RecipeError: there are some that were neither named nor allowed.
    """
    uses = list(_commands_not_in_user_config(artifact_config, user_config))
    if not uses:
        return
    if allow:
        for use in uses:
            reporter.line(f"{manifest.path}: allowed: {use}")
        _add_fingerprint(manifest.fingerprint)
    elif manifest.fingerprint not in _allowed_fingerprints():
        raise RecipeError(
            f"{manifest.path}: its settings would {'; and '.join(uses)}\n"
            f"if you trust this, add {ALLOW_EXTERNAL_FLAG} (once for this artifact), or name the recipe "
            "that has it: --recipe"
        )


def external_metric_commands(config: object) -> Iterator[str]:
    """Every command of an external metric in a stored configuration, at any depth, on one line as a shell reads it."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key == "external" and isinstance(value, list):
                yield from (_describe_command(metric) for metric in value)
            yield from external_metric_commands(value)
    elif isinstance(config, list):
        for value in config:
            yield from external_metric_commands(value)


def _describe_command(metric: object) -> str:
    words = metric.get("command") if isinstance(metric, Mapping) else metric
    return escape_unprintable(shlex.join(map(str, words)) if isinstance(words, list) else str(words))


def _commands_not_in_user_config(
    artifact_config: EvaluationConfig, user_config: EvaluationConfig | None
) -> Iterator[str]:
    """Commands and folders outside of the artifact that the stored settings use and the named ones do not, in words."""
    for metric in artifact_config.external:
        if user_config is None or metric not in user_config.external:
            yield f"run the command `{escape_unprintable(shlex.join(metric.command))}`"
    if artifact_config.wordnet is not None and (user_config is None or artifact_config.wordnet != user_config.wordnet):
        yield f"read the folder {artifact_config.wordnet!r}"


def _allowlist_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "tfm" / "allowed.json"


def _allowed_fingerprints() -> list[str]:
    """Fingerprints of the artifacts that were allowed; none if the file is missing or was not written by tfm."""
    try:
        file = _allowlist_file()
        if os.lstat(file).st_uid != os.geteuid():
            return []
        fingerprints = json.loads(read_bounded_file(file))
    except (OSError, ValueError, RecursionError, RuntimeError, DataError):
        return []
    return [each for each in fingerprints if isinstance(each, str)] if isinstance(fingerprints, list) else []


def _add_fingerprint(fingerprint: str) -> None:
    """Keep the fingerprint of an artifact that was allowed; if that fails, it has to be allowed again."""
    with suppress(OSError, RuntimeError):
        file = _allowlist_file()
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fingerprints = dict.fromkeys([*_allowed_fingerprints(), fingerprint])
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "w", encoding="utf-8") as stream:
                json.dump(list(fingerprints)[-MAX_ALLOWED_ARTIFACTS:], stream)
            os.replace(draft, file)
        finally:
            draft.unlink(missing_ok=True)
