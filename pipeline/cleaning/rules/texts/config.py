"""The tables of [clean] of rules that look at each side of a pair."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from tfm.pipeline.cleaning.limits import Limit, MinConfig, Share, Unit
from tfm.pipeline.config import STRICT_CONFIG, as_tuple

NORTHERN_SOTHO = "ns"  # M2M100's code, which ISO 639-1 does not have
NormalForm = Literal["none", "nfc", "nfkc"]


def _check_script_name(name: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Za-z_]{2,40}", name):
        raise ValueError(f'"{name}" is no script of Unicode; write "Latin", "Cyrillic", "Han", ...')
    import regex

    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        raise ValueError(f'there is no script "{name}" in Unicode; write "Latin", "Cyrillic", "Han", ...') from None
    return name


def _check_language_code(code: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}", code):
        raise ValueError(f'"{code}" is no code of ISO 639-1, which has two small letters: "en", "de"')
    if len(code) == 3:
        from tfm.tokenizer.languages import ISO_639_3  # loads the library of tokenizers

        shorter = next((each for each, longer in ISO_639_3.items() if longer == code and each != NORTHERN_SOTHO), None)
        if shorter is not None:
            raise ValueError(f'"{code}" has a code of two letters in ISO 639-1: write "{shorter}"')
    return code  # some languages have one of three letters alone: yue


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
    def _check_min_not_above_max(self) -> "LengthConfig":
        if self.min > self.max:
            raise ValueError(f"no text has a length from {self.min} to {self.max}")
        return self

    @property
    def limits(self) -> tuple[Limit, ...]:
        return Limit("shorter", float(self.min), None), Limit("longer", None, float(self.max), None, False)


class LettersConfig(MinConfig):
    """A least share of letters in the characters of each side."""

    min: Share = Field(0.5, description="letters over characters, spaces too; of the side that has fewer")


class ScriptConfig(MinConfig):
    """A least share of each side's letters in its script."""

    source: Annotated[str, AfterValidator(_check_script_name)] | None = Field(
        None, description="script of the sources, by its name in Unicode: Latin; none: any"
    )
    target: Annotated[str, AfterValidator(_check_script_name)] | None = Field(None, description="script of the targets")
    min: Share = Field(0.9, description="letters of the script over letters; of the side that has fewer")

    @model_validator(mode="after")
    def _check_sides(self) -> "ScriptConfig":
        if self.source is None and self.target is None:
            raise ValueError("give the script of `source` or `target`, or of both")
        return self


class LanguageConfig(MinConfig):
    """A least probability of each side's language, by py3langid (extra `clean`)."""

    source: Annotated[str, AfterValidator(_check_language_code)] | None = Field(
        None, description="language of the sources, as ISO 639-1 codes it (en), or 639-3 alone (yue); none: any"
    )
    target: Annotated[str, AfterValidator(_check_language_code)] | None = Field(
        None, description="language of the targets"
    )
    languages: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        (), description="languages that are told apart; none: all that the library knows"
    )
    min: Share = Field(0.5, description="probability of the language; of the side where it is less")

    @model_validator(mode="after")
    def _check_sides(self) -> "LanguageConfig":
        if self.source is None and self.target is None:
            raise ValueError("give the language of `source` or `target`, or of both")
        if self.languages and len({*self.languages, self.source, self.target} - {None}) == 1:
            raise ValueError(f"languages: every text is {self.languages[0]!r} where no other is named: add others")
        return self
