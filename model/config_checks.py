"""Incompatible values of [model], each with the reason.

A check is a function of the config that returns an error message for the author of the recipe, or None. `CHECKS` lists
them in order; a new one is a function and a row there.
"""

from collections.abc import Callable

from tfm.model.config_fields import (
    EMBEDS,
    LEARNS,
    ONE_STACK,
    SAYS_PIECES,
    SEES,
    SPELLS,
    ModelFields,
    RecurrentConfig,
    SpanCorruptionConfig,
    StackConfig,
    WordVectorsConfig,
)

Check = Callable[[ModelFields], str | None]

OF_INPUT = ("sinusoidal", "learned")
"""Positions that are a vector, joined to the embedding."""
SCORES_OF = {"rotary": ("scaled_dot", "dot"), "shaw": ("scaled_dot",), "transformer_xl": ("scaled_dot",)}
"""The scores that some positions are part of; others go with all scores."""


def first_problem(config: ModelFields) -> str | None:
    """What is wrong, by the first check that finds anything; None where all goes together."""
    return next((problem for check in CHECKS if (problem := check(config)) is not None), None)


# Architecture and task


def task_of_architecture(config: ModelFields) -> str | None:
    if config.task in LEARNS[config.architecture]:
        return None
    able = " or ".join(f'"{task}"' for task in LEARNS[config.architecture])
    return f'architecture = "{config.architecture}" is for {able}, not "{config.task}": set model.task'


def block_of_language_models(config: ModelFields) -> str | None:
    if config.block is not None and config.task != "language_model":
        return f'block is for task = "language_model", not "{config.task}"'
    return None


def block_within_max_length(config: ModelFields) -> str | None:
    if config.block is not None and config.block > config.max_length:
        return f"block ({config.block}) exceeds max_length ({config.max_length})"
    return None


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


# Recurrent models


def recurrent_table(config: ModelFields) -> str | None:
    if config.architecture == "recurrent":
        return None
    wanted = config.recurrent
    taken = RecurrentConfig(cell=wanted.cell) if config.mixing == "recurrent" else RecurrentConfig()
    if wanted != taken:
        return 'model.recurrent is for architecture = "recurrent"; mixing = "recurrent" only uses its cell'
    return None


def recurrent_directions(config: ModelFields) -> str | None:
    if config.architecture != "recurrent" or not config.recurrent.bidirectional:
        return None
    if config.recurrent.reverse_source:
        return "recurrent.bidirectional reads in both directions: recurrent.reverse_source has no effect on that"
    if config.encoder.dim % 2:
        return f"recurrent.bidirectional halves encoder.dim, and {config.encoder.dim} is odd"
    return None


def recurrent_positions(config: ModelFields) -> str | None:
    if config.architecture != "recurrent":
        return None
    if config.positions not in ("none", "sinusoidal"):
        return f'architecture = "recurrent" does not need positions = "{config.positions}": it reads in order'
    if config.positions_join != "add":
        return 'architecture = "recurrent" has no positions for positions_join = "concatenate"'
    return None


# Word vectors: models that learn them


def word_vectors_table(config: ModelFields) -> str | None:
    if config.task != "word_vectors" and config.word_vectors != WordVectorsConfig():
        return 'model.word_vectors is for architecture = "skip_gram" or "cbow"'
    return None


def word_vectors_without_clusters(config: ModelFields) -> str | None:
    if config.task == "word_vectors" and config.adaptive is not None:
        return (
            f'architecture = "{config.architecture}" has no adaptive softmax; with word_vectors.negatives a '
            "large vocabulary costs no more than a small one"
        )
    return None


# Span corruption


def span_corruption_table(config: ModelFields) -> str | None:
    if config.task != "span_corruption" and config.span_corruption != SpanCorruptionConfig():
        return f'model.span_corruption is for task = "span_corruption", not "{config.task}"'
    return None


# Embeddings that start from word vectors: source_vectors, target_vectors, freeze_vectors


def vectors_of_an_embedding(config: ModelFields) -> str | None:
    reads = EMBEDS.get(config.architecture, ("source", "target"))
    for side in config.sides_with_vectors:
        if side not in reads:
            return f'architecture = "{config.architecture}" has no separate {side} embedding: give {reads[0]}_vectors'
    return None


def vectors_of_one_embedding(config: ModelFields) -> str | None:
    if len(config.sides_with_vectors) == 2 and config.tie in ("embeddings", "all"):
        return f'tie = "{config.tie}" shares one embedding: give source_vectors or target_vectors, not both'
    return None


def vectors_of_one_width(config: ModelFields) -> str | None:
    sides = config.sides_with_vectors
    if sides and config.adaptive is not None and config.adaptive.inputs:
        return f"{sides[0]}_vectors have one width for all pieces, but adaptive.inputs = true makes rare ones narrower"
    return None


def frozen_vectors_are_given(config: ModelFields) -> str | None:
    if config.freeze_vectors and not config.sides_with_vectors:
        return "freeze_vectors needs embeddings that start from source_vectors or target_vectors"
    return None


def frozen_vectors_not_of_the_output(config: ModelFields) -> str | None:
    one_table = config.architecture in ONE_STACK or config.tie in ("embeddings", "all")
    tied = config.task in SAYS_PIECES and config.tie in ("output", "all")
    if tied and config.frozen_sides and (one_table or "target" in config.frozen_sides):
        return (
            f'freeze_vectors with tie = "{config.tie}" would freeze the output layer too, which is the same table: '
            'set tie to "embeddings" or "none"'
        )
    return None


# Positions, and what mixes them


def score_of_positions(config: ModelFields) -> str | None:
    scores = SCORES_OF.get(config.positions, (config.score,))
    if config.score not in scores:
        return (
            f'positions = "{config.positions}" is part of a product of query and key: it needs score = '
            f'"{scores[0]}", not "{config.score}"'
        )
    return None


def rotary_pairs(config: ModelFields) -> str | None:
    sides = {"encoder": config.encoder, "decoder": config.decoder}
    if config.vision is not None:
        del sides["encoder"]  # its positions are those of vision
    for side, stack in sides.items():
        width = stack.key_dim or stack.dim // stack.heads
        if config.positions == "rotary" and width % 2:
            return f'positions = "rotary" rotates pairs of components, but heads of the {side} are {width} wide'
    return None


def concatenated_positions(config: ModelFields) -> str | None:
    if config.positions_join == "concatenate" and config.positions not in OF_INPUT:
        return (
            f'positions_join = "concatenate" needs a vector for each position: positions = "sinusoidal" or '
            f'"learned", not "{config.positions}"'
        )
    return None


def rows_of_two_halves(config: ModelFields) -> str | None:
    halves = {"positions_join": "concatenate", "mixing": "recurrent"}
    for name, half in halves.items():
        if getattr(config, name) == half and min(config.encoder.dim, config.decoder.dim) < 2:
            return f'{name} = "{half}" splits rows into two halves: dim must be 2 or more'
    if config.vision is not None and config.vision.positions == "sinusoidal" and config.encoder.dim < 2:
        return 'vision.positions = "sinusoidal" splits rows into two halves: encoder.dim must be 2 or more'
    return None


def positions_of_self_attention(config: ModelFields) -> str | None:
    if config.mixing != "attention" and config.positions not in ("none", *OF_INPUT):
        return (
            f'positions = "{config.positions}" is part of self-attention, in whose place mixing = "{config.mixing}" '
            'stands: choose "none", "sinusoidal" or "learned"'
        )
    return None


def window_of_mixing(config: ModelFields) -> str | None:
    if config.mixing == "recurrent" and config.window is not None:
        return f'mixing = "recurrent" has no window ({config.window}): omit model.window'
    return None


# Widths


def heads_divide_dim(config: ModelFields) -> str | None:
    for side in config.attending_sides:
        stack: StackConfig = getattr(config, side)
        if stack.dim % stack.heads and None in (stack.key_dim, stack.value_dim):
            return f"{side}: heads ({stack.heads}) must divide dim ({stack.dim})"
    return None


def tied_embeddings_of_one_width(config: ModelFields) -> str | None:
    two = config.architecture not in ONE_STACK and config.tie in ("embeddings", "all")
    if two and config.embedding_dim is None and config.encoder.dim != config.decoder.dim:
        return f'tie = "{config.tie}" with encoder and decoder of different dim needs embedding_dim'
    return None


# The adaptive softmax


def adaptive_task(config: ModelFields) -> str | None:
    if config.adaptive is not None and config.task not in SAYS_PIECES:
        return (
            f'adaptive is for model.task = {" or ".join(map(repr, SAYS_PIECES))}, not "{config.task}": there is no '
            "softmax over many pieces in it"
        )
    return None


def adaptive_tie(config: ModelFields) -> str | None:
    if config.adaptive is not None and config.tie in ("output", "all") and not config.adaptive.inputs:
        return (
            f'tie = "{config.tie}" needs embeddings of the same clusters as the output: adaptive.inputs = true, or '
            'tie = "embeddings" or "none"'
        )
    return None


def adaptive_bias(config: ModelFields) -> str | None:
    if config.adaptive is not None and config.output_bias:
        return "adaptive has no bias of each piece: omit output_bias"
    return None


def adaptive_widths(config: ModelFields) -> str | None:
    if config.adaptive is None:
        return None
    stacks = {"encoder_only": (config.encoder,), "decoder_only": (config.decoder,)}
    both = (config.encoder, config.decoder) if config.vision is None else (config.decoder,)
    for stack in stacks.get(config.architecture, both):
        width, factor = config.embedding_dim or stack.dim, config.adaptive.factor
        if width < factor ** len(config.adaptive.cutoffs):
            return (
                f"adaptive: {len(config.adaptive.cutoffs)} times divided by factor {factor}, embeddings {width} wide "
                "have no width left: fewer cutoffs, or a smaller factor"
            )
    return None


CHECKS: tuple[Check, ...] = (
    task_of_architecture,
    block_of_language_models,
    block_within_max_length,
    vision_of_a_task,
    vision_without_shared_embeddings,
    vision_without_source_vectors,
    vision_reads_at_once,
    vision_pooling,
    layers_of_a_stack,
    canine_of_a_task,
    canine_without_vision,
    canine_has_no_table,
    canine_hashes_divide_the_width,
    canine_reads_at_once,
    canine_attends,
    recurrent_table,
    recurrent_directions,
    recurrent_positions,
    word_vectors_table,
    word_vectors_without_clusters,
    span_corruption_table,
    vectors_of_an_embedding,
    vectors_of_one_embedding,
    vectors_of_one_width,
    frozen_vectors_are_given,
    frozen_vectors_not_of_the_output,
    score_of_positions,
    rotary_pairs,
    concatenated_positions,
    rows_of_two_halves,
    positions_of_self_attention,
    window_of_mixing,
    heads_divide_dim,
    tied_embeddings_of_one_width,
    adaptive_task,
    adaptive_tie,
    adaptive_bias,
    adaptive_widths,
)
"""In this order: where several find something, the first one is told."""
