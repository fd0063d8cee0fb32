"""Checks of the values that go together with an architecture and its task."""

from tfm.model.config_fields import GATED_ACTIVATIONS, SUPPORTED_TASKS, ModelFields

# Architecture and task


def task_problem(config: ModelFields) -> str | None:
    if config.task in SUPPORTED_TASKS[config.architecture]:
        return None
    choices = " or ".join(f'"{task}"' for task in SUPPORTED_TASKS[config.architecture])
    return f'architecture = "{config.architecture}" is for {choices}, not "{config.task}": set model.task'


def block_task_problem(config: ModelFields) -> str | None:
    if config.block is not None and config.task != "language_model":
        return f'block is for task = "language_model", not "{config.task}"'
    return None


def block_length_problem(config: ModelFields) -> str | None:
    if config.block is not None and config.block > config.max_length:
        return f"block ({config.block}) exceeds max_length ({config.max_length})"
    return None


def begin_token_problem(config: ModelFields) -> str | None:
    if not config.begin_token:
        return None
    if config.architecture != "encoder_only":
        return f'begin_token is for architecture = "encoder_only", not "{config.architecture}"'
    if config.vision is not None or config.canine is not None:
        source_kind = "images (model.vision)" if config.vision is not None else "characters (model.canine)"
        return f"begin_token is a piece before the others: a model that reads {source_kind} has none"
    return None


def head_transform_problem(config: ModelFields) -> str | None:
    if not config.head_transform:
        return None
    if config.task != "masked_language_model":
        return f'head_transform is for task = "masked_language_model", not "{config.task}"'
    if config.activation in GATED_ACTIVATIONS:
        return f'head_transform has one product, and activation = "{config.activation}" needs two'
    return None


def languages_problem(config: ModelFields) -> str | None:
    if config.languages == "source":
        return None
    if (config.architecture, config.task) != ("transformer", "translation"):
        setting = f'architecture = "{config.architecture}" with task = "{config.task}"'
    elif config.vision is not None or config.canine is not None:
        setting = "model.vision" if config.vision is not None else "model.canine"
    else:
        return None
    return f'languages = "{config.languages}" is of an encoder and a decoder that translate text, not of {setting}'


def stack_mixing_problem(config: ModelFields) -> str | None:
    for side in ("encoder", "decoder"):
        if getattr(config, side).mixing is None:
            continue
        if config.architecture != "transformer":
            requirement = f'architecture = "transformer"; with "{config.architecture}" set model.mixing'
            return f"model.{side}.mixing is for {requirement}"
        if side not in config.text_stacks:
            return f"model.{side}.mixing is of an encoder that reads pieces, not characters or images: remove it"
        if getattr(config, side).mixing == config.mixing:
            return f'model.{side}.mixing = "{config.mixing}" repeats model.mixing, which is for both stacks: remove it'
    return None


# Recurrent models


def recurrent_norm_problem(config: ModelFields) -> str | None:
    if config.architecture != "recurrent" or config.recurrent.normalization == "none":
        return None
    text_sides = ("decoder",) if config.vision or config.canine else ("encoder", "decoder")
    sides = text_sides if config.only_stack is None else (config.only_stack,)
    if all(getattr(config, side).layers == 1 for side in sides):
        return (
            f'recurrent.normalization = "{config.recurrent.normalization}" is of what layers after the first read: set '
            f"{sides[-1]}.layers to 2 or more"
        )
    return None


def recurrent_stack_problem(config: ModelFields) -> str | None:
    """The first row of a network that reads in one direction has read one piece."""
    if config.architecture != "recurrent" or config.only_stack is None:
        return None
    if config.task == "classification" and config.pooling == "first" and not config.recurrent.bidirectional:
        return (
            'pooling = "first" would use a row that has read only the first piece, as the network reads in one '
            'direction: "mean", "max" or recurrent.bidirectional = true'
        )
    return None


def recurrent_directions_problem(config: ModelFields) -> str | None:
    if config.architecture != "recurrent" or not config.recurrent.bidirectional or config.only_stack == "decoder":
        return None
    if config.recurrent.reverse_source and config.only_stack is None:
        return "recurrent.bidirectional reads in both directions: recurrent.reverse_source has no effect on that"
    if config.encoder.dim % 2:
        return f"recurrent.bidirectional halves encoder.dim, and {config.encoder.dim} is odd"
    return None


def recurrent_positions_problem(config: ModelFields) -> str | None:
    if config.architecture != "recurrent" or config.canine is None:  # without, positions have no effect at all
        return None
    if config.positions not in ("none", "sinusoidal"):
        return f'architecture = "recurrent" does not need positions = "{config.positions}": it reads in order'
    if config.positions_join != "add":
        return 'architecture = "recurrent" has no positions for positions_join = "concatenate"'
    return None


def residual_depth_problem(config: ModelFields) -> str | None:
    if config.residual == "none" and config.dropout.depth:
        return (
            f'residual = "none" leaves nothing of a row where dropout.depth = {config.dropout.depth} leaves a sublayer '
            "out: remove one"
        )
    return None


# Word vectors


def word_vectors_adaptive_problem(config: ModelFields) -> str | None:
    if config.task == "word_vectors" and config.adaptive is not None:
        return (
            f'architecture = "{config.architecture}" has no adaptive softmax; with word_vectors.negatives a '
            "large vocabulary costs no more than a small one"
        )
    return None
