"""Encoder-decoders: pre-norm as `PegasusForConditionalGeneration`, post-norm as `MarianMTModel`.

Both keep their positions in a table. Sines and cosines are interleaved in ours; there all sines come before all
cosines, so that the columns of the whole stack are reordered, and with them all that reads or writes its rows.

Pegasus begins a target with its padding token: there our begin token is both. marian.py has what only Marian has.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from tfm.model.attention.positions import sinusoids
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.model_io.huggingface.classes import (
    HUGGINGFACE_ACTIVATIONS,
    HuggingFaceClass,
    JsonObject,
    StateDict,
    detect_tied_embeddings,
    import_activation,
    is_zero,
    read_tfm_task_keys,
    require_settings,
    tfm_import_settings,
)
from tfm.pipeline.model_io.huggingface.supported import ANY_VALUE, STANDARD_HEADS_STACK_KEYS, SupportedConfig
from tfm.pipeline.model_io.huggingface.weights import (
    WeightMapping,
    deinterleaving_permutation,
    linear_weights,
    norm_weights,
)
from tfm.pipeline.tasks.abilities import select_tasks
from tfm.tokenizer.special import BOS_ID, EOS_ID

MAX_POSITION_TABLE_ELEMENTS = 2**25
"""The most numbers of a table of positions that is compared with sines and cosines."""
SHARED_EMBEDDING = "model.shared.weight"
EMBEDDING_WEIGHTS = (
    SHARED_EMBEDDING,
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
FINAL_LOGITS_BIAS = "final_logits_bias"
STACK_PREFIX_BY_EMBEDDING = {"source_embedding": "model.encoder", "target_embedding": "model.decoder"}


def supported_encoder_decoder(norm_placement: str) -> SupportedConfig:
    """The part of an encoder-decoder that both classes have."""
    keys = {
        "architecture": ("transformer",),
        "task": select_tasks(lambda each: each.translates),
        "norm": (norm_placement,),
        "positions": ("none", "sinusoidal", "learned"),
        "activation": tuple(HUGGINGFACE_ACTIVATIONS),
        "tie": ANY_VALUE,
        "scale_embedding": ANY_VALUE,
        "output_bias": ANY_VALUE,
        "embedding_dim": ANY_VALUE,
        "pooling": ANY_VALUE,
    }
    return SupportedConfig(keys, STANDARD_HEADS_STACK_KEYS, ("encoder", "decoder"))


def export_settings(config: ModelConfig, vocab_size: int) -> JsonObject:
    """Return config.json, without the parts that differ between the classes."""
    return {
        "is_encoder_decoder": True,
        "vocab_size": vocab_size,
        "d_model": config.encoder.dim,
        **_stack_settings("encoder", config.encoder),
        **_stack_settings("decoder", config.decoder),
        "activation_function": HUGGINGFACE_ACTIVATIONS[config.activation],
        "max_position_embeddings": config.max_length,
        "scale_embedding": config.scale_embedding,
        "tie_word_embeddings": config.tie == "all",
        "dropout": config.dropout.residual,
        "attention_dropout": config.dropout.attention,
        "activation_dropout": config.dropout.feed_forward,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "normalize_before": config.norm == "pre",  # CTranslate2 asks for these two
        "normalize_embedding": False,
        **tfm_import_settings(config),
    }


def _stack_settings(name: str, stack: StackConfig) -> JsonObject:
    return {
        f"{name}_layers": stack.layers,
        f"{name}_attention_heads": stack.heads,
        f"{name}_ffn_dim": stack.feed_forward_dim,
        f"{name}_layerdrop": 0.0,
    }


def list_weights(config: ModelConfig) -> Iterator[WeightMapping]:
    """The table of both classes."""
    order = deinterleaving_permutation(config.encoder.dim)
    if config.tie == "all":
        yield WeightMapping("source_embedding.table.weight", (SHARED_EMBEDDING,), columns=order)
    else:
        for embedding, prefix in STACK_PREFIX_BY_EMBEDDING.items():
            yield WeightMapping(f"{embedding}.table.weight", (f"{prefix}.embed_tokens.weight",), columns=order)
        yield WeightMapping("output.weight", ("lm_head.weight",), columns=order)
    if config.output_bias:
        yield WeightMapping("output.bias", (FINAL_LOGITS_BIAS,), as_row=True)
    for embedding, prefix in STACK_PREFIX_BY_EMBEDDING.items():
        if config.embedding_norm:
            yield from norm_weights(f"{embedding}.norm", f"{prefix}.layernorm_embedding", order)
        if config.positions == "learned":
            yield WeightMapping(
                f"{embedding}.positions.table.weight", (f"{prefix}.embed_positions.weight",), columns=order
            )
    for side in "encoder", "decoder":
        if config.norm == "pre":
            yield from norm_weights(f"{side}_norm", f"model.{side}.layer_norm", order)
        for i in range(getattr(config, side).layers):
            yield from _layer_weights(
                f"{side}.{i}", f"model.{side}.layers.{i}", order, attends_to_memory=side == "decoder"
            )


def _layer_weights(
    tfm_prefix: str, hf_prefix: str, permutation: Tensor, *, attends_to_memory: bool
) -> Iterator[WeightMapping]:
    dim = len(permutation)
    products = [f"{hf_prefix}.self_attn.{name}_proj" for name in "qkv"]
    yield from linear_weights(
        f"{tfm_prefix}.attention.query_key_value", *products, sizes=[dim] * 3, columns=permutation
    )
    yield from linear_weights(f"{tfm_prefix}.attention.output", f"{hf_prefix}.self_attn.out_proj", rows=permutation)
    yield from norm_weights(f"{tfm_prefix}.around_attention.norm", f"{hf_prefix}.self_attn_layer_norm", permutation)
    if attends_to_memory:
        query, *products = (f"{hf_prefix}.encoder_attn.{name}_proj" for name in "qkv")
        yield from linear_weights(f"{tfm_prefix}.cross_attention.query", query, columns=permutation)
        yield from linear_weights(
            f"{tfm_prefix}.cross_attention.key_value", *products, sizes=[dim] * 2, columns=permutation
        )
        yield from linear_weights(
            f"{tfm_prefix}.cross_attention.output", f"{hf_prefix}.encoder_attn.out_proj", rows=permutation
        )
        yield from norm_weights(
            f"{tfm_prefix}.around_cross_attention.norm", f"{hf_prefix}.encoder_attn_layer_norm", permutation
        )
    yield from linear_weights(f"{tfm_prefix}.feed_forward.inner", f"{hf_prefix}.fc1", columns=permutation)
    yield from linear_weights(f"{tfm_prefix}.feed_forward.outer", f"{hf_prefix}.fc2", rows=permutation)
    yield from norm_weights(f"{tfm_prefix}.around_feed_forward.norm", f"{hf_prefix}.final_layer_norm", permutation)


def add_position_weights(config: ModelConfig, state_dict: StateDict) -> StateDict:
    """Their weights and the position tables, which are no weights of ours where positions are not learned; and the
    table that both classes have besides those of encoder, decoder and output, where these are not one."""
    if config.positions != "learned":
        order = deinterleaving_permutation(config.encoder.dim)
        table = sinusoids(config.encoder.dim, config.max_length).float()[:, order]
        table = table if config.positions == "sinusoidal" else torch.zeros_like(table)
        state_dict |= {
            f"{prefix}.embed_positions.weight": table.clone() for prefix in STACK_PREFIX_BY_EMBEDDING.values()
        }
    if SHARED_EMBEDDING not in state_dict:
        state_dict[SHARED_EMBEDDING] = state_dict["model.encoder.embed_tokens.weight"].clone()
    return state_dict


def finish_pegasus_export(config: ModelConfig, state_dict: StateDict) -> StateDict:
    """Convert the weights that the table gives to Pegasus."""
    state_dict = add_position_weights(config, state_dict)
    return {FINAL_LOGITS_BIAS: torch.zeros(1, len(state_dict[SHARED_EMBEDDING])), **state_dict}


def read_config(settings: JsonObject, state_dict: StateDict, norm_placement: str) -> JsonObject:
    """Return [model] of a recipe from config.json and the weights.

    Args:
        settings: config.json.
        state_dict: the weights.
        norm_placement: "pre" or "post".
    """
    require_settings(settings, normalize_embedding=False, is_encoder_decoder=True)
    dim, length = settings["d_model"], settings["max_position_embeddings"]
    tables = [
        state_dict[name]
        for prefix in STACK_PREFIX_BY_EMBEDDING.values()
        if (name := f"{prefix}.embed_positions.weight") in state_dict
    ]
    for table in tables:
        if table.shape != (length, dim):
            raise ValueError(f"its positions are {tuple(table.shape)}, not {(length, dim)}, as config.json has them")
        if table.numel() > MAX_POSITION_TABLE_ELEMENTS:
            raise ValueError(
                f"its positions have {table.numel():,} numbers, and {MAX_POSITION_TABLE_ELEMENTS:,} at most are read"
            )
    expected = (
        sinusoids(dim, length).float()[:, deinterleaving_permutation(dim)] if tables and not tables[0].is_meta else None
    )
    if expected is None or all(torch.allclose(table, expected, atol=1e-5) for table in tables):
        positions = "sinusoidal"  # a file without tables, or with shapes only, which are the same
    elif len(tables) < len(STACK_PREFIX_BY_EMBEDDING):
        raise ValueError("it has learned positions of one side alone")
    else:
        positions = "none" if all(map(is_zero, tables)) else "learned"
    return {
        **read_common_config(settings, state_dict),
        "norm": norm_placement,
        "positions": positions,
        "max_length": length,
    }


def read_common_config(settings: JsonObject, state_dict: StateDict) -> JsonObject:
    """Return the settings that all encoder-decoders have, whatever their norms and positions are."""
    return {
        **read_tfm_task_keys(settings, "translation"),
        "encoder": _read_stack_config(settings, "encoder"),
        "decoder": _read_stack_config(settings, "decoder"),
        "activation": import_activation(settings["activation_function"]),
        "tie": detect_tied_embeddings(state_dict, *EMBEDDING_WEIGHTS[1:]),
        "scale_embedding": settings["scale_embedding"],
        "output_bias": not is_zero(state_dict[FINAL_LOGITS_BIAS]),
        "dropout": {
            "residual": settings["dropout"],
            "embedding": settings["dropout"],
            "attention": settings["attention_dropout"],
            "feed_forward": settings["activation_dropout"],
        },
    }


def _read_stack_config(settings: JsonObject, name: str) -> JsonObject:
    return {
        "layers": settings[f"{name}_layers"],
        "dim": settings["d_model"],
        "heads": settings[f"{name}_attention_heads"],
        "feed_forward_dim": settings[f"{name}_ffn_dim"],
    }


def untie_embeddings(state_dict: StateDict) -> StateDict:
    """Copy shared tables, so that each side has its own, and add a bias of zeros if there is none.

    A table may have been padded to more rows, and the bias not. Raises ValueError if the bias is longer.
    """
    state_dict = dict(state_dict)
    shared_table = (
        state_dict[SHARED_EMBEDDING]
        if SHARED_EMBEDDING in state_dict
        else state_dict["model.decoder.embed_tokens.weight"]
    )
    for name in EMBEDDING_WEIGHTS:
        state_dict.setdefault(name, shared_table)
    rows, bias = len(state_dict["lm_head.weight"]), state_dict.get(FINAL_LOGITS_BIAS, torch.zeros(1, 0))
    if bias.dim() != 2 or bias.shape[0] != 1 or bias.shape[1] > rows:
        raise ValueError(f"its {FINAL_LOGITS_BIAS} is {tuple(bias.shape)}, and its table of pieces has {rows} rows")
    state_dict[FINAL_LOGITS_BIAS] = torch.cat([bias, bias.new_zeros(1, rows - bias.shape[1])], dim=1)
    return state_dict


def standardize_tied_weights(settings: JsonObject, state_dict: StateDict) -> StateDict:
    """Prepare the weights of an import with each table of pieces by itself, as `standardize_state_dict` of a class."""
    return untie_embeddings(state_dict)


PEGASUS = HuggingFaceClass(
    name="PegasusForConditionalGeneration",
    model_type="pegasus",
    pipeline="translation",
    supports=supported_encoder_decoder("pre"),
    settings=lambda config, size: (
        export_settings(config, size) | {"pad_token_id": BOS_ID, "decoder_start_token_id": BOS_ID}
    ),
    weights=list_weights,
    finalize_export=finish_pegasus_export,
    read=partial(read_config, norm_placement="pre"),
    standardize_state_dict=standardize_tied_weights,
    tables=EMBEDDING_WEIGHTS,
    bias=FINAL_LOGITS_BIAS,
)
