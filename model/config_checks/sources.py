"""Checks of the values where the source is an image (model.vision) or characters (model.canine)."""

from collections.abc import Mapping

from tfm.model.config_fields import (
    CHARACTER_TASKS,
    IMAGE_TASKS,
    Architecture,
    ModelFields,
    Task,
)

# Images


def vision_task_problem(config: ModelFields) -> str | None:
    return None if config.vision is None else _task_problem(config, IMAGE_TASKS, "images (model.vision)")


def vision_tie_problem(config: ModelFields) -> str | None:
    if config.vision is not None and len(config.embedded_sides) == 2 and config.tie in ("embeddings", "all"):
        return f'tie = "{config.tie}" shares the embeddings of the source, and an image has none: "output" or "none"'
    return None


def image_source_vectors_problem(config: ModelFields) -> str | None:
    if config.vision is not None and config.source_vectors is not None:
        return "source_vectors are of pieces of text, and the source is an image (model.vision)"
    return None


def image_reversal_problem(config: ModelFields) -> str | None:
    reason = "is of an encoder that reads text; an image (model.vision) is not read in an order"
    return None if config.vision is None else _reading_direction_problem(config, reason)


def vision_pooling_problem(config: ModelFields) -> str | None:
    if config.vision is not None and config.pooling == "first":
        return 'pooling = "first" would take the upper left corner of an image (model.vision): "mean" or "max"'
    return None


def num_layers_problem(config: ModelFields) -> str | None:
    if config.decoder.layers == 0:
        return "decoder.layers must be 1 or more"
    if config.encoder.layers == 0 and (config.vision is None or config.vision.encoder != "convolution"):
        return 'encoder.layers must be 1 or more, but with vision.encoder = "convolution", which has layers of its own'
    return None


# Characters


def canine_task_problem(config: ModelFields) -> str | None:
    return None if config.canine is None else _task_problem(config, CHARACTER_TASKS, "characters (model.canine)")


def canine_vision_problem(config: ModelFields) -> str | None:
    if config.canine is not None and config.vision is not None:
        return "the source is an image (model.vision) or characters (model.canine), not both"
    return None


def canine_table_problem(config: ModelFields) -> str | None:
    if config.canine is None:
        return None
    if len(config.embedded_sides) == 2 and config.tie in ("embeddings", "all"):
        return (
            f'tie = "{config.tie}" shares the table of source pieces, and characters (model.canine) have none: '
            '"output" or "none"'
        )
    if config.source_vectors is not None:
        return "source_vectors are of pieces, and the source is read as characters (model.canine)"
    return None


def canine_hashes_problem(config: ModelFields) -> str | None:
    width = config.embedding_dim or config.encoder.dim
    if config.canine is not None and width % config.canine.hashes:
        return f"canine.hashes ({config.canine.hashes}) must divide the width of embeddings ({width})"
    return None


def canine_order_problem(config: ModelFields) -> str | None:
    reason = "is of an encoder that reads step by step; that of model.canine attends"
    return None if config.canine is None else _reading_direction_problem(config, reason)


def canine_with_other_mixing_problem(config: ModelFields) -> str | None:
    if config.canine is not None and config.mixings != {"attention"}:
        mixing = sorted(config.mixings - {"attention"})[0]
        return f'model.canine has layers of attention: mixing = "attention", not "{mixing}"'
    return None


def _task_problem(
    config: ModelFields, tasks_by_architecture: Mapping[Architecture, tuple[Task, ...]], source_kind: str
) -> str | None:
    if config.task in tasks_by_architecture.get(config.architecture, ()):
        return None
    pairs = ((name, task) for name, tasks in tasks_by_architecture.items() for task in tasks)
    choices = ", ".join(f'"{name}" ("{task}")' for name, task in pairs)
    return (
        f'architecture = "{config.architecture}" with task = "{config.task}" does not read {source_kind}; '
        f"these do: {choices}"
    )


def _reading_direction_problem(config: ModelFields, reason: str) -> str | None:
    for name in ("bidirectional", "reverse_source"):
        if getattr(config.recurrent, name):
            return f"recurrent.{name} {reason}"
    return None
