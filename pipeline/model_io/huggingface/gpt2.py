"""Decoder-only models whose positions are vectors added to the input: `GPT2LMHeadModel` (Radford et al. 2019)."""

from collections.abc import Iterator

import torch

from tfm.model.attention.positions import sinusoids
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import (
    HUGGINGFACE_ACTIVATIONS,
    SPECIAL_TOKEN_IDS,
    HuggingFaceClass,
    JsonObject,
    StateDict,
    are_equal,
    import_activation,
    read_tfm_task_keys,
    require_settings,
    tfm_import_settings,
)
from tfm.pipeline.model_io.huggingface.supported import ANY_VALUE, STANDARD_HEADS_STACK_KEYS, SupportedConfig
from tfm.pipeline.model_io.huggingface.weights import WeightMapping, linear_weights, norm_weights
from tfm.pipeline.tasks.abilities import TASK_SPECS, select_tasks

WORD_EMBEDDING, POSITION_EMBEDDING, OUTPUT_WEIGHT = "transformer.wte.weight", "transformer.wpe.weight", "lm_head.weight"
(LANGUAGE_MODEL_TASKS,) = select_tasks(lambda each: each.continues_text)
SUPPORTED_SETTINGS: dict[str, object] = {
    "architecture": ("decoder_only",),
    "task": select_tasks(lambda each: each.writes),
    "norm": ("pre",),
    "norm_eps": ANY_VALUE,
    "positions": ("none", "sinusoidal", "learned"),
    "activation": tuple(HUGGINGFACE_ACTIVATIONS),
    "tie": ANY_VALUE,
    "scale_embedding": ANY_VALUE,
    "embedding_dim": ANY_VALUE,
    "pooling": ANY_VALUE,
    "encoder": ANY_VALUE,
}


def max_positions(config: ModelConfig) -> int:
    """The number of positions that a decoder-only model has learned.

    A translation stands behind its source, and a model of running text reads windows of `block` pieces.
    """
    return min(config.max_length, config.block or config.max_length) * (2 if TASK_SPECS[config.task].translates else 1)


def is_tied(config: ModelConfig) -> bool:
    """Whether the class reads and writes pieces by one table: it has no scale between the two."""
    return config.tie in ("output", "all") and not config.scale_embedding


def list_embedding_weights(config: ModelConfig, embedding_name: str) -> Iterator[WeightMapping]:
    """The tables of pieces, of a class that reads them by the table `embedding_name`."""
    yield WeightMapping("embedding.table.weight", (embedding_name,))
    if not is_tied(config):
        yield WeightMapping("output.weight", (OUTPUT_WEIGHT,))
    if config.output_bias:
        yield WeightMapping("output.bias", ("lm_head.bias",))


def scale_input_embedding(config: ModelConfig, state_dict: StateDict, embedding_name: str) -> StateDict:
    """Multiply the table of the input by the scale of embeddings, which the class does not have.

    Args:
        config: of the model.
        state_dict: the weights.
        embedding_name: the name of the table.
    """
    if config.scale_embedding:
        state_dict[embedding_name] = state_dict[embedding_name] * config.decoder.dim**0.5
    return state_dict


def export_settings(config: ModelConfig, vocab_size: int) -> JsonObject:
    """config.json."""
    stack = config.decoder
    return {
        "vocab_size": vocab_size,
        "n_positions": max_positions(config),
        "n_embd": stack.dim,
        "n_layer": stack.layers,
        "n_head": stack.heads,
        "n_inner": stack.feed_forward_dim,
        "activation_function": HUGGINGFACE_ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norm_eps,
        "resid_pdrop": config.dropout.residual,
        "embd_pdrop": config.dropout.embedding,
        "attn_pdrop": config.dropout.attention,
        "tie_word_embeddings": is_tied(config),
        **tfm_import_settings(config),
        **SPECIAL_TOKEN_IDS,
    }


def list_weights(config: ModelConfig) -> Iterator[WeightMapping]:
    """The table; products there are stored the other way round."""
    yield from list_embedding_weights(config, WORD_EMBEDDING)
    if config.positions == "learned":
        yield WeightMapping("embedding.positions.table.weight", (POSITION_EMBEDDING,))
    for i in range(config.decoder.layers):
        tfm_layer, hf_layer = f"layers.{i}", f"transformer.h.{i}"
        yield from linear_weights(f"{tfm_layer}.attention.query_key_value", f"{hf_layer}.attn.c_attn", transposed=True)
        yield from linear_weights(f"{tfm_layer}.attention.output", f"{hf_layer}.attn.c_proj", transposed=True)
        yield from linear_weights(f"{tfm_layer}.feed_forward.inner", f"{hf_layer}.mlp.c_fc", transposed=True)
        yield from linear_weights(f"{tfm_layer}.feed_forward.outer", f"{hf_layer}.mlp.c_proj", transposed=True)
        yield from norm_weights(f"{tfm_layer}.around_attention.norm", f"{hf_layer}.ln_1")
        yield from norm_weights(f"{tfm_layer}.around_feed_forward.norm", f"{hf_layer}.ln_2")
    yield from norm_weights("norm", "transformer.ln_f")


def finish_export(config: ModelConfig, state_dict: StateDict) -> StateDict:
    """Add positions that are no weights of tfm, and remove those that no training has reached."""
    if config.positions == "learned":
        state_dict[POSITION_EMBEDDING] = state_dict[POSITION_EMBEDDING][: max_positions(config)].clone()
    if config.positions == "sinusoidal":
        state_dict[POSITION_EMBEDDING] = sinusoids(config.decoder.dim, max_positions(config)).float()
    if config.positions == "none":
        state_dict[POSITION_EMBEDDING] = torch.zeros(max_positions(config), config.decoder.dim)
    return scale_input_embedding(config, state_dict, WORD_EMBEDDING)


def read_config(settings: JsonObject, state_dict: StateDict) -> JsonObject:
    """Return [model] of a recipe from config.json and the weights."""
    require_settings(
        settings, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False
    )
    dropout = {"residual": "resid_pdrop", "embedding": "embd_pdrop", "attention": "attn_pdrop"}
    keys = read_tfm_task_keys(settings, LANGUAGE_MODEL_TASKS)
    sides = 2 if TASK_SPECS[keys["task"]].translates else 1
    return {
        **keys,
        "architecture": "decoder_only",
        "decoder": {
            "layers": settings["n_layer"],
            "dim": settings["n_embd"],
            "heads": settings["n_head"],
            "feed_forward_dim": settings.get("n_inner") or 4 * settings["n_embd"],
        },
        "positions": "learned",
        "activation": import_activation(settings["activation_function"]),
        "tie": "all" if are_equal(state_dict[WORD_EMBEDDING], state_dict[OUTPUT_WEIGHT]) else "none",
        "scale_embedding": False,
        "norm_eps": settings["layer_norm_epsilon"],
        "max_length": settings["n_positions"] // sides,
        "dropout": {tfm_key: settings[hf_key] for tfm_key, hf_key in dropout.items()},
    }


def add_output_weight(state_dict: StateDict, embedding_name: str) -> StateDict:
    """The weights with the table of the output, which a file leaves out where it is that of the input."""
    return {OUTPUT_WEIGHT: state_dict[embedding_name], **state_dict}


def standardize_state_dict(settings: JsonObject, state_dict: StateDict) -> StateDict:
    """Rename the weights as in the whole model: some files leave out the beginning of each name."""
    prefix = "transformer."
    if not any(name.startswith(prefix) for name in state_dict):
        state_dict = {name if name == OUTPUT_WEIGHT else prefix + name: each for name, each in state_dict.items()}
    return add_output_weight(state_dict, WORD_EMBEDDING)


GPT2 = HuggingFaceClass(
    name="GPT2LMHeadModel",
    model_type="gpt2",
    pipeline="text-generation",
    supports=SupportedConfig(SUPPORTED_SETTINGS, STANDARD_HEADS_STACK_KEYS, ("decoder",)),
    settings=export_settings,
    weights=list_weights,
    finalize_export=finish_export,
    standardize_state_dict=standardize_state_dict,
    read=read_config,
    tables=(WORD_EMBEDDING, OUTPUT_WEIGHT),
    bias="lm_head.bias",
)
