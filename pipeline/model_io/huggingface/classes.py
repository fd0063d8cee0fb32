"""Description of a class of transformers: the models it holds, its settings, and the place of each weight in it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.received.snapshot import Snapshot
from tfm.pipeline.model_io.huggingface.supported import SupportedConfig
from tfm.pipeline.model_io.huggingface.weights import WeightMapping
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

JsonObject = dict[str, Any]
StateDict = dict[str, Tensor]

HUGGINGFACE_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_new", "tanh": "tanh", "silu": "silu"}
"""Names in transformers by those of tfm."""
SPECIAL_TOKEN_IDS: JsonObject = {"pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
"""The control tokens of tfm, as config.json names them."""
NEVER_PREDICTED_BIAS = -100.0
"""The bias of a piece that is never predicted: its probability is none in fp32, and a smoothed loss hardly sees it."""
ACTIVATION_ALIASES = {
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_python": "gelu",
    "swish": "silu",
}


@dataclass(frozen=True)
class HuggingFaceClass:
    """A class of transformers.

    Args:
        name: of the class.
        model_type: in config.json.
        pipeline: the name of the task there, as a model card has it.
        supports: the models that the class holds.
        weights: the table of weights and their places, read in both directions.
        tables: the names of its weights that have a row for each piece.
        settings: of export: (config, number of pieces) -> config.json.
        finalize_export: (config, weights that the table gives) -> its weights, with those that are no tensor of tfm.
        standardize_state_dict: (config.json, its weights) -> the weights that the table is read from.
        read: of import: (config.json, these weights) -> the config of tfm; raises ValueError for a model that tfm
            cannot hold.
        bias: the name of the bias that has a number for each piece; None: the class predicts no pieces.
        note: on a model that was imported, for the user.
        tokenizer_overrides: (folder, config.json) -> settings in place of its own, as other files have them.
    """

    name: str
    model_type: str
    pipeline: str
    supports: SupportedConfig
    weights: Callable[[ModelConfig], Iterable[WeightMapping]]
    tables: tuple[str, ...]
    settings: Callable[[ModelConfig, int], JsonObject]
    finalize_export: Callable[[ModelConfig, StateDict], StateDict]
    standardize_state_dict: Callable[[JsonObject, StateDict], StateDict]
    read: Callable[[JsonObject, StateDict], JsonObject]
    bias: str | None
    note: str = ""
    tokenizer_overrides: Callable[[Snapshot, JsonObject], JsonObject] = lambda folder, settings: {}

    def export_weights(self, config: ModelConfig, state: Mapping[str, Tensor]) -> StateDict:
        """Return the weights of the class under its own names; each weight of tfm is in exactly one of them."""
        weights: StateDict = {}
        for weight in self.weights(config):
            weights |= weight.export_tensors(state[weight.tfm_name].detach().float())
        return self.finalize_export(config, weights)

    def import_weights(self, config: ModelConfig, state_dict: StateDict) -> StateDict:
        """Return the weights of tfm, by their names, from those that `standardize_state_dict` gives."""
        return {weight.tfm_name: weight.import_tensor(state_dict) for weight in self.weights(config)}


def tfm_import_settings(config: ModelConfig) -> JsonObject:
    """Return the settings in config.json for `tfm import` alone, which no class has of a model of this package."""
    return {"tfm": {"task": config.task, "block": config.block}}


def read_tfm_task_keys(settings: JsonObject, default: str) -> JsonObject:
    """The keys of [model] that `tfm_import_settings` wrote; other models have the default task."""
    tfm_settings = settings.get("tfm", {})
    return {"task": default} | {key: tfm_settings[key] for key in ("task", "block") if key in tfm_settings}


def import_activation(name: str) -> str:
    """Return the name in tfm of an activation there. Raises ValueError if tfm has no such activation."""
    tfm_names = {hf_name: name for name, hf_name in HUGGINGFACE_ACTIVATIONS.items()} | ACTIVATION_ALIASES
    if name not in tfm_names:
        raise ValueError(f"the activation {name!r} is not known to tfm")
    return tfm_names[name]


def require_settings(settings: JsonObject, **required: Any) -> None:
    """Raise ValueError for the first setting that is there and is not as it has to be."""
    for key, value in required.items():
        if settings.get(key, value) != value:
            raise ValueError(f"{key} = {settings[key]!r} is not supported, only {value!r}")


def are_equal(tensor: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same numbers; False if only their shapes are known."""
    return not tensor.is_meta and torch.equal(tensor, other)


def is_zero(tensor: Tensor) -> bool:
    """Whether all numbers of a tensor are 0; False if only its shape is known."""
    return not tensor.is_meta and not tensor.any()


def detect_tied_embeddings(state_dict: StateDict, source: str, target: str, output: str) -> str:
    """Return the value of `model.tie`: the ones of three tables that are equal.

    Args:
        state_dict: the weights.
        source: the name of the source's table.
        target: the name of the target's table.
        output: the name of the output's table.
    """
    same_inputs, same_output = (
        are_equal(state_dict[one], state_dict[other]) for one, other in ((source, target), (target, output))
    )
    return {(True, True): "all", (True, False): "embeddings", (False, True): "output"}.get(
        (same_inputs, same_output), "none"
    )
