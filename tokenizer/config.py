"""The [tokenizer] part of a recipe."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Kind = Literal["bpe", "wordpiece", "unigram", "char", "byte", "word"]
Normalization = Literal["none", "nfc", "nfd", "nfkc", "nfkd"]


class TokenizerConfig(BaseModel):
    """How text becomes pieces. Used by `tfm tokenize`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = Field("bpe", description="how words are cut into pieces")
    vocab_size: int = Field(10_000, ge=8, description="largest number of pieces, control tokens included")
    lowercase: bool = Field(False, description="lower-case all text first")
    normalization: Normalization = Field("nfkc", description="Unicode normal form applied to all text")
    min_frequency: int = Field(2, ge=1, description="pieces seen less often are not learned")
    shared: bool = Field(True, description="one vocabulary for source and target, or one a side")

    @model_validator(mode="after")
    def _fits(self) -> "TokenizerConfig":
        if self.kind == "byte" and self.vocab_size < 260:
            raise ValueError("`vocab_size` must be at least 260 for kind `byte`: 256 bytes and 4 control tokens")
        return self
