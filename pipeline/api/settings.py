"""Settings of decoding as keyword arguments, which have the names of `[decoding]` in a recipe."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from tfm.pipeline.config import DecodingConfig, DecodingPrecision, LengthNorm, Strategy
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import from_flags


class Decoding(TypedDict, total=False):
    """Settings of decoding beside the beam; `DecodingConfig` describes each, and has the defaults."""

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
    """Return the checked settings. Raises RecipeError, with its name, for a setting that is unknown or does not fit."""
    if beam not in (None, DecodingConfig.model_fields["beam"].default) and given.get("strategy") == "sample":
        raise RecipeError(f"beam ({beam}) is for searching, and strategy is 'sample': remove one of the two")
    values = {"beam": beam, **given}
    return from_flags(DecodingConfig, {key: _plain(value) for key, value in values.items()})


def _plain(value: object) -> object:
    """numpy's numbers as Python's, and a tuple as a list."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value
