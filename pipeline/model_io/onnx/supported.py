"""The models that are written as ONNX. All else is refused, naming the key of the recipe: nothing is approximated."""

from collections.abc import Callable, Mapping
from typing import Any

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.supported import ANY_VALUE, IGNORED_KEYS, first_unsupported_key
from tfm.pipeline.model_io.onnx.layers import ACTIVATIONS
from tfm.pipeline.tasks.abilities import TaskSpec, select_tasks

EXPORTABLE_TASKS: Mapping[str, Callable[[TaskSpec], object]] = {
    "transformer": lambda each: each.translates,
    "decoder_only": lambda each: each.writes,
    "encoder_only": lambda each: not each.writes and each.reads == "source",
}
"""The tasks whose models are written, by architecture."""
SUPPORTED_VALUES: Mapping[str, Any] = {
    "norm": ("pre", "post"),
    "normalization": ("layer", "rms", "batch"),
    "positions": ("none", "sinusoidal", "fairseq", "learned", "rotary"),
    "activation": tuple(ACTIVATIONS),
    **dict.fromkeys(("embedding_dim", "embedding_norm", "scale_embedding", "tie", "output_bias"), ANY_VALUE),
    **dict.fromkeys(("norm_eps", "rotary", "qk_norm", "pooling", "begin_token", "head_transform"), ANY_VALUE),
}
SUPPORTED_STACK_VALUES: Mapping[str, Any] = dict.fromkeys(
    ("layers", "dim", "heads", "key_value_heads", "key_dim", "value_dim", "feed_forward_dim"), ANY_VALUE
)


def unsupported_reason(config: ModelConfig) -> str | None:
    """The first part of a model that is not written, as a recipe has it; None if all are."""
    if config.architecture not in EXPORTABLE_TASKS:
        return f'model.architecture = "{config.architecture}"'
    model_values = {
        "architecture": ANY_VALUE,
        "task": select_tasks(EXPORTABLE_TASKS[config.architecture]),
        **dict.fromkeys(("encoder", "decoder"), ANY_VALUE),
    }
    if (key := first_unsupported_key(config, {**IGNORED_KEYS, **SUPPORTED_VALUES, **model_values})) is not None:
        return f"model.{key}"
    for name in ("encoder", "decoder"):
        if (key := first_unsupported_key(getattr(config, name), SUPPORTED_STACK_VALUES)) is not None:
            return f"model.{name}.{key}"
    return None
