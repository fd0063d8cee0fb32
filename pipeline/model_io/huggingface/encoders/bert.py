"""Encoder-only models of one family, with each of the heads: masked tokens, labels, tags, or none.

There every text has types of segments: the vector of the first is part of each position here. A masked language model
reads hidden pieces as a token of its own; ours as padding, which no text has. Such a token is one piece more there.
"""

from collections.abc import Iterator

import torch

from tfm.data.errors import format_count
from tfm.model.attention.positions import sinusoids
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.classes import (
    HUGGINGFACE_ACTIVATIONS,
    NEVER_PREDICTED_BIAS,
    SPECIAL_TOKEN_IDS,
    JsonObject,
    StateDict,
    are_equal,
    import_activation,
    is_zero,
    read_tfm_task_keys,
    require_settings,
    tfm_import_settings,
)
from tfm.pipeline.model_io.huggingface.encoders.families import EncoderFamily, HeadWeightNames
from tfm.pipeline.model_io.huggingface.encoders.labels import has_tfm_labels, read_label_names
from tfm.pipeline.model_io.huggingface.weights import WeightMapping, linear_weights, norm_weights
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.special import PAD_ID, SPECIAL_TOKENS

MASK_TOKEN_ID_KEY = "hidden"
"""The key in config.json for the piece as which hidden pieces are read, for `tfm import`."""


def export_settings(family: EncoderFamily, config: ModelConfig, vocab_size: int) -> JsonObject:
    """Return config.json, without the names of the labels.

    Args:
        family: of the class.
        config: of the model.
        vocab_size: the number of pieces.
    """
    stack, masked = config.encoder, TASK_SPECS[config.task].hides_pieces
    settings: JsonObject = {
        "vocab_size": vocab_size + masked,
        "hidden_size": stack.dim,
        "num_hidden_layers": stack.layers,
        "num_attention_heads": stack.heads,
        "intermediate_size": stack.feed_forward_dim,
        "hidden_act": HUGGINGFACE_ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout.residual,
        "attention_probs_dropout_prob": config.dropout.attention,
        "max_position_embeddings": _max_positions(config) + family.position_offset(SPECIAL_TOKEN_IDS),
        "type_vocab_size": 1,
        "layer_norm_eps": config.norm_eps,
        "tie_word_embeddings": masked and config.tie in ("output", "all") and not config.scale_embedding,
        **tfm_import_settings(config),
        **SPECIAL_TOKEN_IDS,
    }
    return settings | ({"tfm": {**settings["tfm"], MASK_TOKEN_ID_KEY: vocab_size}} if masked else {})


def _max_positions(config: ModelConfig) -> int:
    return config.max_length + config.begin_token


def list_weights(family: EncoderFamily, head: HeadWeightNames, config: ModelConfig) -> Iterator[WeightMapping]:
    """Yield the table of the weights and their places.

    Args:
        family: of the class.
        head: of the class.
        config: of the model.
    """
    yield from family.list_body_weights(config)
    if head.inner is not None:
        yield from linear_weights("head.inner" if head.inner_norm is None else "head.narrow.dense", head.inner)
    if head.inner_norm is not None:
        yield from norm_weights("head.narrow.norm", head.inner_norm)
    yield WeightMapping("output.weight", (head.classes,))
    if config.output_bias and head.bias is not None:
        yield WeightMapping("output.bias", (head.bias,))


def finish_export(
    family: EncoderFamily, head: HeadWeightNames, config: ModelConfig, state_dict: StateDict
) -> StateDict:
    """Add the weights that a class has and a model of tfm does not.

    The weights are positions that are no weights here, types of segments, a bias, and the piece as which hidden pieces
    are read.

    Args:
        family: of the class.
        head: of the class.
        config: of the model.
        state_dict: the weights that the table gives.
    """
    dim, longest = config.encoder.dim, _max_positions(config)
    if config.positions == "sinusoidal":
        state_dict[family.position_embeddings] = sinusoids(dim, longest).float()
    if config.positions == "none":
        state_dict[family.position_embeddings] = torch.zeros(longest, dim)
    state_dict[family.position_embeddings] = torch.cat(
        [torch.zeros(family.position_offset(SPECIAL_TOKEN_IDS), dim), state_dict[family.position_embeddings]]
    )
    if config.scale_embedding:
        state_dict[family.word_embeddings] = state_dict[family.word_embeddings] * dim**0.5
    state_dict[family.type_embeddings] = torch.zeros(1, dim)
    assert head.bias is not None  # classes without a head are read alone
    state_dict = {head.bias: torch.zeros(len(state_dict[head.classes])), **state_dict}
    if TASK_SPECS[config.task].hides_pieces:
        for name in (family.word_embeddings, head.classes):
            state_dict[name] = torch.cat([state_dict[name], state_dict[name][PAD_ID : PAD_ID + 1]])
        state_dict[head.bias] = torch.cat([state_dict[head.bias], torch.tensor([NEVER_PREDICTED_BIAS])])
        state_dict[_tied_bias_name(head.bias)] = state_dict[head.bias].clone()
    return state_dict


def standardize_state_dict(
    family: EncoderFamily, head: HeadWeightNames, labelled: bool, settings: JsonObject, state_dict: StateDict
) -> StateDict:
    """Rename the weights as in classes with a head, without those that nothing here needs.

    Args:
        family: of the class.
        head: of the class.
        labelled: whether the class gives labels.
        settings: config.json.
        state_dict: the weights of the file.
    """
    state_dict = {
        _rename_legacy_weight(name): tensor
        for name, tensor in state_dict.items()
        if not name.startswith("cls.seq_relationship.")
    }
    if not any(name.startswith(f"{family.prefix}.") for name in state_dict):
        state_dict = {f"{family.prefix}.{name}": tensor for name, tensor in state_dict.items()}
    pooler = f"{family.prefix}.pooler.dense"
    if head.inner != pooler:
        state_dict = {name: tensor for name, tensor in state_dict.items() if not name.startswith(f"{pooler}.")}
    types = state_dict.pop(family.type_embeddings)
    state_dict[family.position_embeddings] = (
        state_dict[family.position_embeddings][family.position_offset(settings) :] + types[:1]
    )
    if not labelled:
        state_dict = {head.classes: state_dict[family.word_embeddings], **state_dict}
        hidden = settings.get("tfm", {}).get(MASK_TOKEN_ID_KEY)
        if head.bias is not None:
            bias = state_dict.pop(_tied_bias_name(head.bias), state_dict.get(head.bias))  # of two, the layer's own
            bias = torch.zeros(len(state_dict[head.classes])) if bias is None else bias
            state_dict[head.bias] = bias[:hidden]
        state_dict |= {name: state_dict[name][:hidden] for name in (family.word_embeddings, head.classes)}
    elif not has_tfm_labels(settings) and head.bias is not None:
        state_dict[head.classes] = torch.cat(
            [torch.zeros(len(SPECIAL_TOKENS), settings["hidden_size"]), state_dict[head.classes]]
        )
        state_dict[head.bias] = torch.cat(
            [torch.full((len(SPECIAL_TOKENS),), NEVER_PREDICTED_BIAS), state_dict[head.bias]]
        )
    if head.bias is not None and is_zero(state_dict[head.bias]):
        del state_dict[head.bias]
    return state_dict


def _tied_bias_name(bias: str) -> str:
    """The other name of a masked language model's bias, which its output layer has."""
    return bias.replace(".bias", ".decoder.bias")


def _rename_legacy_weight(name: str) -> str:
    """The name of a weight in today's files; old ones name the weights of norms otherwise."""
    old = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    end = next((each for each in old if name.endswith(each)), None)
    return name if end is None else name.removesuffix(end) + old[end]


def read_config(
    family: EncoderFamily, head: HeadWeightNames, task: str, settings: JsonObject, state_dict: StateDict
) -> JsonObject:
    """Return [model] of a recipe from config.json and the weights.

    Args:
        family: of the class.
        head: of the class.
        task: of the model.
        settings: config.json.
        state_dict: the weights.
    """
    require_settings(settings, is_decoder=False, add_cross_attention=False, position_embedding_type="absolute")
    labels, activation = TASK_SPECS[task].labels, import_activation(settings["hidden_act"])
    if labels is not None:
        _check_problem_type(settings, labels, len(state_dict[head.classes]))
    if head.inner_norm is not None and family.head_activation not in (None, activation):
        raise ValueError(f"hidden_act = {settings['hidden_act']!r} is not that of its head, {family.head_activation}")
    return {
        **read_tfm_task_keys(settings, task),
        "architecture": "encoder_only",
        "encoder": {
            "layers": settings["num_hidden_layers"],
            "dim": settings["hidden_size"],
            "heads": settings["num_attention_heads"],
            "feed_forward_dim": settings["intermediate_size"],
        },
        "norm": family.norm,
        "embedding_norm": family.embedding_norm,
        "positions": "learned",
        "pooling": "first" if labels == "label" else "mean",
        "activation": activation,
        "tie": "all"
        if labels is None and are_equal(state_dict[family.word_embeddings], state_dict[head.classes])
        else "none",
        "scale_embedding": False,
        "output_bias": head.bias in state_dict,
        "head_transform": head.inner_norm is not None,
        "norm_eps": settings["layer_norm_eps"],
        "max_length": len(state_dict[family.position_embeddings]),
        "dropout": {
            "residual": settings["hidden_dropout_prob"],
            "embedding": settings["hidden_dropout_prob"],
            "attention": settings["attention_probs_dropout_prob"],
        },
    }


def _check_problem_type(settings: JsonObject, kind: LabelKind, rows: int) -> None:
    """Raise ValueError if a text has not one of several labels, or a word one of several tags."""
    if settings.get("problem_type") not in (None, "single_label_classification"):
        raise ValueError(f"problem_type = {settings['problem_type']!r} is not supported: a text has one label here")
    names = read_label_names(settings, kind)
    if len(names) + len(SPECIAL_TOKENS) != rows:
        raise ValueError(
            f"id2label has {format_count(len(names), 'name')} and its output "
            f"{format_count(rows - len(SPECIAL_TOKENS), 'row')}"
        )
    if len(names) < 2:
        raise ValueError("it has one label, so what it gives is a figure (regression) and no label")
