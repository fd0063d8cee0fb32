"""What a caller in Python gives: texts, and settings of decoding as keyword arguments, which have the names of
`[decoding]` in a recipe."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from tfm.pipeline.config import DecodingConfig, DecodingPrecision, LengthNorm, Strategy
from tfm.pipeline.errors import RecipeError
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
    if beam not in (None, DecodingConfig.model_fields["beam"].default) and given.get("strategy") == "sample":
        raise RecipeError(f"beam ({beam}) is for searching, and strategy is 'sample': omit one of the two")
    values = {"beam": beam, **given}
    return from_flags(DecodingConfig, {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()})


def listed(texts: str | Iterable[str]) -> list[str]:
    """The texts as a list; one given alone is a list of one. Raises TypeError, with its number, for what is no text."""
    found = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise TypeError(f"text {number} is {type(text).__name__}, and not str")
    return found
