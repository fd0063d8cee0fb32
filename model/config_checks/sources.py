"""What goes together where the source is an image (model.vision) or characters (model.canine)."""

from tfm.model.config_fields import ONE_STACK, SEES, SPELLS, ModelFields

# Images


def vision_of_a_task(config: ModelFields) -> str | None:
    if config.vision is None or config.task in SEES.get(config.architecture, ()):
        return None
    able = ", ".join(f'"{architecture}" ("{task}")' for architecture, tasks in SEES.items() for task in tasks)
    return (
        f'architecture = "{config.architecture}" with task = "{config.task}" does not read images (model.vision); '
        f"these do: {able}"
    )


def vision_without_shared_embeddings(config: ModelFields) -> str | None:
    if config.vision is not None and config.architecture not in ONE_STACK and config.tie in ("embeddings", "all"):
        return f'tie = "{config.tie}" shares the embeddings of the source, and an image has none: "output" or "none"'
    return None


def vision_without_source_vectors(config: ModelFields) -> str | None:
    if config.vision is not None and config.source_vectors is not None:
        return "source_vectors are of pieces of text, and the source is an image (model.vision)"
    return None


def vision_reads_at_once(config: ModelFields) -> str | None:
    wanted = config.recurrent
    if config.vision is not None and (wanted.bidirectional or wanted.reverse_source):
        name = "bidirectional" if wanted.bidirectional else "reverse_source"
        return f"recurrent.{name} is of an encoder that reads text; an image (model.vision) is not read in an order"
    return None


def vision_pooling(config: ModelFields) -> str | None:
    if config.vision is not None and config.pooling == "first":
        return 'pooling = "first" would take the upper left corner of an image (model.vision): "mean" or "max"'
    return None


def layers_of_a_stack(config: ModelFields) -> str | None:
    if config.decoder.layers == 0:
        return "decoder.layers must be 1 or more"
    if config.encoder.layers == 0 and (config.vision is None or config.vision.encoder != "convolution"):
        return 'encoder.layers must be 1 or more, but with vision.encoder = "convolution", which has layers of its own'
    return None


# Characters


def canine_of_a_task(config: ModelFields) -> str | None:
    if config.canine is None or config.task in SPELLS.get(config.architecture, ()):
        return None
    able = ", ".join(f'"{architecture}" ("{task}")' for architecture, tasks in SPELLS.items() for task in tasks)
    return (
        f'architecture = "{config.architecture}" with task = "{config.task}" does not read characters (model.canine); '
        f"these do: {able}"
    )


def canine_without_vision(config: ModelFields) -> str | None:
    if config.canine is not None and config.vision is not None:
        return "the source is an image (model.vision) or characters (model.canine), not both"
    return None


def canine_has_no_table(config: ModelFields) -> str | None:
    if config.canine is None:
        return None
    if config.architecture not in ONE_STACK and config.tie in ("embeddings", "all"):
        return (
            f'tie = "{config.tie}" shares the table of source pieces, and characters (model.canine) have none: '
            '"output" or "none"'
        )
    if config.source_vectors is not None:
        return "source_vectors are of pieces, and the source is read as characters (model.canine)"
    return None


def canine_hashes_divide_the_width(config: ModelFields) -> str | None:
    width = config.embedding_dim or config.encoder.dim
    if config.canine is not None and width % config.canine.hashes:
        return f"canine.hashes ({config.canine.hashes}) must divide the width of embeddings ({width})"
    return None


def canine_reads_at_once(config: ModelFields) -> str | None:
    wanted = config.recurrent
    if config.canine is not None and (wanted.bidirectional or wanted.reverse_source):
        name = "bidirectional" if wanted.bidirectional else "reverse_source"
        return f"recurrent.{name} is of an encoder that reads step by step; that of model.canine attends"
    return None


def canine_attends(config: ModelFields) -> str | None:
    if config.canine is not None and config.mixing != "attention":
        return f'model.canine has layers of attention: mixing = "attention", not "{config.mixing}"'
    return None
