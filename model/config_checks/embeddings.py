"""Checks of the values of embeddings and the output layer: word vectors, the adaptive softmax, widths."""

from tfm.model.config_fields import TOKEN_OUTPUT_TASKS, ModelFields
from tfm.model.config_tables import StackConfig

# Embeddings that start from word vectors


def pretrained_vectors_problem(config: ModelFields) -> str | None:
    sides = config.embedded_sides
    for side in config.pretrained_vector_sides:
        if side not in sides:
            return f'architecture = "{config.architecture}" has no separate {side} embedding: give {sides[0]}_vectors'
    return None


def shared_vectors_problem(config: ModelFields) -> str | None:
    if len(config.pretrained_vector_sides) == 2 and config.tie in ("embeddings", "all"):
        return f'tie = "{config.tie}" shares one embedding: give source_vectors or target_vectors, not both'
    return None


def vectors_width_problem(config: ModelFields) -> str | None:
    sides = config.pretrained_vector_sides
    if sides and config.adaptive is not None and config.adaptive.inputs:
        return f"{sides[0]}_vectors have one width for all pieces, but adaptive.inputs = true makes rare ones narrower"
    return None


def frozen_vectors_problem(config: ModelFields) -> str | None:
    if config.freeze_vectors and not config.pretrained_vector_sides:
        return "freeze_vectors needs embeddings that start from source_vectors or target_vectors"
    return None


def frozen_output_problem(config: ModelFields) -> str | None:
    one_table = len(config.embedded_sides) == 1 or config.tie in ("embeddings", "all")
    tied = config.task in TOKEN_OUTPUT_TASKS and config.tie in ("output", "all")
    if tied and config.frozen_vector_sides and (one_table or "target" in config.frozen_vector_sides):
        return (
            f'freeze_vectors with tie = "{config.tie}" would freeze the output layer too, which is the same table: '
            'set tie to "embeddings" or "none"'
        )
    return None


# The adaptive softmax


def adaptive_task_problem(config: ModelFields) -> str | None:
    if config.adaptive is not None and config.task not in TOKEN_OUTPUT_TASKS:
        return (
            f'adaptive is for model.task = {" or ".join(map(repr, TOKEN_OUTPUT_TASKS))}, not "{config.task}": there is '
            "no softmax over many pieces in it"
        )
    return None


def adaptive_tie_problem(config: ModelFields) -> str | None:
    if config.adaptive is not None and config.tie in ("output", "all") and not config.adaptive.inputs:
        return (
            f'tie = "{config.tie}" needs embeddings of the same clusters as the output: adaptive.inputs = true, or '
            'tie = "embeddings" or "none"'
        )
    return None


def adaptive_bias_problem(config: ModelFields) -> str | None:
    if config.adaptive is not None and config.output_bias:
        return "adaptive has no bias of each piece: remove output_bias"
    return None


def adaptive_width_problem(config: ModelFields) -> str | None:
    if config.adaptive is None:
        return None
    stacks = {"encoder": (config.encoder,), "decoder": (config.decoder,)}
    embedded_stacks = (config.encoder, config.decoder) if config.vision is None else (config.decoder,)
    for stack in embedded_stacks if config.only_stack is None else stacks[config.only_stack]:
        width, factor = config.embedding_dim or stack.dim, config.adaptive.factor
        if width < factor ** len(config.adaptive.cutoffs):
            return (
                f"adaptive: {len(config.adaptive.cutoffs)} times divided by factor {factor}, embeddings {width} wide "
                "have no width left: fewer cutoffs, or a smaller factor"
            )
    return None


# Widths


def heads_dim_problem(config: ModelFields) -> str | None:
    for side in config.attention_sides:
        stack: StackConfig = getattr(config, side)
        if stack.dim % stack.heads and None in (stack.key_dim, stack.value_dim):
            return f"{side}: heads ({stack.heads}) must divide dim ({stack.dim})"
    return None


def tied_width_problem(config: ModelFields) -> str | None:
    has_tied_sides = len(config.embedded_sides) == 2 and config.tie in ("embeddings", "all")
    if has_tied_sides and config.embedding_dim is None and config.encoder.dim != config.decoder.dim:
        return f'tie = "{config.tie}" with encoder and decoder of different dim needs embedding_dim'
    return None
