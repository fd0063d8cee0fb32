"""The settings of decoding as keyword arguments: those of `[decoding]` in a recipe, under the same names."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from tfm.pipeline.config import DecodingConfig, DecodingPrecision, LengthNorm, Strategy
from tfm.pipeline.recipes.recipe import from_flags


class Decoding(TypedDict, total=False):
    """What may be given beside the beam; `DecodingConfig` says what each means, and has the defaults."""

    strategy: Strategy
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    length_norm: LengthNorm
    alpha: float
    n_best: int
    min_length: int
    max_length: int | None
    max_ratio: float
    no_repeat_ngram: int | None
    forbidden: Sequence[str]
    forced: Sequence[str]
    batch_sentences: int
    precision: DecodingPrecision


def decoding_config(beam: int | None, given: Mapping[str, object]) -> DecodingConfig:
    """The checked settings. Raises RecipeError, which names the setting, for one that is none or does not fit."""
    values = {"beam": beam, **given}
    return from_flags(DecodingConfig, {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()})
