"""The parts that a small network in numpy is built from: configuration, tokenizers and weights, without torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load_file

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.json_documents import read_json
from tfm.model.config import ModelConfig
from tfm.model.numpy_inference.weights import UnsupportedModelError
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.model_io.weight_files import check_safetensors_header, path_for_safetensors
from tfm.tokenizer.foreign.original_ids import ORIGINAL_IDS_FILE
from tfm.tokenizer.tokenizer import SHARED, SOURCE, TARGET, Tokenizer

WEIGHTS_FILE = "model.safetensors"
MODEL_FILES = {"config.json", WEIGHTS_FILE, SHARED, SOURCE, TARGET, ORIGINAL_IDS_FILE}
"""The files of a model that has nothing beside its tokenizers and weights."""
MAX_SMALL_MODEL_BYTES = 1 << 26
"""The most bytes of weights: with more, torch's threads gain the time that it takes to load them."""


@dataclass(frozen=True)
class NumpyModelParts:
    """A model's configuration, its tokenizers of source and target, and its weights by name."""

    config: ModelConfig
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    weights: Mapping[str, Any]


def fits_numpy_inference(folder: Path) -> bool:
    """Return whether a folder holds weights that numpy computes with as fast as torch is loaded."""
    file = folder / WEIGHTS_FILE
    return file.exists() and file.stat().st_size <= MAX_SMALL_MODEL_BYTES


def read_model_parts(manifest: Manifest, accepts: Callable[[ModelConfig], bool]) -> NumpyModelParts:
    """Read the parts of a verified model.

    Args:
        manifest: of the model.
        accepts: whether numpy has all parts of a network of this configuration.

    Raises:
        UnsupportedModelError: torch is needed for the model, or to report a problem with it.
    """
    try:
        config = ModelConfig.model_validate(
            read_json(manifest.folder / "config.json", displayed_path=manifest.path / "config.json")
        )
        if not (accepts(config) and manifest.files.keys() <= MODEL_FILES):
            raise UnsupportedModelError
        source, target = load_tokenizer_pair(manifest.folder)
        check_safetensors_header(manifest.folder / WEIGHTS_FILE)
        weights = load_file(path_for_safetensors(manifest.folder / WEIGHTS_FILE))
    except (ValidationError, OSError, ValueError, TypeError, SafetensorError):  # TypeError: numpy does not know bf16
        raise UnsupportedModelError from None
    if any(each.dtype != np.float32 for each in weights.values()):
        raise UnsupportedModelError
    return NumpyModelParts(config, source, target, weights)
