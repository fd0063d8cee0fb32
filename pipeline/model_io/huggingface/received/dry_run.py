"""An import on shapes alone: the headers of the weights against config.json, before a tensor is read.

The same functions run as in the import itself, on PyTorch's meta device, where a tensor has a shape and no numbers.
"""

import math
import os
from collections.abc import Mapping
from contextlib import suppress

import torch
from torch import Tensor

from tfm.data.errors import DataError
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import HuggingFaceClass, JsonObject, StateDict
from tfm.pipeline.model_io.huggingface.received.settings_checks import check_token_ids
from tfm.pipeline.model_io.huggingface.received.snapshot import CONFIG_FILE, GENERATION_CONFIG_FILE, Snapshot
from tfm.pipeline.model_io.model_weights import check_shapes_match, model_weight_shapes
from tfm.pipeline.model_io.weight_files import read_tensor_specs

IGNORED_WEIGHTS = (
    *("embed_positions.weight", "final_logits_bias"),
    *(".attn.bias", ".attn.masked_bias", ".position_ids", "rotary_emb.inv_freq", "model.shared.weight"),
)
"""Ends of the names of weights that are looked at elsewhere, or follow from config.json."""
FLOAT_DTYPES = ("F64", "F32", "F16", "BF16")
MAX_UNUSED_WEIGHT_ELEMENTS = 2**27
"""The most numbers that belong to no weight of tfm, such as masks, beside as many again as its weights have."""


def check_weights(snapshot: Snapshot, settings: JsonObject, model_class: HuggingFaceClass) -> None:
    """Check that the weights are those of config.json, in names, shapes and type.

    Args:
        snapshot: the folder.
        settings: its config.json.
        model_class: the class.

    Raises:
        DataError: an id of a token is wrong, or the weights need too much memory.
        ValueError: the weights do not fit.
    """
    state_dict = _empty_weights(snapshot)
    num_elements = sum(weight.numel() for weight in state_dict.values())
    output = model_class.tables[-1]
    if len(model_class.tables) > 1 and settings.get("tie_word_embeddings") is False and output not in state_dict:
        raise ValueError(f"it has no {output}, and tie_word_embeddings = false, so that the output has its own table")
    size = _num_embedding_rows(state_dict, settings, model_class)
    check_token_ids(settings, size, snapshot.folder / CONFIG_FILE)
    check_token_ids(snapshot.read_document(GENERATION_CONFIG_FILE), size, snapshot.folder / GENERATION_CONFIG_FILE)
    with torch.device("meta"):
        state_dict = model_class.standardize_state_dict(settings, state_dict)
        config = ModelConfig.model_validate(model_class.read(settings, state_dict))
        check_weight_names(model_class, config, state_dict)
        model_weights = model_class.import_weights(config, state_dict)
    shapes = {name: tuple(weight.shape) for name, weight in model_weights.items()}
    source = _num_rows_of_first_weight(shapes, "source_embedding.table.weight", "embedding.table.weight")
    target = _num_rows_of_first_weight(shapes, "output.weight", "embedding.table.weight")
    check_shapes_match(model_weight_shapes(config, source_vocab=source, target_vocab=target), shapes, snapshot.folder)
    for name, weight in model_weights.items():
        if not weight.is_floating_point():
            raise ValueError(f"its weights are not {', '.join(FLOAT_DTYPES)}: {name}")
    num_expected = sum(map(math.prod, shapes.values()))
    if num_elements > 3 * num_expected + MAX_UNUSED_WEIGHT_ELEMENTS:
        raise ValueError(f"its files have {num_elements:,} numbers, and a model of this shape {num_expected:,}")
    if 4 * num_expected > (memory := _total_memory_bytes()):
        problem = (
            f"has {4 * num_expected / 2**30:,.1f} GiB of weights in fp32, and this machine {memory / 2**30:,.1f} GiB"
        )
        raise DataError(f"{problem} of memory", file=snapshot.folder)


def check_weight_names(model_class: HuggingFaceClass, config: ModelConfig, state_dict: StateDict) -> None:
    """Check that each weight has a place in a model of tfm.

    Args:
        model_class: the class.
        config: of the model.
        state_dict: the weights.

    Raises:
        ValueError: a weight has no place.
    """
    names = {name for weight in model_class.weights(config) for name in weight.hf_names} | {
        *model_class.tables,
        model_class.bias,
    }
    for name in state_dict:
        if name not in names and not name.endswith(IGNORED_WEIGHTS):
            raise ValueError(f"it has a weight that this configuration does not use, {name}")


def _empty_weights(snapshot: Snapshot) -> StateDict:
    """A tensor without numbers for each weight; any that is not of a floating-point type is one of integers."""
    state_dict: dict[str, Tensor] = {}
    for file in snapshot.weight_files():
        for name, (shape, kind) in read_tensor_specs(file).items():
            dtype = torch.float32 if kind in FLOAT_DTYPES else torch.int64
            state_dict[name] = torch.empty(shape, dtype=dtype, device="meta")
    return state_dict


def _num_embedding_rows(state_dict: StateDict, settings: JsonObject, model_class: HuggingFaceClass) -> int:
    """The number of pieces of the largest table.

    Raises ValueError if a table is not as config.json says, so that no larger one is made from it.
    """
    width = next((settings[key] for key in ("d_model", "hidden_size", "n_embd") if key in settings), None)
    tables = [name for name in state_dict if any(f".{each}".endswith(f".{name}") for each in model_class.tables)]
    if not tables:
        raise ValueError(f"it has no {model_class.tables[0]}")
    for name in tables:
        if state_dict[name].dim() != 2 or state_dict[name].shape[1] != width:
            raise ValueError(f"{name} is {tuple(state_dict[name].shape)}, and config.json has a width of {width}")
    rows = sorted({len(state_dict[name]) for name in tables})
    if (size := settings.get("vocab_size", rows[-1])) not in rows:
        raise ValueError(f"config.json has vocab_size = {size}, and its tables {' and '.join(map(str, rows))} rows")
    return rows[-1]


def _num_rows_of_first_weight(shapes: Mapping[str, tuple[int, ...]], *names: str) -> int:
    return next(shapes[name][0] for name in names if name in shapes)


def _total_memory_bytes() -> float:
    """Bytes of this machine's memory; infinite where the system does not tell."""
    with suppress(ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return math.inf
