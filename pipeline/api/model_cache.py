"""Models that this process has read, for those that another process sends: it sends no weights, but if they are.

A forked process has its parent's models. One that was started again reads a model once, and keeps the last ones.
"""

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from weakref import WeakValueDictionary

from tfm.pipeline.artifacts.manifest import Input
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model

MAX_CACHED_MODELS = 2
_loaded_models: "WeakValueDictionary[ModelKey, LoadedModel]" = WeakValueDictionary()

ModelKey = tuple[str, str, str]
"""The absolute path of a model, its fingerprint, and the device that it is on."""


def register_model(loaded: LoadedModel) -> ModelKey | None:
    """Register a model for `find_or_reload_model` and return its address; None for a model without a folder."""
    if loaded.artifact is None:
        return None
    device = next(loaded.model.parameters()).device
    address = (os.path.abspath(loaded.folder), loaded.artifact.fingerprint, str(device))
    _loaded_models[address] = loaded
    return address


def find_or_reload_model(model_key: ModelKey, shown_folder: Path) -> LoadedModel:
    """Return the model at an address, read if this process does not have it.

    Args:
        model_key: the address.
        shown_folder: the folder in messages.

    Raises:
        DataError: another model is there by now, or none.
    """
    loaded = _loaded_models.get(model_key) or _reload_model(model_key)
    return loaded if loaded.folder == shown_folder else replace(loaded, folder=shown_folder)


@lru_cache(maxsize=MAX_CACHED_MODELS)
def _reload_model(model_key: ModelKey) -> LoadedModel:
    path, fingerprint, device = model_key
    try:
        return load_model(Path(path), device, must_match=Input.from_value(fingerprint))
    except DataError as error:
        raise DataError(f"{error}; a process sends a model by its folder, which must stay as it is") from error
