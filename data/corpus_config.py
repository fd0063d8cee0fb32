"""One corpus of a recipe: where its texts, pairs of texts or images come from, and what they are."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tfm.data.corpus_keys.built_in_corpora import (
    language_codes_problem,
    language_columns_problem,
    parameters_problem,
    required_keys_problem,
)
from tfm.data.corpus_keys.table_keys import (
    parse_columns,
    parse_source,
    parse_target,
    split_columns,
    synthetic_problem,
    synthetic_text_files,
    table_keys_problem,
)
from tfm.data.image_config import IMAGE_FORMATS, image_corpus_problem
from tfm.tokenizer.special import LANGUAGE_CODE_PATTERN

Format = Literal[
    "text",
    "tsv",
    "csv",
    "jsonl",
    "parquet",
    "labelled",
    "conllu",
    "conll",
    "tmx",
    "xliff",
    "po",
    "huggingface",
    "generated",
    "imagefolder",
    "idx",
]
Quoting = Literal["raw", "double", "backslash"]
# Formats with their own column names; the usual "source" and "target" come first.
COLUMNS_BY_FORMAT: dict[Format, tuple[str, ...]] = {
    "labelled": ("text", "label", "source", "target"),
    "conllu": ("form", "upos", "lemma", "xpos", "deprel", "source", "target"),
    "po": ("msgid", "msgstr", "source", "target"),
}
EpochNumber = Annotated[int, Field(ge=1)]


class CorpusConfig(BaseModel):
    """One corpus of sentence pairs.

    text: `source` and `target` are two aligned files; of texts alone a glob may name several. tsv, csv, jsonl, parquet:
    `path` is the file (or several, by a glob), `source` and `target` name its columns (tsv, csv without a header: their
    numbers, from 0); several columns as `source` are joined by spaces.
    labelled: a line is LABEL and text; the source is the text, the target the label. conllu: the source is the words
    of a sentence, the target one of its columns (upos). conll: a word a line, its columns by number; the source is the
    first, the target the last. tmx: `source` and `target` are codes of languages. xliff, po: a segment and its
    translation; in xliff `source` and `target` may be codes of languages.
    huggingface: `path` is a dataset's folder, its NAME or NAME:CONFIGURATION, `split` its split. generated:
    `path` names the built-in corpus, `split` which of its splits, `size` how many pairs.
    imagefolder: `path` is a folder of images, `target` a column of its tables (label). idx: `path` is a file of images,
    `target` one of labels. Images are sources too in huggingface with `image`, a column, and in the built-in `scenes`;
    `size` and `skip` then count images.
    Every file may be compressed (gz, bz2, xz, zst, zip). Without a source the corpus is of texts, which are targets.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Format = Field("text", description="what the files are; generated: a built-in corpus")
    path: str | None = Field(
        None, description="the file, folder or dataset; a glob names several files; a built-in corpus by its name"
    )
    source: str | tuple[str, ...] | None = Field(
        "source",
        description="file or column; of a table several columns, joined by spaces (`[0, 2]`); none: texts without a "
        "source, for language models",
    )
    target: str = Field("target", description="file or column of the texts that are learned, or of labels")
    image: str | None = Field(None, description="huggingface: the column of images, which are then the sources")
    classes: tuple[str, ...] = Field(
        (),
        description="the names of labels that are integers, 0, 1, ...; none: those that the data have (ClassLabel of "
        "Hugging Face), else their numbers",
    )
    references: tuple[str, ...] | None = Field(
        None,
        description="test sets: files or columns with further references, in addition to `target`; of images in every "
        "split: columns with further captions",
    )
    merge_references: bool | None = Field(
        None, description="test sets: merge pairs with the same source, their targets being its references"
    )
    lists: Literal["join", "words", "references"] | None = Field(
        None,
        description="jsonl, parquet, huggingface: a list of texts is one text with spaces between (words: none of them "
        "may be empty or contain a space) or, as target of a test set, its references; none: refused",
    )
    delimiter: str | None = Field(
        None, description="csv: what is between cells, several characters too (' ||| '); none: what the file has"
    )
    quoting: Quoting | None = Field(
        None,
        description="csv, tsv: quotation marks are text (raw), are around cells and doubled within (double: "
        '"a ""b"""), or have a backslash before them within ("a \\"b\\""); none: as the file has them',
    )
    header: bool | None = Field(
        None, description="csv, tsv: whether the first row names the columns; none: unless they are named by numbers"
    )
    filters: tuple[str, ...] | None = Field(
        None,
        description="tmx, xliff, po: the properties that a segment must have (state=final), or must not (state!=new); "
        "po: without one of fuzzy, messages that are fuzzy are left out",
    )
    inline_tags: bool | None = Field(
        None, description="tmx, xliff: whether tags within segments are text; else they and their codes are left out"
    )
    split: str | None = Field(None, description="huggingface, generated: which of its splits; other formats have none")
    size: int | None = Field(None, ge=1, description="maximum number of pairs, from the beginning")
    skip: int = Field(0, ge=0, description="number of pairs to skip at the beginning")
    source_language: str | None = Field(
        None, description="the source's language, as ISO 639-3 codes it (eng); with target_language"
    )
    target_language: str | None = Field(
        None, description="the target's language: its token, >>deu<<, is before each source"
    )
    weight: float = Field(1.0, gt=0, description="how often an example of this corpus occurs in an epoch")
    epochs: tuple[EpochNumber, EpochNumber] | None = Field(
        None, description="training: the first and the last epoch that use it, counted from 1; none: all"
    )
    length: int | None = Field(None, ge=1, le=100, description="addition, programs: maximum digits of a number")
    nesting: int | None = Field(None, ge=1, le=20, description="programs: number of operations of a program")
    synthetic: str | None = Field(
        None, description="training: the folder of text that `tfm synthesize` made, in place of source and target"
    )
    side: Literal["source", "target"] | None = Field(
        None,
        description="synthetic: the side that a model wrote; none: source, which is back-translation; target: forward "
        "translation, distillation",
    )
    tag: str | None = Field(
        None, description='training: a control token before each source, such as "<BT>"; test sets have none'
    )
    mix: bool = Field(
        False, description="addition, programs: draw length and nesting at random for each, up to those values"
    )

    @property
    def is_one_text(self) -> bool:
        """Whether source and target are the same text."""
        return self.source == self.target and self.format != "generated"

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The columns, or the file, of the source; none: there is no source."""
        return split_columns(self.source)

    @property
    def has_source(self) -> bool:
        """Whether these are pairs; otherwise they are texts, each a target."""
        return self.source is not None

    @property
    def has_images(self) -> bool:
        """Whether its sources are images."""
        return (
            self.format in IMAGE_FORMATS
            or self.image is not None
            or (self.format, self.path) == ("generated", "scenes")
        )

    @property
    def is_stage_text(self) -> bool:
        """Whether a stage wrote its files: each line is a text, also where it looks like markup or a table."""
        return self.synthetic is not None

    @property
    def languages(self) -> tuple[str, str] | None:
        """The languages of source and target, if they are said."""
        language_pair = self.source_language, self.target_language
        return None if language_pair[0] is None or language_pair[1] is None else (language_pair[0], language_pair[1])

    @property
    def has_references(self) -> bool:
        """Whether its segments may have more than one reference."""
        return bool(self.references) or bool(self.merge_references) or self.lists == "references"

    @model_validator(mode="before")
    @classmethod
    def _default_reference_target(cls, settings: object) -> object:
        """Without a target the first of the references is it."""
        references = settings.get("references") if isinstance(settings, dict) else None
        if (
            isinstance(settings, dict)
            and isinstance(references, (list, tuple))
            and "target" not in settings
            and (references and isinstance(references[0], (str, int)))
        ):
            first, *other_references = references
            return {**settings, "target": first, "references": other_references or None}
        return settings

    @model_validator(mode="before")
    @classmethod
    def _default_label_target(cls, settings: object) -> object:
        """Without a target the labels of a folder of images are it."""
        has_target = isinstance(settings, dict) and ("target" in settings or settings.get("references"))
        if isinstance(settings, dict) and settings.get("format") == "imagefolder" and not has_target:
            return {**settings, "target": "label"}
        return settings

    @model_validator(mode="before")
    @classmethod
    def _find_synthetic_files(cls, settings: object) -> object:
        """Text that a model made is two files: which of them is the source is said by `side`."""
        if not isinstance(settings, dict) or not isinstance(settings.get("synthetic"), str):
            return settings
        sides = synthetic_text_files(settings["synthetic"], settings.get("side"))
        if any(settings.get(side, file) != file for side, file in sides.items()):
            raise ValueError("`synthetic` has both sides of the pairs: remove `source` and `target`")
        return {**settings, **sides}

    _parse_source = field_validator("source", mode="before")(parse_source)
    _parse_target = field_validator("target", mode="before")(parse_target)
    _parse_references = field_validator("references", mode="before")(parse_columns)

    @field_validator("source_language", "target_language")
    @classmethod
    def _check_language_code(cls, code: str | None) -> str | None:
        if code is not None and not re.fullmatch(LANGUAGE_CODE_PATTERN, code):
            raise ValueError(
                f'"{code}" is no code of ISO 639-3: give three small letters ("deu", "eng"), if needed with a script '
                '("zho_Hans")'
            )
        return code

    @field_validator("epochs", "classes", "filters", mode="before")
    @classmethod
    def _list_as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value  # as `_as_tuple`

    @model_validator(mode="after")
    def _check_required_keys(self) -> "CorpusConfig":
        if "\0" in "".join((str(self.path), *self.source_columns, self.target)):
            raise ValueError("names of files and columns cannot contain NUL")
        if self.format == "text" and self.path is not None:
            raise ValueError(
                "a corpus of two text files has `source` and `target`, no `path`; otherwise give its `format`"
            )
        if self.format != "text" and self.path is None:
            raise ValueError(f'a corpus of format "{self.format}" needs `path`')
        if (problem := required_keys_problem(self)) is not None:
            raise ValueError(problem)
        if self.epochs is not None and self.epochs[0] > self.epochs[1]:
            raise ValueError(f"`epochs` are the first and the last epoch: {self.epochs[0]} is after {self.epochs[1]}")
        return self

    @model_validator(mode="after")
    def _check_images(self) -> "CorpusConfig":
        if (problem := image_corpus_problem(self) or table_keys_problem(self) or synthetic_problem(self)) is not None:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_columns(self) -> "CorpusConfig":
        for side in (*self.source_columns, self.target):
            if side not in COLUMNS_BY_FORMAT.get(self.format, (side,)):
                names = ", ".join(COLUMNS_BY_FORMAT[self.format])
                raise ValueError(f'format "{self.format}" has no column "{side}"; it has {names}')
        return self

    @model_validator(mode="after")
    def _check_built_in_languages(self) -> "CorpusConfig":
        if (problem := language_columns_problem(self)) is not None:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_languages(self) -> "CorpusConfig":
        if (self.source_language is None) != (self.target_language is None):
            raise ValueError("give both `source_language` and `target_language`, or neither")
        if self.languages is not None and not self.has_source:
            raise ValueError(
                "texts without a source are not translated: remove `source_language` and `target_language`"
            )
        if (problem := language_codes_problem(self)) is not None:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_references(self) -> "CorpusConfig":
        if self.references and self.format in ("labelled", "conllu", "conll", "tmx", "xliff", "po", "generated"):
            raise ValueError(f'`references`: format "{self.format}" has one for each segment')
        if self.lists is not None and self.format not in ("jsonl", "parquet", "huggingface"):
            raise ValueError(f'`lists`: format "{self.format}" has no lists')
        if self.has_references and not self.has_source:
            raise ValueError("`references`, `merge_references`: texts without a source have no references")
        return self

    @model_validator(mode="after")
    def _check_parameters(self) -> "CorpusConfig":
        if (problem := parameters_problem(self)) is not None:
            raise ValueError(problem)
        return self


class StageTextConfig(CorpusConfig):
    """Text files that a stage wrote."""

    @property
    def is_stage_text(self) -> bool:
        return True
