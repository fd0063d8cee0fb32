"""The tables of [clean] of rules that compare pairs with others."""

from typing import Literal

from pydantic import BaseModel, Field

from tfm.pipeline.cleaning.limits import REPEATED_LIMIT, Limit
from tfm.pipeline.config import STRICT_CONFIG


class OverlapConfig(BaseModel):
    """Pairs that validation or test data have too are dropped."""

    model_config = STRICT_CONFIG

    sides: Literal["either", "both"] = Field(
        "either",
        description="either: a pair whose source or target is there; both: one whose two sides are a pair there",
    )

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("shared", None, 0.0, None, False),)


class BoilerplateConfig(BaseModel):
    """Texts that stand in very many pairs are dropped: menus, notices."""

    model_config = STRICT_CONFIG

    max: int = Field(100, ge=1, description="pairs that may have one text on the same side, digits apart")

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("pairs", None, float(self.max), None, False),)


class DuplicatesConfig(BaseModel):
    """All but the first of equal pairs are dropped."""

    model_config = STRICT_CONFIG

    sides: Literal["pair", "source", "target"] = Field("pair", description="what must be equal")
    ignore: Literal["nothing", "case", "marks"] = Field(
        "nothing",
        description="case: small and capital letters, white space, invisible marks; marks: all that is no letter too",
    )

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (REPEATED_LIMIT,)


class NearDuplicatesConfig(BaseModel):
    """All but the first of pairs that share most of their character sequences are dropped (extra `clean`)."""

    model_config = STRICT_CONFIG

    likeness: float = Field(
        0.8, ge=0.3, le=0.9, description="Jaccard likeness that is found with a probability of a half"
    )
    shingle: int = Field(5, ge=2, le=20, description="characters of a sequence")

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (REPEATED_LIMIT,)
