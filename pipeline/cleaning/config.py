"""The [clean] part of a recipe: which rules training pairs must pass, and their limits. Used by `tfm clean`."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from tfm.pipeline.cleaning.limits import PERCENTILE_DESCRIPTION, Limit, Percentile
from tfm.pipeline.cleaning.rules.corpora.config import (
    BoilerplateConfig,
    DuplicatesConfig,
    NearDuplicatesConfig,
    OverlapConfig,
)
from tfm.pipeline.cleaning.rules.pairs.config import (
    CopiesConfig,
    CrossEntropyConfig,
    MarkupConfig,
    MutualInformationConfig,
    NumbersConfig,
    PunctuationConfig,
    RatioConfig,
)
from tfm.pipeline.cleaning.rules.texts.config import (
    ControlsConfig,
    EmptyConfig,
    LanguageConfig,
    LengthConfig,
    LettersConfig,
    RepairConfig,
    ScriptConfig,
)
from tfm.pipeline.config import STRICT_CONFIG, as_tuple
from tfm.pipeline.external_metric import ExternalMetric

RESERVED_NAMES = ("corpus", "pair", "dropped_by", "length.shorter", "length.longer")
"""Columns of the table of scores that are not named as a rule is."""


class ExternalScorer(ExternalMetric):
    """A command that scores pairs: it reads them as external metrics do, the target as hypothesis."""

    limit: float = Field(86400.0, gt=0, description="seconds that it may take; what was scored until then is kept")
    min: float | None = Field(None, description="lowest score that passes")
    max: float | None = Field(None, description="highest score that passes")
    percentile: Percentile | None = Field(None, description=PERCENTILE_DESCRIPTION)

    @model_validator(mode="after")
    def _check_limits(self) -> "ExternalScorer":
        if (self.min is None and self.max is None) == (self.percentile is None):
            raise ValueError("give `min` or `max`, or `percentile`")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"no score lies from {self.min:g} to {self.max:g}")
        if self.percentile is None and "higher_is_better" in self.model_fields_set:
            raise ValueError("higher_is_better has no effect without `percentile`: remove it")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("score", self.min, self.max, self.percentile, self.higher_is_better),)


class CleanConfig(BaseModel):
    """Rules that training pairs must pass, in this order; one that is "none" is left out."""

    model_config = STRICT_CONFIG

    repair: RepairConfig | None = None
    controls: ControlsConfig | None = ControlsConfig()
    empty: EmptyConfig | None = EmptyConfig()
    length: LengthConfig | None = LengthConfig()
    ratio: RatioConfig | None = RatioConfig()
    copies: CopiesConfig | None = CopiesConfig()
    letters: LettersConfig | None = LettersConfig()
    script: ScriptConfig | None = None
    numbers: NumbersConfig | None = None
    markup: MarkupConfig | None = None
    punctuation: PunctuationConfig | None = None
    overlap: OverlapConfig | None = OverlapConfig()
    boilerplate: BoilerplateConfig | None = None
    duplicates: DuplicatesConfig | None = DuplicatesConfig()
    near_duplicates: NearDuplicatesConfig | None = None
    language: LanguageConfig | None = None
    mutual_information: MutualInformationConfig | None = None
    cross_entropy: CrossEntropyConfig | None = None
    external: Annotated[tuple[ExternalScorer, ...], BeforeValidator(as_tuple)] = Field(
        (), description="scores by commands of the user's"
    )

    @model_validator(mode="after")
    def _check_external_names(self) -> "CleanConfig":
        names = {*(name.casefold() for name in type(self).model_fields), *RESERVED_NAMES}
        for scorer in self.external:
            if (name := scorer.name.casefold()) in names:
                raise ValueError(
                    f'external: there is another rule, or a column of the scores, of the name "{scorer.name}"; choose '
                    "another name"
                )
            names.add(name)
        return self

    @property
    def rules(self) -> dict[str, Any]:
        """The configs of the rules that are used, by name, in order."""
        configs = {name: getattr(self, name) for name in type(self).model_fields if name != "external"}
        return {name: each for name, each in configs.items() if each is not None} | {
            each.name: each for each in self.external
        }
