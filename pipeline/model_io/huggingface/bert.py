"""Encoder-only models: pre-norm, without a norm of the embeddings, is `MegatronBert` (Shoeybi et al. 2019).

Its classifiers pool the first piece and have a bias, which is zero here; its masked language models have a layer before
the output that ours do not have, so these are not held.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch

from tfm.model.attention.positions import sinusoids
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import (
    ACTIVATIONS,
    TOKENS,
    HuggingFaceClass,
    Settings,
    State,
    activation_of,
    own_keys,
    task_of,
    want,
)
from tfm.pipeline.model_io.huggingface.fits import ANY, HEADS_AS_USUAL, Held
from tfm.pipeline.model_io.huggingface.weights import Weight, linear, norm
from tfm.pipeline.tasks.abilities import ABILITIES, tasks_that

EMBEDDINGS = "bert.embeddings"
CLASSES, BIAS = "classifier.weight", "classifier.bias"
WORDS, POSITIONS = f"{EMBEDDINGS}.word_embeddings.weight", f"{EMBEDDINGS}.position_embeddings.weight"


def settings(config: ModelConfig, vocab_size: int) -> Settings:
    """config.json, without the names of the labels."""
    stack = config.encoder
    return {
        "vocab_size": vocab_size,
        "hidden_size": stack.dim,
        "num_hidden_layers": stack.layers,
        "num_attention_heads": stack.heads,
        "intermediate_size": stack.feed_forward_dim,
        "hidden_act": ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout.residual,
        "attention_probs_dropout_prob": config.dropout.attention,
        "max_position_embeddings": config.max_length,
        "type_vocab_size": 1,
        "layer_norm_eps": config.norm_eps,
        "tie_word_embeddings": False,
        **own_keys(config),
        **TOKENS,
    }


def weights(config: ModelConfig) -> Iterator[Weight]:
    """The table."""
    yield Weight("embedding.table.weight", (WORDS,))
    if config.positions == "learned":
        yield Weight("embedding.positions.table.weight", (POSITIONS,))
    for i in range(config.encoder.layers):
        ours, theirs = f"encoder.{i}", f"bert.encoder.layer.{i}"
        products = [f"{theirs}.attention.self.{name}" for name in ("query", "key", "value")]
        yield from linear(f"{ours}.attention.query_key_value", *products, sizes=[config.encoder.dim] * 3)
        yield from linear(f"{ours}.attention.output", f"{theirs}.attention.output.dense")
        yield from linear(f"{ours}.feed_forward.inner", f"{theirs}.intermediate.dense")
        yield from linear(f"{ours}.feed_forward.outer", f"{theirs}.output.dense")
        yield from norm(f"{ours}.around_attention.norm", f"{theirs}.attention.ln")
        yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.ln")
    yield from norm("encoder_norm", "bert.encoder.ln")
    if ABILITIES[config.task].labels == "label":
        yield from linear("head.inner", "bert.pooler.dense")
    yield Weight("output.weight", (CLASSES,))
    if config.output_bias:
        yield Weight("output.bias", (BIAS,))


def finished(config: ModelConfig, found: State) -> State:
    """With what the class has and ours does not: positions that are no weights, types of segments, a bias."""
    dim = config.encoder.dim
    if config.positions == "sinusoidal":
        found[POSITIONS] = sinusoids(dim, config.max_length).float()
    if config.positions == "none":
        found[POSITIONS] = torch.zeros(config.max_length, dim)
    if config.scale_embedding:
        found[WORDS] = found[WORDS] * dim**0.5
    found[f"{EMBEDDINGS}.token_type_embeddings.weight"] = torch.zeros(1, dim)
    return {BIAS: torch.zeros(len(found[CLASSES])), **found}


def begun(settings: Settings, found: State) -> State:
    """The weights, where the vector of the first segment is part of each position: there are no others here."""
    first = found[f"{EMBEDDINGS}.token_type_embeddings.weight"][0]
    return found | {POSITIONS: found[POSITIONS] + first}


def read(settings: Settings, found: State, task: str) -> Settings:
    """[model] of what config.json and the weights are."""
    want(settings, is_decoder=False, add_cross_attention=False, position_embedding_type="absolute")
    return {
        **task_of(settings, task),
        "architecture": "encoder_only",
        "encoder": {
            "layers": settings["num_hidden_layers"],
            "dim": settings["hidden_size"],
            "heads": settings["num_attention_heads"],
            "feed_forward_dim": settings["intermediate_size"],
        },
        "positions": "learned",
        "pooling": "first" if "bert.pooler.dense.weight" in found else "mean",
        "activation": activation_of(settings["hidden_act"]),
        "tie": "none",
        "scale_embedding": False,
        "output_bias": bool(found[BIAS].any()),
        "norm_eps": settings["layer_norm_eps"],
        "max_length": settings["max_position_embeddings"],
        "dropout": {
            "residual": settings["hidden_dropout_prob"],
            "embedding": settings["hidden_dropout_prob"],
            "attention": settings["attention_probs_dropout_prob"],
        },
    }


LABELS, TAGS = tasks_that(lambda each: each.labels == "label"), tasks_that(lambda each: each.labels == "tags")
_KEYS: dict[str, object] = {
    "architecture": ("encoder_only",),
    "norm": ("pre",),
    "norm_eps": ANY,
    "output_bias": ANY,
    "positions": ("none", "sinusoidal", "learned"),
    "activation": tuple(ACTIVATIONS),
    "tie": ANY,
    "scale_embedding": ANY,
    "embedding_dim": ANY,
    "decoder": ANY,
}
CLASSIFIER = HuggingFaceClass(
    name="MegatronBertForSequenceClassification",
    model_type="megatron-bert",
    pipeline="text-classification",
    held=Held(
        _KEYS | {"task": LABELS, "pooling": ("first",)},
        HEADS_AS_USUAL,
        ("encoder",),
    ),
    settings=settings,
    weights=weights,
    finished=finished,
    begun=begun,
    read=partial(read, task=LABELS[0]),
    tables=(WORDS,),
)
TAGGER = replace(
    CLASSIFIER,
    name="MegatronBertForTokenClassification",
    pipeline="token-classification",
    read=partial(read, task=TAGS[0]),
    held=Held(_KEYS | {"task": TAGS, "pooling": ANY}, HEADS_AS_USUAL, ("encoder",)),
)
