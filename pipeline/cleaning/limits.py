"""Limits of the scores of pairs, and the tables of rules that have a single one."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, model_validator

from tfm.pipeline.config import STRICT_CONFIG

Unit = Literal["word", "character"]
Share = Annotated[float, Field(ge=0, le=1)]
Percentile = Annotated[float, Field(gt=0, lt=100)]
PERCENTILE_DESCRIPTION = "drop this share of the pairs, in percent, those with the worst scores, in place of a value"


class Limit(NamedTuple):
    """The limits of one score.

    Args:
        column: the name of the score.
        low: the lowest score that passes, if there is one.
        high: the highest score that passes, if there is one.
        percentile: percent of the scores that do not pass, from the worst on, in place of both.
        higher_is_better: which end is the worst.
    """

    column: str
    low: float | None
    high: float | None
    percentile: float | None = None
    higher_is_better: bool = True


REPEATED_LIMIT = Limit("repeated", None, 0.0, None, False)
"""1 where an earlier pair is the same, 0 where none is."""


class MinConfig(BaseModel):
    """A score of which the higher is the better: a lowest value, or a percentile."""

    model_config = STRICT_CONFIG

    min: float
    percentile: Percentile | None = Field(None, description=PERCENTILE_DESCRIPTION)

    @model_validator(mode="after")
    def _check_one_limit(self) -> "MinConfig":
        _check_one_limit(self, "min")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("score", None if self.percentile else self.min, None, self.percentile),)


class MaxConfig(BaseModel):
    """A score of which the lower is the better: a highest value, or a percentile."""

    model_config = STRICT_CONFIG

    max: float
    percentile: Percentile | None = Field(None, description=PERCENTILE_DESCRIPTION)

    @model_validator(mode="after")
    def _check_one_limit(self) -> "MaxConfig":
        _check_one_limit(self, "max")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("score", None, None if self.percentile else self.max, self.percentile, False),)


def _check_one_limit(config: Any, key: str) -> None:
    """Raise ValueError where both a value and a percentile are said."""
    if config.percentile is not None and key in config.model_fields_set:
        raise ValueError(f"give either `{key}` or `percentile`")
