"""Checks of attention without some of its projections, or with another mask."""

from tfm.model.config_fields import ModelFields


def projections_width_problem(config: ModelFields) -> str | None:
    """Why attention without projections cannot split rows into heads: it needs one width, and as many heads of keys and
    values as of queries.
    """
    if config.attention_projections:
        return None
    for side in config.attention_sides:
        stack = getattr(config, side)
        for key in ("key_value_heads", "key_dim", "value_dim"):
            if (value := getattr(stack, key)) is not None:
                return f"attention_projections = false keeps the width of rows: remove {side}.{key} = {value}"
    if config.attention_sides and config.encoder.dim != config.decoder.dim and config.architecture == "transformer":
        return (
            f"attention_projections = false compares rows of the decoder ({config.decoder.dim}) with those of the "
            f"encoder ({config.encoder.dim}): give both one dim"
        )
    return None


def values_projections_problem(config: ModelFields) -> str | None:
    if config.values == "keys" and not config.attention_projections:
        return 'values = "keys" has no effect with attention_projections = false, where both are the rows: remove one'
    return None


def values_width_problem(config: ModelFields) -> str | None:
    for side in config.attention_sides if config.values == "keys" else ():
        stack = getattr(config, side)
        key, value = (width or stack.dim // stack.heads for width in (stack.key_dim, stack.value_dim))
        if key != value:
            return (
                f'values = "keys" needs values as wide as keys: of the {side}, keys are {key} wide, and values {value}'
            )
    return None


def output_width_problem(config: ModelFields) -> str | None:
    for side in () if config.output_projection else config.attention_sides:
        stack = getattr(config, side)
        if stack.value_dim is not None and stack.heads * stack.value_dim != stack.dim:
            return (
                f"output_projection = false needs heads that are together as wide as rows: {side}.heads * "
                f"{side}.value_dim is {stack.heads * stack.value_dim}, and {side}.dim {stack.dim}"
            )
    return None


def mask_mixing_problem(config: ModelFields) -> str | None:
    mixing = config.stack_mixing("decoder")
    if config.mask != "causal" and mixing != "attention":
        return f'mask = "{config.mask}" is for self-attention, which mixing = "{mixing}" replaces: remove one'
    return None
