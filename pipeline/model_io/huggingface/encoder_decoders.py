"""Encoder-decoders: pre-norm as `PegasusForConditionalGeneration`, post-norm as `MarianMTModel`.

Both keep their positions in a table. Sines and cosines are interleaved in ours; there all sines come before all
cosines, so that the columns of the whole stack are reordered, and with them all that reads or writes its rows.

Pegasus begins a target with its padding token: there our begin token is both. Marian begins with a vector of zeros (so
CTranslate2 reads it): a piece more, the last, has that vector and is never predicted, and the vector of our begin token
is added to the position where only it can stand, the first one of the decoder.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from tfm.model.attention.positions import sinusoids
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.model_io.huggingface.classes import ACTIVATIONS, HuggingFaceClass, Settings, State
from tfm.pipeline.model_io.huggingface.fits import ANY, HEADS_AS_USUAL, Held
from tfm.pipeline.model_io.huggingface.weights import Weight, halves_apart, linear, norm
from tfm.pipeline.tasks.abilities import tasks_that
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

NEVER = -1e4
"""A logit whose probability is 0 in every precision."""
SHARED = "model.shared.weight"
TABLES = (SHARED, "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
EMBEDS = {"source_embedding": "model.encoder", "target_embedding": "model.decoder"}


def held(norm_placement: str) -> Held:
    """Of an encoder-decoder, what both classes have."""
    keys = {
        "architecture": ("transformer",),
        "task": tasks_that(lambda each: each.translates),
        "norm": (norm_placement,),
        "positions": ("none", "sinusoidal", "learned"),
        "activation": tuple(ACTIVATIONS),
        "tie": ANY,
        "scale_embedding": ANY,
        "embedding_dim": ANY,
        "pooling": ANY,
    }
    return Held(keys, HEADS_AS_USUAL, ("encoder", "decoder"))


def settings(config: ModelConfig, vocab_size: int) -> Settings:
    """config.json, without what differs between the classes."""
    return {
        "is_encoder_decoder": True,
        "vocab_size": vocab_size,
        "d_model": config.encoder.dim,
        **_stack("encoder", config.encoder),
        **_stack("decoder", config.decoder),
        "activation_function": ACTIVATIONS[config.activation],
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
    }


def _stack(name: str, stack: StackConfig) -> Settings:
    return {
        f"{name}_layers": stack.layers,
        f"{name}_attention_heads": stack.heads,
        f"{name}_ffn_dim": stack.feed_forward_dim,
        f"{name}_layerdrop": 0.0,
    }


def weights(config: ModelConfig) -> list[Weight]:
    """The table of both classes."""
    order = halves_apart(config.encoder.dim)
    return list(_weights(config, order))


def _weights(config: ModelConfig, order: Tensor) -> Iterator[Weight]:
    if config.tie == "all":
        yield Weight("source_embedding.table.weight", (SHARED,), columns=order)
    else:
        for ours, theirs in EMBEDS.items():
            yield Weight(f"{ours}.table.weight", (f"{theirs}.embed_tokens.weight",), columns=order)
        yield Weight("output.weight", ("lm_head.weight",), columns=order)
    for ours, theirs in EMBEDS.items():
        if config.positions == "learned":
            yield Weight(f"{ours}.positions.table.weight", (f"{theirs}.embed_positions.weight",), columns=order)
    for side in "encoder", "decoder":
        if config.norm == "pre":
            yield from norm(f"{side}_norm", f"model.{side}.layer_norm", order)
        for i in range(getattr(config, side).layers):
            yield from _layer(f"{side}.{i}", f"model.{side}.layers.{i}", order, attends_to_memory=side == "decoder")


def _layer(ours: str, theirs: str, order: Tensor, *, attends_to_memory: bool) -> Iterator[Weight]:
    dim = len(order)
    products = [f"{theirs}.self_attn.{name}_proj" for name in "qkv"]
    yield from linear(f"{ours}.attention.query_key_value", *products, sizes=[dim] * 3, columns=order)
    yield from linear(f"{ours}.attention.output", f"{theirs}.self_attn.out_proj", rows=order)
    yield from norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm", order)
    if attends_to_memory:
        query, *products = (f"{theirs}.encoder_attn.{name}_proj" for name in "qkv")
        yield from linear(f"{ours}.cross_attention.query", query, columns=order)
        yield from linear(f"{ours}.cross_attention.key_value", *products, sizes=[dim] * 2, columns=order)
        yield from linear(f"{ours}.cross_attention.output", f"{theirs}.encoder_attn.out_proj", rows=order)
        yield from norm(f"{ours}.around_cross_attention.norm", f"{theirs}.encoder_attn_layer_norm", order)
    yield from linear(f"{ours}.feed_forward.inner", f"{theirs}.fc1", columns=order)
    yield from linear(f"{ours}.feed_forward.outer", f"{theirs}.fc2", rows=order)
    yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm", order)


def with_positions(config: ModelConfig, found: State) -> State:
    """Their weights and the position tables, which are no weights of ours where positions are not learned; and the
    table that both classes have besides those of encoder, decoder and output, where these are not one."""
    if config.positions != "learned":
        order = halves_apart(config.encoder.dim)
        table = sinusoids(config.encoder.dim, config.max_length).float()[:, order]
        table = table if config.positions == "sinusoidal" else torch.zeros_like(table)
        found |= {f"{theirs}.embed_positions.weight": table.clone() for theirs in EMBEDS.values()}
    if SHARED not in found:
        found[SHARED] = found["model.encoder.embed_tokens.weight"].clone()
    return found


def as_pegasus(config: ModelConfig, found: State) -> State:
    """What the table gives, as Pegasus has it."""
    return with_positions(config, found) | {"final_logits_bias": torch.zeros(1, len(found[_of_decoder(found)]))}


def as_marian(config: ModelConfig, found: State) -> State:
    """What the table gives, as Marian has it: with the piece that it begins with."""
    found = with_positions(config, found)
    begin = found[_of_decoder(found)][BOS_ID]
    found["model.decoder.embed_positions.weight"][0] += begin * _scale(config)
    for name in {*TABLES} & {*found}:
        found[name] = torch.cat([found[name], torch.zeros(1, config.encoder.dim)])
    bias = torch.zeros(1, len(found[SHARED]))
    bias[:, -1] = NEVER
    return found | {"final_logits_bias": bias}


def _of_decoder(found: State) -> str:
    """The name of the table of target pieces."""
    return next(name for name in ("model.decoder.embed_tokens.weight", SHARED) if name in found)


def _scale(config: ModelConfig) -> float:
    return config.encoder.dim**0.5 if config.scale_embedding else 1.0


PEGASUS = HuggingFaceClass(
    name="PegasusForConditionalGeneration",
    model_type="pegasus",
    pipeline="translation",
    held=held("pre"),
    settings=lambda config, size: settings(config, size) | {"pad_token_id": BOS_ID, "decoder_start_token_id": BOS_ID},
    weights=weights,
    finished=as_pegasus,
)
MARIAN = HuggingFaceClass(
    name="MarianMTModel",
    model_type="marian",
    pipeline="translation",
    held=held("post"),
    settings=lambda config, size: (
        settings(config, size + 1)
        | {
            "decoder_vocab_size": size + 1,
            "share_encoder_decoder_embeddings": True,
            "pad_token_id": PAD_ID,
            "decoder_start_token_id": size,
        }
    ),
    weights=weights,
    finished=as_marian,
)
