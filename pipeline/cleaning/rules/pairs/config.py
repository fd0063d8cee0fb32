"""The tables of [clean] of rules that compare the two sides of a pair."""

from typing import Annotated

from pydantic import Field

from tfm.pipeline.cleaning.limits import MaxConfig, MinConfig, Share, Unit


class RatioConfig(MaxConfig):
    """A limit of the longer side over the shorter one."""

    max: float = Field(3.0, ge=1, description="longer side over shorter side")
    unit: Unit = Field("word", description="what is counted; words are what stands between white space")


class CopiesConfig(MaxConfig):
    """A limit of the likeness of the two sides."""

    max: Share = Field(0.9, description="1 - edits / length of the longer side, in characters")
    fold_case: bool = Field(True, description="small and capital letters are the same")


class NumbersConfig(MinConfig):
    """A least likeness of the digits of the two sides."""

    min: Share = Field(0.5, description="likeness of the digits of both sides, without zeros: 1, the same in order")


class MarkupConfig(MinConfig):
    """A least share of web addresses and tags that both sides have."""

    min: Share = Field(0.5, description="web addresses, e-mail addresses and tags on both sides over those on any")


class PunctuationConfig(MinConfig):
    """A least likeness of the ends of sentences of the two sides."""

    min: Annotated[float, Field(le=0)] = Field(
        -2.0, description="-log(1 + |s - t| + max(s - 1, 0) + max(t - 1, 0)) of s and t marks that end a sentence"
    )


class TranslationModelsConfig(MinConfig):
    """A least score by two translation models."""

    forward: str = Field(description="a model from source to target: a run, or its model")
    backward: str = Field(description="a model from target to source")


class MutualInformationConfig(TranslationModelsConfig):
    """Pointwise mutual information of the two sides."""

    min: float = Field(
        0.5, description="nats a piece by which a side is likelier beside its own pair than beside another"
    )


class CrossEntropyConfig(TranslationModelsConfig):
    """Dual conditional cross-entropy of two translation models (Junczys-Dowmunt 2018)."""

    min: Share = Field(0.0, description="exp(-(|A - B| + (A + B) / 2)), A and B in nats a target and a source piece")
