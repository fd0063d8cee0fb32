"""The [data] part of a recipe: where sentence pairs come from and how they are batched."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_serializer,
    field_validator,
    model_validator,
)

from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.table_keys import parse_source, parse_target, several_columns_problem
from tfm.data.image_config import ImagesConfig, images_problem

DEFAULT_SHARD_ROWS = 1_000_000


def _as_tuple(value: object) -> object:
    if isinstance(value, (dict, CorpusConfig)):
        return (value,)
    return tuple(value) if isinstance(value, list) else value  # what is validated strictly is a tuple already


def _none_to_empty(value: object) -> object:
    return () if value in (None, "none") else _as_tuple(value)


class LimitsConfig(BaseModel):
    """Limits beyond which training data (never test data) is dropped, and reported."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_length: int = Field(256, ge=1, description="longest side, in pieces")
    cut_sources: bool | None = Field(
        None,
        description="true: sources longer than max_length are cut to it, in every split of the dataset, and their "
        "pairs not dropped: for summaries, whose sources say the most at the beginning; model.max_length cuts what is "
        "translated after training",
    )
    max_ratio: float | None = Field(None, gt=1, description="longer side over shorter side, in pieces; none: no limit")
    duplicates: Literal["keep", "drop"] = Field("keep", description="pairs that occurred before")
    empty: Literal["keep", "drop"] = Field(
        "drop", description="pairs with an empty side; keep: as in running text, where an empty line is a line break"
    )


class FoldConfig(BaseModel):
    """One fold of cross-validation, which `tfm run --folds` and `tfm search` set: training is on all others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=1, description="the fold that validation is on, from 1")
    of: int = Field(ge=2, le=1000, description="number of folds")

    @model_validator(mode="after")
    def _check_number(self) -> "FoldConfig":
        if self.number > self.of:
            raise ValueError(f"there is no fold {self.number} of {self.of}")
        return self


class DataConfig(BaseModel):
    """Corpora, splits and batches. Used by `tfm tokenize` and `tfm preprocess`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str | None = Field(
        None, description="a folder (train.en, valid.en, ...) or Hugging Face dataset that holds all splits"
    )
    source: str | tuple[str, ...] | None = Field(
        "source",
        description="with path: the source's file ending or column, or a list of columns of a dataset, joined by "
        "spaces; none: texts, which are targets",
    )
    target: str = Field("target", description="with path: the target's file ending or column")
    train: Annotated[tuple[CorpusConfig, ...], BeforeValidator(_as_tuple)] = ()
    valid: Annotated[
        "tuple[CorpusConfig, ...]",
        BeforeValidator(_none_to_empty, json_schema_input_type=CorpusConfig | tuple[CorpusConfig, ...] | None),
    ] = Field((), description="one validation corpus, or several, read as one; by direction, where they have languages")
    tests: dict[str, CorpusConfig] = Field(
        default_factory=dict, description="test sets by name; the first is the main one"
    )
    ratios: tuple[float, float, float] = Field(
        (0.8, 0.1, 0.1), description="train, valid, test shares if no splits are given"
    )
    split_seed: int = Field(
        1,
        ge=0,
        lt=2**63,
        description="seed of random splits and folds; not the seed of training, so that scores are comparable",
    )
    running_text: bool | None = Field(
        None,
        description="texts without a source are running text: random splits and folds are of consecutive lines; none: "
        'with model.block or limits.empty = "keep"',
    )
    images: ImagesConfig | None = Field(None, description="of corpora whose sources are images")
    fold: FoldConfig | None = Field(
        None, description="cross-validation: training leaves out a fold of its data, and validation is on that fold"
    )
    temperature: float = Field(
        1.0,
        ge=1,
        le=1000,
        description="T: training corpora of n_i pairs are seen in proportion to n_i^(1/T); 1: as they are, 5: small "
        "ones more often",
    )
    limits: LimitsConfig = LimitsConfig()
    batch_tokens: int = Field(4096, ge=16, description="maximum padded tokens of a batch, on its larger side")
    shard_rows: int = Field(
        DEFAULT_SHARD_ROWS,
        ge=1,
        lt=2**40,
        description="training pairs (of running text, windows) above which an epoch is a permutation of shards of so "
        "many, each batched by itself",
    )
    online: bool = Field(
        False,
        description="allow downloads (Hugging Face datasets, files behind URLs); else only local data is used",
    )

    _parse_source = field_validator("source", mode="before")(parse_source)
    _parse_target = field_validator("target", mode="before")(parse_target)

    @model_validator(mode="after")
    def _check_path_or_corpora(self) -> "DataConfig":
        if self.path is not None and (self.train or self.valid or self.tests):
            raise ValueError("give either `path` or `train`/`valid`/`tests`, not both")
        if (problem := several_columns_problem(self.source, self.target)) is not None:
            raise ValueError(problem)
        if abs(sum(self.ratios) - 1) > 1e-9 or min(self.ratios) <= 0:
            raise ValueError("`ratios` must be three positive numbers that add up to 1")
        return self

    @property
    def corpora_by_name(self) -> dict[str, CorpusConfig]:
        """Every corpus that is named, by its key: train.0, valid (of several valid.0), tests.NAME."""
        corpora = {f"train.{number}": corpus for number, corpus in enumerate(self.train)}
        has_several_valid = len(self.valid) > 1
        corpora |= {
            f"valid.{number}" if has_several_valid else "valid": corpus for number, corpus in enumerate(self.valid)
        }
        return corpora | {f"tests.{name}": corpus for name, corpus in self.tests.items()}

    @model_validator(mode="after")
    def _check_images(self) -> "DataConfig":
        if (problem := images_problem(self, self.corpora_by_name)) is not None:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_references(self) -> "DataConfig":
        for name, corpus in self.corpora_by_name.items():
            if not name.startswith("tests.") and not corpus.has_images and corpus.has_references:
                keys = '`references`, `merge_references`, `lists = "references"`'
                raise ValueError(f"{name}: {keys}: only test sets have several references")
        return self

    @model_validator(mode="after")
    def _check_synthetic(self) -> "DataConfig":
        for name, corpus in self.corpora_by_name.items():
            if not name.startswith("train.") and (corpus.synthetic is not None or corpus.tag is not None):
                raise ValueError(f"{name}: `synthetic` and `tag` are for training corpora: remove them")
        is_cut = self.fold is not None or not (self.valid and self.tests)
        if is_cut and any(corpus.synthetic is not None for corpus in self.train):
            remedy = "train without folds" if self.fold is not None else "give data.valid and data.tests"
            raise ValueError(f"text that a model made (`synthetic`) cannot be validated or tested on: {remedy}")
        return self

    @model_validator(mode="after")
    def _check_languages(self) -> "DataConfig":
        languages_by_corpus = {name: corpus.languages for name, corpus in self.corpora_by_name.items()}
        names_without_languages = [name for name, languages in languages_by_corpus.items() if languages is None]
        if names_without_languages and len(names_without_languages) < len(languages_by_corpus):
            keys = "source_language and target_language"
            raise ValueError(
                f"{names_without_languages[0]} has no {keys}, and others have: give them for every corpus, or for none"
            )
        targets = {corpus.target_language for corpus in self.train}
        for name, languages in languages_by_corpus.items():
            if languages is not None and languages[1] not in targets:
                raise ValueError(f'{name}: no training corpus has the target_language "{languages[1]}"')
        if self.temperature != 1 and any(corpus.weight != 1 for corpus in self.train):
            raise ValueError("give either `temperature` or a `weight` of corpora: both say how often pairs occur")
        return self

    @model_validator(mode="after")
    def _check_epochs(self) -> "DataConfig":
        for name, corpus in self.corpora_by_name.items():
            if not name.startswith("train.") and corpus.epochs is not None:
                raise ValueError(f"{name}.epochs: only training corpora have epochs")
        last = max((corpus.epochs[1] for corpus in self.train if corpus.epochs is not None), default=0)
        if (idle := self.epoch_without_corpora(last)) is not None:
            raise ValueError(f"no training corpus is used in epoch {idle}; see `epochs` of data.train")
        return self

    @field_serializer("valid", mode="wrap")
    def _dump_single_valid_as_table(self, valid: tuple[CorpusConfig, ...], dump: SerializerFunctionWrapHandler) -> Any:
        """One corpus is a table and none is null, as they were before there could be several."""
        tables = dump(valid)
        return tables if len(valid) > 1 else next(iter(tables), None)

    @property
    def has_running_text(self) -> bool:
        """Whether texts without a source are running text, so that their neighbors stay together."""
        return self.limits.empty == "keep" if self.running_text is None else self.running_text

    @property
    def target_languages(self) -> tuple[str, ...]:
        """The languages that training translates into, each once; none if the corpora do not name them."""
        codes = (corpus.target_language for corpus in self.train)
        return tuple(sorted({code for code in codes if code is not None}))

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of training texts, sources and targets, each once; none if the corpora do not name them."""
        language_pairs = (corpus.languages or () for corpus in self.train)
        return tuple(sorted({code for codes in language_pairs for code in codes}))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of training corpora, each once."""
        return tuple(sorted({corpus.tag for corpus in self.train if corpus.tag is not None}))

    def epoch_without_corpora(self, last_epoch: int) -> int | None:
        """The first epoch, up to `last_epoch`, in which no training corpus is used."""
        ranges = sorted(corpus.epochs or (1, last_epoch) for corpus in self.train)
        covered = 0
        for first, end in ranges:
            if first > covered + 1:
                break
            covered = max(covered, end)
        return covered + 1 if ranges and covered < last_epoch else None
