"""What is known of a class of transformers: which models it holds, its settings, and where each weight stands in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.fits import Held
from tfm.pipeline.model_io.huggingface.weights import Weight

Settings = dict[str, Any]
State = dict[str, Tensor]

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "tanh": "tanh", "silu": "silu"}
"""Ours by the names there."""


@dataclass(frozen=True)
class HuggingFaceClass:
    """A class of transformers.

    held: the models that it holds. settings: (config, number of pieces) -> config.json. weights: the table of what
    stands where. finished: (config, what the table gives) -> its weights, with those that are no tensor of ours.
    pipeline: the name of the task there, as a model card has it.
    """

    name: str
    model_type: str
    pipeline: str
    held: Held
    settings: Callable[[ModelConfig, int], Settings]
    weights: Callable[[ModelConfig], list[Weight]]
    finished: Callable[[ModelConfig, State], State]

    def exported(self, config: ModelConfig, state: Mapping[str, Tensor]) -> State:
        """Its weights, by their names there, from ours; every one of ours is in one of them."""
        found: State = {}
        for weight in self.weights(config):
            found |= weight.exported(state[weight.ours].detach().float())
        return self.finished(config, found)
