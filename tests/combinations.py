"""Parts that a recipe may name for a Transformer's layers: which go together, and a few models that try every pair."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, get_args

from pydantic import ValidationError

from tfm.model.config import (
    ActivationName,
    AttentionScore,
    DecoderMaskName,
    DropoutConfig,
    FeedForwardLayer,
    LookupKind,
    MixingName,
    ModelConfig,
    Normalization,
    NormPlacement,
    PositionsJoin,
    PositionsName,
    StackConfig,
    ValueSource,
)

Choice = dict[str, Any]
NAMES: Mapping[str, tuple[Any, ...]] = {
    "positions": get_args(PositionsName),
    "activation": get_args(ActivationName),
    "score": get_args(AttentionScore),
    "mixing": get_args(MixingName),
    "normalization": get_args(Normalization),
    "norm": get_args(NormPlacement),
    "positions_join": get_args(PositionsJoin),
    "window": (None, 3),
    "qk_norm": (False, True),
    "key_value_heads": (None, 2),
    "feed_forward": get_args(FeedForwardLayer),
    "attention_projections": (True, False),
    "values": get_args(ValueSource),
    "output_projection": (True, False),
    "lookup": get_args(LookupKind),
    "mask": get_args(DecoderMaskName),
}


def configured(choice: Choice) -> ModelConfig:
    """A small model without dropout. Raises ValidationError where its parts do not go together."""
    heads = choice.get("key_value_heads")
    stack = StackConfig(layers=1, dim=48, heads=4, feed_forward_dim=96, key_value_heads=heads)
    parts = {part: name for part, name in choice.items() if part != "key_value_heads"}
    none = DropoutConfig(residual=0, embedding=0)
    return ModelConfig.model_validate({"encoder": stack, "decoder": stack, "dropout": none, **parts})


def refusal(choice: Choice) -> str | None:
    """Why a recipe with these parts, and defaults for the others, is refused; None where it is not."""
    try:
        configured(choice)
    except ValidationError as error:
        return str(error.errors()[0]["msg"])
    return None


def pairs(choice: Choice) -> set[frozenset[tuple[str, Any]]]:
    """Each two of the parts that are chosen."""
    return {frozenset(two) for two in combinations(choice.items(), 2)}


def every_pair() -> list[Choice]:
    """All choices of two parts, in a fixed order."""
    return [
        {one: name, other: another}
        for one, other in combinations(NAMES, 2)
        for name in NAMES[one]
        for another in NAMES[other]
    ]


def covering() -> list[Choice]:
    """Choices of all parts that between them try every pair that goes together.

    Greedy: each begins with the first pair that is left, and takes for every other part the name that adds most pairs.
    """
    together = [pair for pair in every_pair() if refusal(pair) is None]
    allowed = {two for pair in together for two in pairs(pair)}
    left, chosen = dict.fromkeys(two for pair in together for two in pairs(pair)), []
    while left:
        choice = dict(next(iter(left)))
        for part in (part for part in NAMES if part not in choice):
            fitting = [name for name in NAMES[part] if pairs({**choice, part: name}) <= allowed]
            choice[part] = max(fitting, key=lambda name: len(pairs({**choice, part: name}) & left.keys()))
        chosen.append({part: choice[part] for part in NAMES})
        for two in pairs(choice):
            left.pop(two, None)
    return chosen
