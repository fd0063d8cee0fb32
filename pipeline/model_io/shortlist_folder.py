"""A shortlist of the vocabulary on disk: what `tfm shortlist` makes, and `decoding.shortlist` names."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from tfm.data.errors import DataError
from tfm.pipeline.artifacts.manifest import Input, Manifest, read_artifact
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.model_io.weight_files import check_safetensors_header, path_for_safetensors
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import SPECIAL_TOKENS

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel
    from tfm.tokenizer.tokenizer import Tokenizer

STAGE = "shortlist"
FILE = "shortlist.safetensors"


def vocabularies_digest(source: "Tokenizer", target: "Tokenizer") -> str:
    """The sha256 of the pieces of two vocabularies: ids of others mean something else."""
    pieces = [[each.piece(number) for number in range(each.vocab_size)] for each in (source, target)]
    return hashlib.sha256(repr(pieces).encode()).hexdigest()


def write_shortlist(shortlist: Shortlist, folder: Path) -> None:
    """Write a shortlist into a folder."""
    tensors = {"always": shortlist.always, "by_source": np.ascontiguousarray(shortlist.by_source)}
    (folder / FILE).write_bytes(save(tensors))


def shortlist_inputs(config: DecodingConfig) -> dict[str, Input]:
    """The artifact that settings of decoding name, as an input of what is decoded.

    Raises DataError if it is no shortlist.
    """
    return {} if config.shortlist is None else {STAGE: Input.from_artifact(Path(config.shortlist), STAGE)}


def load_shortlist(loaded: "LoadedModel", config: DecodingConfig, must_match: Input | None = None) -> Shortlist | None:
    """Read the shortlist that settings of decoding name.

    Args:
        loaded: the model.
        config: the settings.
        must_match: the shortlist as it was seen before, which must not have been replaced since.

    Returns:
        The shortlist; None if the settings name none, or the model labels, for which they are refused elsewhere.

    Raises:
        DataError: as `read_shortlist`.
    """
    if config.shortlist is None or not TASK_SPECS[loaded.config.task].translates:
        return None
    tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
    return read_shortlist(Path(config.shortlist), *tokenizers, must_match=must_match)


def read_shortlist(
    folder: Path, source: "Tokenizer", target: "Tokenizer", *, must_match: Input | None = None
) -> Shortlist:
    """Read what `tfm shortlist` has made.

    Args:
        folder: of the artifact.
        source: tokenizer of the model's sources.
        target: tokenizer of its targets.
        must_match: the artifact as it was seen before, which must not have been replaced since.

    Raises:
        DataError: the folder is no shortlist, is damaged, of other vocabularies, or was replaced.
    """
    return read_artifact(folder, lambda manifest: _parse(manifest, source, target), STAGE, must_match=must_match)


def _parse(manifest: Manifest, source: "Tokenizer", target: "Tokenizer") -> Shortlist:
    if manifest.config.get("vocabularies") != vocabularies_digest(source, target):
        problem = "is of other vocabularies than the model's: make it from the dataset that the model was trained on"
        raise DataError(f"{problem} (`tfm shortlist DATASET --links FILE --out DIR`)", file=manifest.path)
    file, displayed_file = manifest.folder / FILE, manifest.path / FILE
    try:
        check_safetensors_header(file)
        tensors: dict[str, Any] = load_file(path_for_safetensors(file))
        always, by_source = (tensors[name].astype(np.int32, casting="safe") for name in ("always", "by_source"))
    except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise DataError(f"is no shortlist: {error!s:.200}. Run `tfm shortlist` again", file=displayed_file) from error
    if always.ndim != 1 or by_source.ndim != 2 or len(by_source) != source.vocab_size:
        raise DataError("is no shortlist: its tables have other shapes. Run `tfm shortlist` again", file=displayed_file)
    try:
        shortlist = Shortlist(by_source, always, target.vocab_size)
    except ValueError as error:
        raise DataError(f"{error}. Run `tfm shortlist` again", file=displayed_file) from error
    if not np.isin(np.arange(len(SPECIAL_TOKENS)), always).all():
        raise DataError("lacks control tokens. Run `tfm shortlist` again", file=displayed_file)
    return shortlist
