"""The [tokenizer] part of a recipe."""

from collections.abc import Collection
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tfm.tokenizer.special import BOS, EOS, PAD, UNK

Kind = Literal["bpe", "wordpiece", "unigram", "char", "byte", "word", "codepoint"]
LabelKind = Literal["label", "tags"]
Normalization = Literal["none", "nfc", "nfd", "nfkc", "nfkd"]
MergeCriterion = Literal["frequency", "likelihood", "ratio"]
LEARNING_KEYS = (
    "kind",
    "vocab_size",
    "lowercase",
    "normalization",
    "min_frequency",
    "criterion",
    "min_score",
    "min_gain",
    "clusters",
    "sentinels",
)
"""Keys by which a tokenizer is learned."""
CONTROL_TOKEN_FIELDS = {PAD: "pad_token", UNK: "unk_token", BOS: "bos_token", EOS: "eos_token"}
"""For each control token, the key that names it in a tokenizer that is taken."""
FOREIGN_KEYS = (*CONTROL_TOKEN_FIELDS.values(), "codes_vocabulary", "pattern")
"""Keys by which a tokenizer is taken."""
GROWTH_KEYS = ("min_frequency",)
"""Keys among them by which a tokenizer is also grown."""
SOURCE_KEYS = ("source_normalization", "source_lowercase")
TARGET_KEYS = ("target_normalization", "target_lowercase")
"""Keys that one side has of its own."""


class TokenizerConfig(BaseModel):
    """Settings by which text becomes pieces. Used by `tfm tokenize`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = Field("bpe", description="how words are split into pieces")
    vocab_size: int = Field(10_000, ge=8, description="maximum number of pieces, including control tokens")
    lowercase: bool = Field(False, description="lower-case all text first")
    normalization: Normalization = Field(
        "nfc", description="Unicode normal form applied to all text; nfkc and nfkd change what a model can write"
    )
    min_frequency: int = Field(2, ge=1, description="pieces that occur less often are not learned")
    criterion: MergeCriterion = Field(
        "frequency",
        description="wordpiece: which two pieces become one: those found together most often (Hugging Face's trainer); "
        "those that raise the likelihood of the text most (Schuster and Nakajima 2012); or those of the highest ratio "
        "c(ab) / (c(a) c(b)), found together more often than by chance (Hugging Face's course)",
    )
    min_score: float = Field(
        0.0, ge=0, le=1, description='criterion = "ratio": it ends where no pair has this c(ab) / (c(a) c(b))'
    )
    min_gain: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description='criterion = "likelihood": it ends where no pair adds so many nats to log L of the text; 0: where '
        "none adds any",
    )
    clusters: int | None = Field(
        None,
        ge=2,
        description="unigram: languages are put into so many clusters by the words they share, each cluster learns "
        "pieces of its own, as many as its languages need, and these are joined (XLM-V); none: all learn together",
    )
    sentinels: int = Field(
        0,
        ge=0,
        le=10_000,
        description="control tokens that stand for hidden spans, for model.task = span_corruption, and for models that "
        "start from one of that task; they count among vocab_size",
    )
    shared: bool = Field(True, description="one vocabulary for source and target, or one for each side")
    target_kind: Kind | LabelKind | None = Field(
        None,
        description="of the target's own vocabulary; none: as `kind`. label, tags: names, a whole text each or those "
        "between its spaces, never normalised, cut or unknown: so they are without being asked for where a task labels",
    )
    source_normalization: Normalization | None = Field(
        None, description="of the source's own vocabulary; not given: as `normalization`"
    )
    target_normalization: Normalization | None = Field(
        None, description="of the target's own vocabulary; not given: as `normalization`"
    )
    source_lowercase: bool | None = Field(None, description="of the source's own vocabulary; none: as `lowercase`")
    target_lowercase: bool | None = Field(None, description="of the target's own vocabulary; none: as `lowercase`")
    source_from: str | None = Field(
        None, description="a folder with a tokenizer; its source side is used, and only the target's is learned"
    )

    file: str | None = Field(
        None,
        description="an existing tokenizer to use instead of learning one, a file or folder of another program; with "
        "shared = false for the source",
    )
    pad_token: str | None = Field(None, description="what `file` calls padding; none: as it or a file beside it says")
    unk_token: str | None = Field(None, description="what `file` calls what is unknown; none: the same")
    bos_token: str | None = Field(None, description="what `file` begins a text with; none: the same")
    eos_token: str | None = Field(None, description="what `file` ends a text with; none: the same")
    codes_vocabulary: str | None = Field(
        None,
        description="of `file`, where it has codes of subword-nmt or fastBPE: the pieces by their ids, one a line; "
        "none: all pieces that the codes make",
    )
    pattern: str | None = Field(
        None,
        description="of `file`, where it has ranks of tiktoken: the regular expression that cuts texts, or the "
        "encoding that has it (cl100k_base, ...); none: that of the published encoding with as many pieces",
    )
    grow: int | None = Field(
        None,
        ge=1,
        description="how many pieces `file` gets beside its own, learned from the training text as its kind learns: "
        "for a model to start from that has that vocabulary (training.init_from); none: it is used unchanged",
    )

    @model_validator(mode="after")
    def _check_keys_beside_file(self) -> "TokenizerConfig":
        if self.file is None and self.grow is not None:
            raise ValueError("`grow` adds pieces to those of a tokenizer that there is: name its `file`")
        if self.file is None:
            if unused_keys := [name for name in FOREIGN_KEYS if getattr(self, name) is not None]:
                raise ValueError(
                    f"{', '.join(unused_keys)}: only for a tokenizer that is taken. Name its `file`, or remove the key"
                )
            return self
        if self.source_from is not None:
            raise ValueError("`file` and `source_from` both name the tokenizer of the source: remove one")
        growth_keys = GROWTH_KEYS if self.grow is not None else ()
        unused_keys = [name for name in LEARNING_KEYS if name in self.model_fields_set and name not in growth_keys]
        if self.shared and unused_keys:
            reason = "is used unchanged, and nothing is learned" if self.grow is None else "says how it is learned"
            raise ValueError(f"`file` {reason}: remove {', '.join(unused_keys)}")
        return self

    @model_validator(mode="after")
    def _check_key_combinations(self) -> "TokenizerConfig":
        room = self.vocab_size - self.sentinels
        if self.kind == "byte" and room < 260:
            with_sentinels = f" and {self.sentinels} sentinels" if self.sentinels else ""
            raise ValueError(
                f"`vocab_size` must be at least {260 + self.sentinels} for kind `byte`: 256 bytes, 4 control tokens"
                f"{with_sentinels}"
            )
        if self.sentinels and self.kind == "codepoint":
            raise ValueError(
                "`sentinels` are pieces that a model writes, and none writes kind `codepoint`: remove them"
            )
        if self.sentinels and room < 8:
            raise ValueError(f"`sentinels` ({self.sentinels}) leave too little of vocab_size ({self.vocab_size})")
        if self.sentinels and not self.shared:
            raise ValueError("`sentinels` stand in texts and in what is predicted of them: set shared = true")
        if self.clusters is not None and not self.shared:
            raise ValueError("`clusters` needs one vocabulary for all languages: set shared = true")
        for name in ("target_kind", "source_from", *SOURCE_KEYS, *TARGET_KEYS):
            if self.shared and getattr(self, name) is not None:
                raise ValueError(f"`{name}` needs one vocabulary for each side: set shared = false")
        return self

    @model_validator(mode="after")
    def _check_side_normalization(self) -> "TokenizerConfig":
        key = next((name for name in ("file", "source_from") if getattr(self, name) is not None), None)
        unused_keys = [name for name in SOURCE_KEYS if getattr(self, name) is not None]
        if key is not None and unused_keys:
            raise ValueError(
                f"`{key}` has the source's tokenizer, with its own normalisation: remove {', '.join(unused_keys)}"
            )
        unused_keys = [name for name in TARGET_KEYS if getattr(self, name) is not None]
        if self.label_kind is not None and unused_keys:
            raise ValueError(
                f'target_kind = "{self.label_kind}" is of names, never normalised: remove {", ".join(unused_keys)}'
            )
        return self

    def languages_problem(self, languages: Collection[str]) -> str | None:
        """Return the reason why the languages of all training texts cannot form so many clusters; None if they can."""
        if self.clusters is None:
            return None
        if not languages:
            return "tokenizer.clusters needs the language of each text: source_language and target_language of corpora"
        if self.clusters > len(languages):
            names = ", ".join(sorted(languages))
            return (
                f"tokenizer.clusters = {self.clusters} is more than the {len(languages)} languages there are: {names}"
            )
        return None

    @property
    def source_config(self) -> "TokenizerConfig":
        """The settings by which the source's own vocabulary is learned."""
        return self._side_config(self.source_normalization, self.source_lowercase, self.kind)

    @property
    def target_config(self) -> "TokenizerConfig":
        """The settings by which the target's own vocabulary is learned."""
        return self._side_config(self.target_normalization, self.target_lowercase, self.target_kind or self.kind)

    def _side_config(self, normalization: Normalization | None, lowercase: bool | None, kind: str) -> "TokenizerConfig":
        """The config with the settings of a side, where it has its own."""
        side_settings = {"kind": kind, "normalization": normalization, "lowercase": lowercase}
        return self.model_copy(update={name: value for name, value in side_settings.items() if value is not None})

    @property
    def label_kind(self) -> LabelKind | None:
        """The kind of names that the target's own vocabulary is of, if it is one of names."""
        return next((kind for kind in get_args(LabelKind) if kind == self.target_kind), None)

    @property
    def is_file_used_unchanged(self) -> bool:
        """Whether the tokenizer is taken as it is."""
        return self.file is not None and self.shared and self.grow is None

    @property
    def keys_without_effect(self) -> set[str]:
        """The keys that do not change what is made: paths, settings of learning where a tokenizer is taken, and
        defaults that are not used.
        """
        keys = {"source_from", "file", "codes_vocabulary", *(LEARNING_KEYS if self.is_file_used_unchanged else ())}
        if self.grow is None:
            keys |= {"grow"}
        elif self.shared:
            keys |= {*LEARNING_KEYS} - {*GROWTH_KEYS}
        keys |= {"criterion"} if self.criterion == "frequency" else set()
        keys |= {"min_score"} if self.criterion != "ratio" else set()
        keys |= {"min_gain"} if self.criterion != "likelihood" else set()
        keys |= set() if self.sentinels else {"sentinels"}
        keys |= {name for name in (*SOURCE_KEYS, *TARGET_KEYS, *FOREIGN_KEYS) if getattr(self, name) is None}
        return keys | ({"clusters"} if self.clusters is None else set())
