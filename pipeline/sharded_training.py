"""Settings that do not go together with `training.shard`, which shards parameters, `training.recompute`, and Muon."""

from tfm.model.config import ModelConfig
from tfm.pipeline.training_config import TrainingConfig

LAYERED_ARCHITECTURES = ("transformer", "decoder_only", "encoder_only")
"""Architectures of layers that are units: gathered together, or computed again."""


def recompute_problem(training: TrainingConfig, model: ModelConfig) -> str | None:
    """Why the layers of a model cannot be computed again; None if they can, or are not to be.

    Args:
        training: the [training] part of a recipe.
        model: the [model] part of a recipe.
    """
    if training.recompute and model.architecture not in LAYERED_ARCHITECTURES:
        return f'training.recompute is for layers of the Transformer, not for architecture = "{model.architecture}"'
    return None


def muon_problem(training: TrainingConfig, model: ModelConfig) -> str | None:
    """Why Muon cannot train a model; None if it can, or another optimizer is to.

    Args:
        training: the [training] part of a recipe.
        model: the [model] part of a recipe.
    """
    if training.optimizer.name != "muon":
        return None
    reason = 'training.optimizer.name = "muon" is for matrices between hidden features, and'
    if model.architecture in ("skip_gram", "cbow"):
        return f'{reason} architecture = "{model.architecture}" has none: take "adam"'
    has_attention_only = model.mixings == {"attention"} and model.feed_forward == "none"
    has_no_matrix = has_attention_only and not model.attention_projections and not model.output_projection
    has_others = model.vision or model.canine or model.head_transform or model.has_pooler
    if has_no_matrix and model.architecture in LAYERED_ARCHITECTURES and model.embedding_dim is None and not has_others:
        return f'{reason} this model has none, as its projections and feed-forward layers are taken away: take "adam"'
    return None


def sharding_problem(training: TrainingConfig, model: ModelConfig) -> str | None:
    """Why the parameters of a training cannot be sharded; None if they can, or are not to be.

    Args:
        training: the [training] part of a recipe.
        model: the [model] part of a recipe.
    """
    if training.shard == "none":
        return None
    setting = f'training.shard = "{training.shard}"'
    if model.architecture not in LAYERED_ARCHITECTURES:
        return f'{setting} is for layers of the Transformer, not for architecture = "{model.architecture}"'
    if training.optimizer.name == "muon":
        return f'{setting}: muon needs whole matrices, but a process has only some rows: choose "adam"'
    parts = "processes may read their batches in more parts"
    conflicts = {
        "model.adaptive": (model.has_adaptive_tails, "a process whose batch has no rare word has no gradient of it"),
        "model.dropout.depth": (bool(model.dropout.depth), "processes would leave out different layers"),
        "training.r_drop": (training.r_drop is not None, "a gathered layer is for one pass"),
        "training.bpe_dropout": (training.bpe_dropout is not None, parts),
        "training.unigram_alpha": (training.unigram_alpha is not None, parts),
        'training.batch_tokens = "auto"': (training.batch_tokens == "auto", "the search tries the whole model"),
    }
    for key, (is_set, reason) in conflicts.items():
        if is_set:
            return f"{setting}: {key} does not go with it, because {reason}: remove one of them"
    return None
