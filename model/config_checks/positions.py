"""Checks of positions and of the layer that mixes them."""

from tfm.model.config_fields import ModelFields
from tfm.model.config_tables import RotaryConfig

INPUT_POSITIONS = ("sinusoidal", "sinusoidal_from_one", "fairseq", "learned")
"""Positions that are a vector, joined to the embedding."""
SCORES_BY_POSITIONS = {"rotary": ("scaled_dot", "dot"), "shaw": ("scaled_dot",), "transformer_xl": ("scaled_dot",)}
"""The scores that some positions are part of; others go with all scores."""


def _is_order_aware(config: ModelFields) -> bool:
    """Whether a network reads its texts in order: its positions have no effect, as those of a recipe it extends."""
    return config.architecture == "recurrent" and config.canine is None


def positions_score_problem(config: ModelFields) -> str | None:
    scores = SCORES_BY_POSITIONS.get(config.positions, (config.score,))
    if config.score not in scores and not _is_order_aware(config):
        return (
            f'positions = "{config.positions}" is part of a product of query and key: it needs score = '
            f'"{scores[0]}", not "{config.score}"'
        )
    return None


def rotary_dim_problem(config: ModelFields) -> str | None:
    sides = {"encoder": config.encoder, "decoder": config.decoder}
    if config.vision is not None:
        del sides["encoder"]  # its positions are those of vision
    for side, stack in sides.items():
        width = stack.key_dim or stack.dim // stack.heads
        if config.positions == "rotary" and width % 2 and not _is_order_aware(config):
            return f'positions = "rotary" rotates pairs of components, but heads of the {side} are {width} wide'
    return None


def rotary_table_problem(config: ModelFields) -> str | None:
    if config.positions != "rotary" and config.rotary != RotaryConfig():
        return f'model.rotary is for positions = "rotary", not "{config.positions}"'
    return None


def joined_positions_problem(config: ModelFields) -> str | None:
    if _is_order_aware(config):
        return None
    if config.positions_join != "add" and config.positions not in INPUT_POSITIONS:
        return (
            f'positions_join = "{config.positions_join}" needs a vector for each position: positions = '
            f'{_quote_names(INPUT_POSITIONS)}, not "{config.positions}"'
        )
    return None


def positions_in_attention_problem(config: ModelFields) -> str | None:
    """Vectors of positions are cut into heads as rows are, and added in self-attention."""
    if config.positions_join != "attention" or _is_order_aware(config):
        return None
    if other_mixings := sorted(config.mixings - {"attention"}):
        return (
            'positions_join = "attention" adds positions in self-attention, which mixing = '
            f'"{other_mixings[0]}" replaces: remove one'
        )
    if config.canine is not None:
        return 'positions_join = "attention" is of layers that read pieces, not characters (model.canine): remove one'
    for side in config.attention_sides:
        for key in ("key_value_heads", "key_dim", "value_dim"):
            if (value := getattr(getattr(config, side), key)) is not None:
                return (
                    'positions_join = "attention" cuts vectors as wide as rows into the heads of queries, keys and '
                    f"values: remove {side}.{key} = {value}"
                )
    return None


def sinusoidal_dim_problem(config: ModelFields) -> str | None:
    is_selected = {"positions_join": config.positions_join == "concatenate", "mixing": "recurrent" in config.mixings}
    halves = {} if _is_order_aware(config) else {"positions_join": "concatenate", "mixing": "recurrent"}
    for name, half in halves.items():
        if is_selected[name] and min(config.encoder.dim, config.decoder.dim) < 2:
            return f'{name} = "{half}" splits rows into two halves: dim must be 2 or more'
    if config.vision is not None and config.vision.positions == "sinusoidal" and config.encoder.dim < 2:
        return 'vision.positions = "sinusoidal" splits rows into two halves: encoder.dim must be 2 or more'
    return None


def fairseq_dim_problem(config: ModelFields) -> str | None:
    sides = {"decoder_only": ("decoder",), "encoder_only": ("encoder",)}.get(
        config.architecture, ("encoder", "decoder")
    )
    if _is_order_aware(config):
        return None
    minimum = 8 if config.positions_join == "concatenate" else 4
    for side in sides:
        dim = getattr(config, side).dim
        if config.positions == "fairseq" and dim < minimum and not (side == "encoder" and config.vision is not None):
            return (
                f'positions = "fairseq" divides by the number of its frequencies less 1: {side}.dim = {minimum} or more'
            )
    return None


def attention_positions_problem(config: ModelFields) -> str | None:
    if _is_order_aware(config):
        return None
    if "attention" not in config.mixings and config.positions not in ("none", *INPUT_POSITIONS):
        return (
            f'positions = "{config.positions}" is part of self-attention, which mixing = "{config.mixing}" '
            f"replaces: choose {_quote_names(('none', *INPUT_POSITIONS))}"
        )
    return None


def window_problem(config: ModelFields) -> str | None:
    if config.mixings == {"recurrent"} and config.window is not None:
        return f'mixing = "recurrent" has no window ({config.window}): remove model.window'
    return None


def _quote_names(names: tuple[str, ...]) -> str:
    """Return names in quotes: "a", "b" or "c"."""
    quoted = [f'"{name}"' for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
