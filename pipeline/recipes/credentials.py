"""Check that a recipe holds no credential: all of it is written into manifests, signatures and studies, and compared.

To mask one there could make runs equal that differ, and the command of a metric is read from there again: refused.
"""

import re
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from tfm.data.credentials import holds_credential
from tfm.pipeline.recipes.messages.error_messages import Key

_URL = re.compile(r"[a-z][a-z0-9+.-]+:/{1,3}\S+", re.I)


def credential_problem(config: BaseModel, prefix: Key) -> tuple[Key, str] | None:
    """The first key of a config whose value holds a credential, with the reason; None without one.

    Only addresses and commands are looked at: every other text, such as a forbidden phrase, is data.
    """
    for key, words in _texts_by_key(config.model_dump(mode="json"), prefix):
        is_command = "command" in key
        if is_command and holds_credential(words):
            return key, "holds a credential: set an environment variable, which the command inherits"
        if not is_command and any(_URL.fullmatch(word) and holds_credential([word]) for word in words):
            return key, "holds a credential: log in, or set the environment variable of the service (such as HF_TOKEN)"
    return None


def _texts_by_key(value: object, key: Key) -> Iterator[tuple[Key, list[str]]]:
    """Every text, or list of texts, with its key."""
    if isinstance(value, str):
        yield key, [value]
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        yield key, value
    else:
        items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
        for name, item in items:
            yield from _texts_by_key(item, (*key, str(name)))
