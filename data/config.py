"""The [data] part of a recipe: where sentence pairs come from and how they are batched."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Format = Literal["text", "tsv", "csv", "jsonl", "parquet", "huggingface", "generated"]
Generator = Literal["grammar", "copy", "reverse", "sort"]


def _as_tuple(value: object) -> object:
    if isinstance(value, (dict, CorpusConfig)):
        return (value,)
    return tuple(value) if isinstance(value, list) else value  # what is validated strictly is a tuple already


class CorpusConfig(BaseModel):
    """One corpus of sentence pairs.

    text: `source` and `target` are two aligned files. tsv, csv, jsonl, parquet: `path` is the file (or
    several, by a glob), `source` and `target` name its columns (tsv without a header: 0 and 1).
    huggingface: `path` is a dataset's folder, its NAME or NAME:CONFIGURATION, `split` its split. generated:
    `path` names the built-in corpus, `split` which of its splits, `size` how many pairs.
    Every file may end in .gz.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Format = "text"
    path: str | None = None
    source: str = "source"
    target: str = "target"
    split: str | None = None
    size: int | None = Field(None, ge=1)
    weight: float = Field(1.0, gt=0, description="how often an example of this corpus comes up in an epoch")

    @model_validator(mode="after")
    def _is_whole(self) -> "CorpusConfig":
        if "\0" in f"{self.path}{self.source}{self.target}":
            raise ValueError("a NUL can be in no name of a file or column")
        if self.format == "text" and self.path is not None:
            raise ValueError("a corpus of two text files has `source` and `target`, no `path`; or say its `format`")
        if self.format != "text" and self.path is None:
            raise ValueError(f'a corpus of format "{self.format}" needs `path`')
        if self.format == "generated" and self.path not in get_args(Generator):
            raise ValueError(f'there is no built-in corpus "{self.path}"; there are {", ".join(get_args(Generator))}')
        if self.format == "generated" and (self.split is None or self.size is None):
            raise ValueError(f'the built-in corpus "{self.path}" needs `split` and `size`')
        return self


class LimitsConfig(BaseModel):
    """What is dropped from training data (never from test data), and reported."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_length: int = Field(256, ge=1, description="longest side, in pieces")
    max_ratio: float | None = Field(None, gt=1, description="longer side over shorter side, in pieces; none: no limit")
    duplicates: Literal["keep", "drop"] = "keep"


class DataConfig(BaseModel):
    """Corpora, splits and batches. Used by `tfm tokenize` and `tfm preprocess`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str | None = Field(
        None, description="a folder (train.en, valid.en, ...) or Hugging Face dataset that holds all splits"
    )
    source: str = Field("source", description="with path: the source's file ending or column")
    target: str = Field("target", description="with path: the target's file ending or column")
    train: Annotated[tuple[CorpusConfig, ...], BeforeValidator(_as_tuple)] = ()
    valid: CorpusConfig | None = None
    tests: dict[str, CorpusConfig] = Field(
        default_factory=dict, description="test sets by name; the first is the main one"
    )
    ratios: tuple[float, float, float] = Field(
        (0.8, 0.1, 0.1), description="train, valid, test shares where no splits are given"
    )
    split_seed: int = Field(
        1, ge=0, lt=2**63, description="of random splits; not the seed of training, so that scores compare"
    )
    limits: LimitsConfig = LimitsConfig()
    batch_tokens: int = Field(4096, ge=16, description="budget of a batch: its padded tokens on the larger side")
    online: bool = Field(False, description="may `datasets` download; otherwise only what is on this machine")

    @model_validator(mode="after")
    def _one_way(self) -> "DataConfig":
        if self.path is not None and (self.train or self.valid or self.tests):
            raise ValueError("give either `path` or `train`/`valid`/`tests`, not both")
        if abs(sum(self.ratios) - 1) > 1e-9 or min(self.ratios) <= 0:
            raise ValueError("`ratios` must be three positive numbers that add up to 1")
        return self
