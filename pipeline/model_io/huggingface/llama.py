"""Decoder-only models with rotary positions, RMS norm and a gated feed-forward layer: `LlamaForCausalLM`.

Rotary positions here turn neighbors, x_2i and x_2i+1; there x_i and x_i+K/2 are turned, by the same angle. The rows of
queries and keys are therefore reordered within each head, which leaves every product of a query and a key as it is.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from tfm.model.config import ModelConfig, StackConfig
from tfm.model.config_tables import RotaryConfig
from tfm.pipeline.model_io.huggingface.classes import (
    SPECIAL_TOKEN_IDS,
    HuggingFaceClass,
    JsonObject,
    StateDict,
    are_equal,
    read_tfm_task_keys,
    require_settings,
    tfm_import_settings,
)
from tfm.pipeline.model_io.huggingface.gpt2 import (
    LANGUAGE_MODEL_TASKS,
    OUTPUT_WEIGHT,
    SUPPORTED_SETTINGS,
    add_output_weight,
    is_tied,
    list_embedding_weights,
    max_positions,
    scale_input_embedding,
)
from tfm.pipeline.model_io.huggingface.supported import ANY_VALUE, STANDARD_HEADS_STACK_KEYS, SupportedConfig
from tfm.pipeline.model_io.huggingface.weights import WeightMapping, deinterleaving_permutation, linear_weights
from tfm.pipeline.tasks.abilities import TASK_SPECS

TOKEN_EMBEDDING = "model.embed_tokens.weight"
GATED_ACTIVATION_LAYOUTS = {"swiglu": ("silu", ("gate_proj", "up_proj")), "glu": ("sigmoid", ("up_proj", "gate_proj"))}
"""The function of the gate there, and the order of the halves of the matrix here, by the activation here."""
ROPE_SCALING_KEYS: JsonObject = {
    "low_freq_factor": "low_frequency_factor",
    "high_freq_factor": "high_frequency_factor",
    "original_max_position_embeddings": "original_length",
}
"""The settings of Llama 3.1 that slow its positions: the name in [model.rotary] by the one there."""


def export_settings(config: ModelConfig, vocab_size: int) -> JsonObject:
    """config.json."""
    stack = config.decoder
    function, _ = GATED_ACTIVATION_LAYOUTS[config.activation]
    rope = rope_parameters(config.rotary)
    return {
        "vocab_size": vocab_size,
        "max_position_embeddings": max_positions(config),
        "hidden_size": stack.dim,
        "intermediate_size": stack.feed_forward_dim,
        "num_hidden_layers": stack.layers,
        "num_attention_heads": stack.heads,
        "num_key_value_heads": stack.key_value_heads or stack.heads,
        "head_dim": stack.dim // stack.heads,
        "hidden_act": function,
        "rms_norm_eps": config.norm_eps,
        "attention_bias": True,
        "mlp_bias": True,
        "attention_dropout": config.dropout.attention,
        "rope_theta": config.rotary.base,
        "rope_scaling": rope if config.rotary.factor > 1 else None,  # as transformers 4 reads it
        "rope_parameters": rope,
        "tie_word_embeddings": is_tied(config),
        **tfm_import_settings(config),
        **SPECIAL_TOKEN_IDS,
    }


def list_weights(config: ModelConfig) -> Iterator[WeightMapping]:
    """The table."""
    stack = config.decoder
    groups, width = stack.key_value_heads or stack.heads, stack.dim // stack.heads
    sizes = [stack.dim, groups * width, groups * width]
    _, halves = GATED_ACTIVATION_LAYOUTS[config.activation]
    rows = rotary_permutation(stack)
    yield from list_embedding_weights(config, TOKEN_EMBEDDING)
    for i in range(stack.layers):
        tfm_layer, hf_layer = f"layers.{i}", f"model.layers.{i}"
        products = [f"{hf_layer}.self_attn.{name}_proj" for name in "qkv"]
        yield from linear_weights(f"{tfm_layer}.attention.query_key_value", *products, sizes=sizes, rows=rows)
        yield from linear_weights(f"{tfm_layer}.attention.output", f"{hf_layer}.self_attn.o_proj")
        inner = [f"{hf_layer}.mlp.{name}" for name in halves]
        yield from linear_weights(f"{tfm_layer}.feed_forward.inner", *inner, sizes=[stack.feed_forward_dim] * 2)
        yield from linear_weights(f"{tfm_layer}.feed_forward.outer", f"{hf_layer}.mlp.down_proj")
        yield WeightMapping(f"{tfm_layer}.around_attention.norm.weight", (f"{hf_layer}.input_layernorm.weight",))
        yield WeightMapping(
            f"{tfm_layer}.around_feed_forward.norm.weight", (f"{hf_layer}.post_attention_layernorm.weight",)
        )
    yield WeightMapping("norm.weight", ("model.norm.weight",))


def rotary_permutation(stack: StackConfig) -> Tensor:
    """The index (H K + 2 G K,) in tfm's queries, keys and values of each row there."""
    groups, width = stack.key_value_heads or stack.heads, stack.dim // stack.heads
    head_permutation = deinterleaving_permutation(width)
    rotary_rows = torch.arange(stack.heads + groups)[:, None] * width + head_permutation
    first = (stack.heads + groups) * width
    return torch.cat([rotary_rows.flatten(), torch.arange(first, first + groups * width)])


def rope_parameters(rotary: RotaryConfig) -> JsonObject:
    """Return the settings of rotary positions as in config.json."""
    kind = "default" if rotary.factor == 1 else "linear" if rotary.original_length is None else "llama3"
    parameters: JsonObject = {"rope_type": kind, "rope_theta": rotary.base}
    if kind != "default":
        parameters["factor"] = rotary.factor
    if kind == "llama3":
        parameters |= {hf_key: getattr(rotary, tfm_key) for hf_key, tfm_key in ROPE_SCALING_KEYS.items()}
    return parameters


def read_rotary_config(settings: JsonObject) -> JsonObject:
    """Return [model.rotary] from config.json.

    Raises ValueError for positions that turn in another way than those of tfm.
    """
    scaling = settings.get("rope_scaling") or settings.get("rope_parameters") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    for section in (scaling, settings):
        require_settings(section, partial_rotary_factor=1.0)
    if kind not in ("default", "linear", "llama3"):
        raise ValueError(f"rotary positions of type {kind!r} are not supported, only default, linear and llama3")
    rotary = {"base": scaling.get("rope_theta", settings.get("rope_theta", 10_000.0))}
    if kind == "default" or scaling["factor"] == 1:
        return rotary
    extra_keys = {tfm_key: scaling[hf_key] for hf_key, tfm_key in ROPE_SCALING_KEYS.items()} if kind == "llama3" else {}
    return {**rotary, "factor": scaling["factor"], **extra_keys}


def read_config(settings: JsonObject, state_dict: StateDict) -> JsonObject:
    """Return [model] of a recipe from config.json and the weights."""
    heads, dim = settings["num_attention_heads"], settings["hidden_size"]
    require_settings(settings, head_dim=dim // heads)
    gates = {function: activation for activation, (function, _) in GATED_ACTIVATION_LAYOUTS.items()}
    if settings["hidden_act"] not in gates:
        raise ValueError(f"hidden_act = {settings['hidden_act']!r} is not supported, only {' or '.join(gates)}")
    keys = read_tfm_task_keys(settings, LANGUAGE_MODEL_TASKS)
    sides = 2 if TASK_SPECS[keys["task"]].translates else 1
    return {
        **keys,
        "architecture": "decoder_only",
        "decoder": {
            "layers": settings["num_hidden_layers"],
            "dim": dim,
            "heads": heads,
            "key_value_heads": settings.get("num_key_value_heads") or heads,
            "feed_forward_dim": settings["intermediate_size"],
        },
        "positions": "rotary",
        "rotary": read_rotary_config(settings),
        "normalization": "rms",
        "norm_eps": settings["rms_norm_eps"],
        "activation": gates[settings["hidden_act"]],
        "tie": "all" if are_equal(state_dict[TOKEN_EMBEDDING], state_dict[OUTPUT_WEIGHT]) else "none",
        "scale_embedding": False,
        "max_length": settings["max_position_embeddings"] // sides,
        "dropout": {"residual": 0.0, "embedding": 0.0, "attention": settings.get("attention_dropout") or 0.0},
    }


def standardize_state_dict(settings: JsonObject, state_dict: StateDict) -> StateDict:
    """Add the weights that a file leaves out: the table of the output, and biases, which most models do not have."""
    state_dict = add_output_weight(state_dict, TOKEN_EMBEDDING)
    for name, weight in list(state_dict.items()):
        key = "attention_bias" if ".self_attn." in name else "mlp_bias"
        if name.endswith("_proj.weight") and not settings.get(key):
            bias = name.removesuffix("weight") + "bias"
            if bias in state_dict:
                raise ValueError(f"{key} is not true in config.json, so that transformers leaves out {bias}")
            state_dict[bias] = torch.zeros(len(weight))
    return state_dict


LLAMA = HuggingFaceClass(
    name="LlamaForCausalLM",
    model_type="llama",
    pipeline="text-generation",
    supports=SupportedConfig(
        SUPPORTED_SETTINGS
        | {
            "normalization": ("rms",),
            "positions": ("rotary",),
            "rotary": ANY_VALUE,
            "activation": tuple(GATED_ACTIVATION_LAYOUTS),
        },
        {**STANDARD_HEADS_STACK_KEYS, "key_value_heads": ANY_VALUE},
        ("decoder",),
    ),
    settings=export_settings,
    weights=list_weights,
    standardize_state_dict=standardize_state_dict,
    read=read_config,
    tables=(TOKEN_EMBEDDING, OUTPUT_WEIGHT),
    bias="lm_head.bias",
    finalize_export=lambda config, weights: scale_input_embedding(config, weights, TOKEN_EMBEDDING),
)
