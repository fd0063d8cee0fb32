"""The [clean] part of a recipe: which rules training pairs must pass, and their limits. Used by `tfm clean`."""

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from tfm.pipeline.config import STRICT_CONFIG, as_tuple
from tfm.pipeline.external_metric import ExternalMetric

NormalForm = Literal["none", "nfc", "nfkc"]
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


def _script_name(name: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Za-z_]{2,40}", name):
        raise ValueError(f'"{name}" is no script of Unicode; write "Latin", "Cyrillic", "Han", ...')
    import regex

    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        raise ValueError(f'there is no script "{name}" in Unicode; write "Latin", "Cyrillic", "Han", ...') from None
    return name


def _language_code(code: str) -> str:
    if not re.fullmatch(r"[a-z]{2}", code):
        raise ValueError(f'"{code}" is no code of ISO 639-1, which has two small letters: "en", "de"')
    return code


class RepairConfig(BaseModel):
    """Text that was decoded wrongly is repaired by ftfy (extra `clean`)."""

    model_config = STRICT_CONFIG

    normal_form: NormalForm = Field("nfc", description="Unicode normal form of every text")
    quotes: bool = Field(False, description="straight quotation marks in place of curly ones")

    @property
    def limits(self) -> tuple[Limit, ...]:
        return ()


class ControlsConfig(BaseModel):
    """Control characters are taken away."""

    model_config = STRICT_CONFIG

    action: Literal["remove", "drop"] = Field(
        "remove", description="remove: the characters, and the pair stays; drop: the pair"
    )

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("count", None, 0.0, None, False),) if self.action == "drop" else ()


class EmptyConfig(BaseModel):
    """Pairs with a side of white space alone are dropped."""

    model_config = STRICT_CONFIG

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("filled", 1.0, None),)


class LengthConfig(BaseModel):
    """Limits of the length of each side."""

    model_config = STRICT_CONFIG

    min: int = Field(1, ge=0, description="length of the shorter side")
    max: int = Field(150, ge=1, description="length of the longer side")
    unit: Unit = Field("word", description="what is counted; words are what stands between white space")

    @model_validator(mode="after")
    def _check_order(self) -> "LengthConfig":
        if self.min > self.max:
            raise ValueError(f"no text has a length from {self.min} to {self.max}")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return Limit("shorter", float(self.min), None), Limit("longer", None, float(self.max), None, False)


class _MinConfig(BaseModel):
    """A score of which the higher is the better: a lowest value, or a percentile."""

    model_config = STRICT_CONFIG

    min: float
    percentile: Percentile | None = Field(None, description=PERCENTILE_DESCRIPTION)

    @model_validator(mode="after")
    def _check_one_limit(self) -> "_MinConfig":
        _check_one_limit(self, "min")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("score", None if self.percentile else self.min, None, self.percentile),)


class _MaxConfig(BaseModel):
    """A score of which the lower is the better: a highest value, or a percentile."""

    model_config = STRICT_CONFIG

    max: float
    percentile: Percentile | None = Field(None, description=PERCENTILE_DESCRIPTION)

    @model_validator(mode="after")
    def _check_one_limit(self) -> "_MaxConfig":
        _check_one_limit(self, "max")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return (Limit("score", None, None if self.percentile else self.max, self.percentile, False),)


def _check_one_limit(config: Any, key: str) -> None:
    """Raise ValueError where both a value and a percentile are said."""
    default = type(config).model_fields[key].default
    if config.percentile is not None and getattr(config, key) != default:
        raise ValueError(f"give either `{key}` or `percentile`")


class RatioConfig(_MaxConfig):
    """A limit of the longer side over the shorter one."""

    max: float = Field(3.0, ge=1, description="longer side over shorter side")
    unit: Unit = Field("word", description="what is counted; words are what stands between white space")


class LettersConfig(_MinConfig):
    """A least share of letters in the characters of each side."""

    min: Share = Field(0.5, description="letters over characters, spaces too; of the side that has fewer")


class CopiesConfig(_MaxConfig):
    """A limit of the likeness of the two sides."""

    max: Share = Field(0.9, description="1 - edits / length of the longer side, in characters")
    fold_case: bool = Field(True, description="small and capital letters are the same")


class ScriptConfig(_MinConfig):
    """A least share of each side's letters in its script."""

    source: Annotated[str, AfterValidator(_script_name)] | None = Field(
        None, description="script of the sources, by its name in Unicode: Latin; none: any"
    )
    target: Annotated[str, AfterValidator(_script_name)] | None = Field(None, description="script of the targets")
    min: Share = Field(0.9, description="letters of the script over letters; of the side that has fewer")

    @model_validator(mode="after")
    def _check_sides(self) -> "ScriptConfig":
        if self.source is None and self.target is None:
            raise ValueError("give the script of `source` or `target`, or of both")
        return self


class NumbersConfig(_MinConfig):
    """A least likeness of the digits of the two sides."""

    min: Share = Field(0.5, description="likeness of the digits of both sides, without zeros: 1, the same in order")


class MarkupConfig(_MinConfig):
    """A least share of web addresses and tags that both sides have."""

    min: Share = Field(0.5, description="web addresses, e-mail addresses and tags on both sides over those on any")


class PunctuationConfig(_MinConfig):
    """A least likeness of the ends of sentences of the two sides."""

    min: Annotated[float, Field(le=0)] = Field(
        -2.0, description="-log(1 + |s - t| + max(s - 1, 0) + max(t - 1, 0)) of s and t marks that end a sentence"
    )


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
        "nothing", description="case: small and capital letters and white space; marks: all that is no letter too"
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


class LanguageConfig(_MinConfig):
    """A least probability of each side's language, by py3langid (extra `clean`)."""

    source: Annotated[str, AfterValidator(_language_code)] | None = Field(
        None, description="language of the sources, as ISO 639-1 codes it (en); none: any"
    )
    target: Annotated[str, AfterValidator(_language_code)] | None = Field(None, description="language of the targets")
    languages: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        (), description="languages that are told apart; none: all that the library knows"
    )
    min: Share = Field(0.5, description="probability of the language; of the side where it is less")

    @model_validator(mode="after")
    def _check_sides(self) -> "LanguageConfig":
        if self.source is None and self.target is None:
            raise ValueError("give the language of `source` or `target`, or of both")
        return self


class CrossEntropyConfig(_MinConfig):
    """Dual conditional cross-entropy of two translation models (Junczys-Dowmunt 2018)."""

    forward: str = Field(description="a model from source to target: a run, or its model")
    backward: str = Field(description="a model from target to source")
    min: Share = Field(0.0, description="exp(-(|A - B| + (A + B) / 2)), A and B in nats a target and a source piece")


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
    cross_entropy: CrossEntropyConfig | None = None
    external: Annotated[tuple[ExternalScorer, ...], BeforeValidator(as_tuple)] = Field(
        (), description="scores by commands of the user's"
    )

    @model_validator(mode="after")
    def _check_external_names(self) -> "CleanConfig":
        taken = {name.casefold() for name in type(self).model_fields}
        for scorer in self.external:
            if (name := scorer.name.casefold()) in taken:
                raise ValueError(f'external: there is another rule of the name "{scorer.name}"; choose another name')
            taken.add(name)
        return self

    @property
    def rules(self) -> dict[str, Any]:
        """The configs of the rules that are used, by name, in order."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name != "external"}
        return {name: each for name, each in own.items() if each is not None} | {
            each.name: each for each in self.external
        }
