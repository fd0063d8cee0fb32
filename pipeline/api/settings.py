"""Settings of decoding as keyword arguments, which have the names of `[decoding]` in a recipe."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from tfm.pipeline.api import arguments
from tfm.pipeline.config import CandidateStrategy, DecodingConfig, DecodingPrecision, LengthNorm, MbrUtility, Strategy
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.section_validation import section_from_flags


class DecodingOptions(TypedDict, total=False):
    """Settings of decoding beside the beam; `DecodingConfig` describes each, and has the defaults."""

    strategy: Strategy
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int
    mbr_candidates: CandidateStrategy
    mbr_size: int
    mbr_utility: MbrUtility
    mbr_pruning: float | None
    length_norm: LengthNorm
    alpha: float
    n_best: int
    min_length: int
    max_length: int | None
    max_ratio: float
    no_repeat_ngram: int | None
    forbidden: Sequence[str]
    forced: Sequence[str]
    replace_unknown: bool
    shortlist: str | None
    batch_sentences: int
    precision: DecodingPrecision


def decoding_config(beam: int | None, options: Mapping[str, object]) -> DecodingConfig:
    """Return the checked settings.

    Raises:
        RecipeError: a setting is unknown, or its value does not fit; the error names it.
        TypeError: a value is no number, text or list.
    """
    values = {key: arguments.check_single_setting(value, key) for key, value in {"beam": beam, **options}.items()}
    if values["beam"] not in (None, DecodingConfig.model_fields["beam"].default) and values.get("strategy") == "sample":
        raise RecipeError(f"beam ({beam}) is for searching, and strategy is 'sample': remove one of the two")
    return section_from_flags(DecodingConfig, values)


def check_single_hypothesis(options: Mapping[str, object], method: str) -> None:
    """Raise RecipeError for `n_best` where a text has one hypothesis; `method` gives all of them."""
    n_best = options.get("n_best")
    if isinstance(n_best, int) and n_best > 1:
        raise RecipeError(f"n_best ({n_best}) has no effect: one text is returned for each; use {method}()")
