"""The keys of the [model] part of a recipe, with bounds and defaults; each is checked separately here.

Incompatible values: `config_checks.py`. Both together, as other modules import it: `config.py`.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Architecture = Literal["transformer", "decoder_only", "encoder_only", "recurrent", "skip_gram", "cbow"]
Task = Literal[
    "translation", "language_model", "masked_language_model", "span_corruption", "classification", "tagging",
    "word_vectors",
]  # fmt: skip
Pooling = Literal["mean", "max", "first"]
Norm = Literal["pre", "post"]
Positions = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "transformer_xl"]
PositionsJoin = Literal["add", "concatenate"]
Mixing = Literal["attention", "recurrent", "convolution"]
Normalization = Literal["layer", "rms", "batch"]
Activation = Literal["relu", "gelu", "gelu_tanh", "tanh", "silu", "glu", "swiglu"]
Score = Literal["scaled_dot", "dot", "general", "additive", "linear_additive"]
Tie = Literal["none", "embeddings", "output", "all"]
Cell = Literal["lstm", "gru"]
RecurrentAttention = Literal["none", "bahdanau", "luong"]
VisionEncoder = Literal["patches", "convolution"]
GridPositions = Literal["none", "learned", "sinusoidal"]


LEARNS: dict[Architecture, tuple[Task, ...]] = {
    "transformer": ("translation", "span_corruption"),
    "decoder_only": ("translation", "language_model"),
    "encoder_only": ("masked_language_model", "classification", "tagging"),
    "recurrent": ("translation", "span_corruption"),
    "skip_gram": ("word_vectors",),
    "cbow": ("word_vectors",),
}
"""Which tasks each architecture can learn."""
ONE_STACK = ("decoder_only", "encoder_only", "skip_gram", "cbow")
EMBEDS: dict[Architecture, tuple[str, ...]] = {
    "decoder_only": ("target",),
    "encoder_only": ("source",),
    "skip_gram": ("target",),
    "cbow": ("target",),
}
"""Which side's texts an architecture with one embedding table reads; the others read both."""
SEES: dict[Architecture, tuple[Task, ...]] = {
    "transformer": ("translation",),
    "encoder_only": ("classification",),
    "recurrent": ("translation",),
}
"""Which tasks each architecture can learn where the source is an image."""
SPELLS: dict[Architecture, tuple[Task, ...]] = {
    "transformer": ("translation",),
    "encoder_only": ("classification", "tagging"),
    "recurrent": ("translation",),
}
"""Which tasks each architecture can learn where the source is read as characters (model.canine)."""
SAYS_PIECES = ("translation", "language_model", "masked_language_model", "span_corruption")
CONVOLUTION_WINDOW = 3


class StackConfig(BaseModel):
    """A stack of layers: the encoder or the decoder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(6, ge=0, le=1000, description="0: only of an image's encoder, after a convolution")
    dim: int = Field(512, ge=1, le=2**20, description="width D of the stack")
    heads: int = Field(8, ge=1, le=2**20)
    key_value_heads: int | None = Field(
        None, ge=1, description="heads of keys and values, each shared by a group of heads; none: as many as heads"
    )
    key_dim: int | None = Field(
        None, ge=1, le=2**20, description="width of a head's queries and keys; none: dim / heads"
    )
    value_dim: int | None = Field(None, ge=1, le=2**20, description="width of a head's values; none: dim / heads")
    feed_forward_dim: int = Field(2048, ge=1, le=2**20, description="width F between the two feed-forward matrices")

    @model_validator(mode="after")
    def _heads_are_shared_evenly(self) -> "StackConfig":
        if self.heads % (self.key_value_heads or 1):
            raise ValueError(f"key_value_heads ({self.key_value_heads}) must divide heads ({self.heads})")
        return self


class DropoutConfig(BaseModel):
    """Dropout rates, each its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    residual: float = Field(0.1, ge=0, lt=1, description="on every sublayer's output")
    embedding: float = Field(0.1, ge=0, lt=1, description="on embeddings with positions")
    attention: float = Field(0.0, ge=0, lt=1, description="on attention weights (turns the fused kernel off)")
    feed_forward: float = Field(0.0, ge=0, lt=1, description="after the feed-forward activation")


class RecurrentConfig(BaseModel):
    """What a recurrent model is, beside the layers and widths of its stacks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: Cell = "lstm"
    bidirectional: bool = Field(
        False, description="the encoder reads in both directions, each half as wide as the stack"
    )
    reverse_source: bool = Field(False, description="the encoder reads the source backwards (Sutskever et al. 2014)")
    attention: RecurrentAttention = Field(
        "none",
        description="bahdanau: before the decoder's first layer; luong: after its last; with the score of model.score",
    )


class AdaptiveConfig(BaseModel):
    """Output and embeddings by clusters of frequency. Ids are taken as ranks, as tokenizer.kind = "word" has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cutoffs: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), description="ids at which further clusters begin, ascending; none: one cluster, the full softmax"
    )
    factor: int = Field(4, ge=1, le=2**20, description="each cluster is narrower than the previous one by this factor")
    inputs: bool = Field(True, description="adaptive embeddings too (Baevski & Auli 2019), which model.tie may share")

    @model_validator(mode="after")
    def _cutoffs_ascend(self) -> "AdaptiveConfig":
        if any(this >= following for this, following in zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            raise ValueError(f"cutoffs must ascend, not {', '.join(map(str, self.cutoffs))}")
        return self


class VisionConfig(BaseModel):
    """How an image becomes tokens, which the layers of `encoder` then read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: VisionEncoder = Field(
        "patches",
        description="patches: squares of the image (Dosovitskiy et al. 2021); convolution: the cells of a residual "
        "network's last map (He et al. 2016)",
    )
    patch: int = Field(8, ge=1, le=4096, description="patches: side of a square, in pixels")
    channels: tuple[Annotated[int, Field(ge=1, le=2**16)], ...] = Field(
        (32, 64, 128),
        min_length=1,
        max_length=12,
        description="convolution: channels of each stage; each but the first halves height and width",
    )
    stride: int = Field(
        1, ge=1, le=64, description="convolution: of the first one, which looks at every so many-th row and column"
    )
    blocks: int = Field(1, ge=1, le=1000, description="convolution: residual blocks of each stage")
    positions: GridPositions = Field(
        "learned", description="what tells where a token is; sinusoidal: half of the vector its row, half its column"
    )


class CanineConfig(BaseModel):
    """How characters become the shorter sequence that the layers of `encoder` read (CANINE, Clark et al. 2022)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hashes: int = Field(8, ge=1, le=64, description="tables in which each character is looked up by a hash of its own")
    buckets: int = Field(16384, ge=1, le=2**24, description="vectors in each of these tables")
    window: int = Field(64, ge=1, le=2**17, description="how far a character sees in the layer before the convolution")
    rate: int = Field(4, ge=1, le=64, description="characters that become one row of the shorter sequence")
    upsampling: int = Field(
        4, ge=1, le=64, description="tagging: width of the convolution that makes rows of characters again"
    )


class WordVectorsConfig(BaseModel):
    """How skip-gram and CBOW learn word vectors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int = Field(5, ge=1, le=1000, description="neighbours of a word: at most this many words to each side")
    shrink: bool = Field(
        False,
        description="draw each word's window from 1 to `window`, so that near words count more (Mikolov et al. 2013a)",
    )
    negatives: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="negative sampling with this many noise words per prediction (Mikolov et al. 2013b, eq. 4); none: "
        "the softmax over all words",
    )
    subsample: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="drop words more frequent than this, more often the more frequent they are (Mikolov et al. 2013b, "
        "eq. 5: t); none: read all",
    )


class SpanCorruptionConfig(BaseModel):
    """Which spans of a text are hidden, to be predicted (Raffel et al. 2020, section 3.1.4)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(0.15, gt=0, le=0.5, description="share of a text's tokens that is hidden")
    mean_length: float = Field(
        3.0, ge=1, le=1000, description="mean length of a hidden span in tokens; of bytes Xue et al. 2022 take 20"
    )


class ModelFields(BaseModel):
    """The keys of [model]; `config.ModelConfig` also checks that their values go together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: Architecture = "transformer"
    task: Task = Field("translation", description="what the model learns")
    embedding_dim: int | None = Field(
        None, ge=1, le=2**20, description="width of embeddings; none: as wide as each stack"
    )
    encoder: StackConfig = StackConfig()
    decoder: StackConfig = StackConfig()
    norm: Norm = Field("pre", description="before or after each sublayer")
    normalization: Normalization = Field("layer", description="layer norm, RMS norm or batch norm")
    norm_eps: float = Field(1e-5, gt=0, lt=1, description="what norms add to the variance, or to the mean square")
    mixing: Mixing = Field("attention", description="the layer that mixes positions: self-attention or a replacement")
    window: int | None = Field(
        None,
        ge=1,
        le=2**17,
        description=f"how far self-attention or a convolution sees; none: all, a convolution {CONVOLUTION_WINDOW}",
    )
    positions: Positions = Field(
        "sinusoidal", description="position scheme; the last four are relative, in self-attention"
    )
    positions_join: PositionsJoin = Field(
        "add",
        description="how positions join embeddings; concatenate: half of a row is embedding, half is position",
    )
    activation: Activation = Field(
        "relu", description="of feed-forward layers; glu, swiglu: gated, with one more matrix"
    )
    score: Score = "scaled_dot"
    qk_norm: bool = Field(False, description="RMS norm of each head's queries and keys")
    tie: Tie = Field(
        "all", description="shared tables; embeddings: source = target; output: target = output layer; all: all three"
    )
    output_bias: bool = Field(False, description="a bias of each piece or label in the output layer")
    scale_embedding: bool = Field(True, description="multiply embeddings by the square root of their width")
    adaptive: AdaptiveConfig | None = Field(
        None, description="an adaptive softmax, for large vocabularies; none: the full softmax"
    )
    pooling: Pooling = Field("mean", description="classification: how a sentence's rows are combined into one")
    block: int | None = Field(
        None, ge=1, description="language_model: windows of this many pieces of the running text; none: line by line"
    )
    max_length: int = Field(1024, ge=2, le=2**17, description="maximum input length in pieces, including the end token")
    dropout: DropoutConfig = DropoutConfig()
    recurrent: RecurrentConfig = Field(RecurrentConfig(), description='only for architecture = "recurrent"')
    word_vectors: WordVectorsConfig = Field(
        WordVectorsConfig(), description='only for architecture = "skip_gram" and "cbow"'
    )
    vision: VisionConfig | None = Field(
        None,
        description="the source is an image, and how it becomes tokens; mixing, window and positions are then of the "
        "decoder alone; none: the source is text",
    )
    span_corruption: SpanCorruptionConfig = Field(
        SpanCorruptionConfig(), description='only for task = "span_corruption"'
    )
    canine: CanineConfig | None = Field(
        None,
        description='the source is characters (tokenizer.kind = "codepoint"), and how they become a shorter sequence; '
        "none: the source is pieces",
    )
    source_vectors: str | None = Field(
        None,
        description="what the embedding of source pieces starts from: a text file of word2vec or GloVe, or the model/ "
        "of another training; none: drawn",
    )
    target_vectors: str | None = Field(None, description="the same for target pieces")
    freeze_vectors: bool = Field(False, description="do not train embeddings that start from vectors")

    @property
    def has_tails(self) -> bool:
        """Whether there are pieces whose probabilities are computed only where they are asked for."""
        return self.adaptive is not None and len(self.adaptive.cutoffs) > 0

    @property
    def one_vocabulary_for(self) -> str | None:
        """The setting by which source and target must be read by the same pieces; None where they need not."""
        if self.task == "span_corruption":  # one text, read with gaps and written where they are
            return f'task = "{self.task}"'
        if self.architecture in ONE_STACK:
            both = self.architecture == "decoder_only" and self.task == "translation"
            return f'architecture = "{self.architecture}"' if both else None
        return f'tie = "{self.tie}"' if self.tie in ("embeddings", "all") else None

    @property
    def attending_sides(self) -> tuple[str, ...]:
        """The stacks that have attention of several heads."""
        if self.vision is not None:
            decoder = self.architecture == "transformer" or (
                self.architecture == "recurrent" and self.recurrent.attention != "none"
            )
            return ("encoder",) * (self.encoder.layers > 0) + ("decoder",) * decoder
        if self.architecture == "recurrent":
            encoder = ("encoder",) if self.canine is not None else ()
            return encoder if self.recurrent.attention == "none" else (*encoder, "decoder")
        if self.architecture == "transformer":
            return ("encoder", "decoder") if self.mixing == "attention" else ("decoder",)  # it attends to the source
        stack = {"encoder_only": "encoder", "decoder_only": "decoder"}.get(self.architecture)
        return (stack,) if stack is not None and self.mixing == "attention" else ()

    @property
    def sides_with_vectors(self) -> tuple[str, ...]:
        """The sides whose embedding starts from word vectors."""
        given = {"source": self.source_vectors, "target": self.target_vectors}
        return tuple(side for side, vectors in given.items() if vectors is not None)

    @property
    def frozen_sides(self) -> tuple[str, ...]:
        """The sides whose embedding is not trained."""
        return self.sides_with_vectors if self.freeze_vectors else ()
