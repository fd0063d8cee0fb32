"""Encoder-only models: pre-norm, without a norm of the embeddings, is `MegatronBert` (Shoeybi et al. 2019).

Its classifiers pool the first piece and have a bias, which is zero here; its masked language models have a layer before
the output that ours do not have, so these are not held.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from tfm.model.attention.positions import sinusoids
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import ACTIVATIONS, HuggingFaceClass, Settings, State
from tfm.pipeline.model_io.huggingface.fits import ANY, HEADS_AS_USUAL, Held
from tfm.pipeline.model_io.huggingface.weights import Weight, linear, norm
from tfm.pipeline.tasks.abilities import ABILITIES, tasks_that
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

EMBEDDINGS = "bert.embeddings"
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
        "layer_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
    }


def weights(config: ModelConfig) -> list[Weight]:
    """The table."""
    return list(_weights(config))


def _weights(config: ModelConfig) -> Iterator[Weight]:
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
    yield Weight("output.weight", ("classifier.weight",))


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
    found["classifier.bias"] = torch.zeros(len(found["classifier.weight"]))
    return found


_KEYS: dict[str, object] = {
    "architecture": ("encoder_only",),
    "norm": ("pre",),
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
        _KEYS | {"task": tasks_that(lambda each: each.labels == "label"), "pooling": ("first",)},
        HEADS_AS_USUAL,
        ("encoder",),
    ),
    settings=settings,
    weights=weights,
    finished=finished,
)
TAGGER = replace(
    CLASSIFIER,
    name="MegatronBertForTokenClassification",
    pipeline="token-classification",
    held=Held(
        _KEYS | {"task": tasks_that(lambda each: each.labels == "tags"), "pooling": ANY}, HEADS_AS_USUAL, ("encoder",)
    ),
)
