"""The tables within the [model] part of a recipe, with bounds and defaults: [model.encoder], [model.dropout], ..."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

MixingName = Literal["attention", "recurrent", "convolution"]
RecurrentCell = Literal["lstm", "gru", "gru_reset_before", "ssru", "tanh"]
Normalization = Literal["layer", "layer_gain", "layer_std", "rms", "batch", "none"]
RecurrentAttention = Literal["none", "bahdanau", "luong"]
VisionEncoder = Literal["patches", "convolution"]
GridPositions = Literal["none", "learned", "sinusoidal"]


class StackConfig(BaseModel):
    """A stack of layers: the encoder or the decoder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(6, ge=0, le=1000, description="0: only of an image's encoder, after a convolution")
    dim: int = Field(512, ge=1, le=2**20, description="width D of the stack")
    heads: int = Field(8, ge=1, le=2**20, description="attention heads of each layer")
    key_value_heads: int | None = Field(
        None, ge=1, description="heads of keys and values, each shared by a group of heads; none: as many as heads"
    )
    key_dim: int | None = Field(
        None, ge=1, le=2**20, description="width of a head's queries and keys; none: dim / heads"
    )
    value_dim: int | None = Field(None, ge=1, le=2**20, description="width of a head's values; none: dim / heads")
    feed_forward_dim: int = Field(2048, ge=1, le=2**20, description="width F between the two feed-forward matrices")
    mixing: MixingName | None = Field(None, description="of this stack of a transformer; none: model.mixing")

    @model_validator(mode="after")
    def _check_head_groups(self) -> "StackConfig":
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
    depth: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="stochastic depth: how often a batch leaves out a sublayer of the last layer; of layer l of L, "
        "l / L times as often",
    )


class RotaryConfig(BaseModel):
    """The speed of rotary positions, and how they are slowed down for texts longer than those of training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: float = Field(
        10_000.0, gt=1, description="pair i of K components turns by pos / base^(2i/K); Llama 3: 500000"
    )
    factor: float = Field(
        1.0, ge=1, description="how many times slower all pairs turn; with original_length the slow ones"
    )
    original_length: int | None = Field(
        None,
        ge=1,
        description="pairs that turn often within this length keep their speed, as in Llama 3.1; none: all are slowed",
    )
    low_frequency_factor: float = Field(
        1.0, gt=0, description="pairs with fewer turns than this within original_length are slowed by the whole factor"
    )
    high_frequency_factor: float = Field(4.0, gt=0, description="pairs with more turns than this keep their speed")

    @model_validator(mode="after")
    def _check_scaling(self) -> "RotaryConfig":
        if self.original_length is not None and self.factor == 1:
            raise ValueError("original_length has no effect while `factor` is 1: set `factor`, or remove both")
        for name in ("low_frequency_factor", "high_frequency_factor"):
            if self.original_length is None and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} is counted within original_length: set it, or remove {name}")
        if self.low_frequency_factor >= self.high_frequency_factor:
            raise ValueError(
                f"low_frequency_factor ({self.low_frequency_factor}) must be less than high_frequency_factor "
                f"({self.high_frequency_factor})"
            )
        return self


class ConvolutionConfig(BaseModel):
    """The convolution in self-attention's place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int | None = Field(
        None,
        ge=1,
        le=2**17,
        description="rows that a filter reads: around its own, in a decoder up to it; none: as far as model.window",
    )
    filters: int | None = Field(
        None,
        ge=1,
        le=2**20,
        description="filters, with a ReLU and a product back to the stack's width; none: as many as it is wide, alone",
    )
    dilation: int = Field(
        1, ge=1, le=1024, description="layer l reads every so many-th row to the power l - 1, so that a stack sees far"
    )


class RecurrentConfig(BaseModel):
    """The settings of a recurrent model, beside the layers and widths of its stacks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: RecurrentCell = Field(
        "lstm",
        description="gru: the reset gate after the product with U, as torch has it; gru_reset_before: before it; "
        "ssru: no product with U",
    )
    normalization: Normalization = Field("none", description="norm of each layer's input but the first one's")
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
    def _check_cutoffs_ascend(self) -> "AdaptiveConfig":
        if any(this >= following for this, following in zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            raise ValueError(f"cutoffs must ascend, not {', '.join(map(str, self.cutoffs))}")
        return self


class VisionConfig(BaseModel):
    """The encoder that makes tokens of an image, which the layers of `encoder` then read."""

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
        "learned", description="how positions are encoded; sinusoidal: half of the vector its row, half its column"
    )


class CanineConfig(BaseModel):
    """The encoder that makes of characters the shorter sequence that the layers of `encoder` read (CANINE, Clark et
    al. 2022).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hashes: int = Field(8, ge=1, le=64, description="tables in which each character is looked up by a hash of its own")
    buckets: int = Field(16384, ge=1, le=2**24, description="vectors in each of these tables")
    window: int = Field(64, ge=1, le=2**17, description="how far a character sees in the layer before the convolution")
    rate: int = Field(4, ge=1, le=64, description="characters that become one row of the shorter sequence")
    upsampling: int = Field(
        4, ge=1, le=64, description="tagging: width of the convolution that makes rows of characters again"
    )


class WordVectorsConfig(BaseModel):
    """The training of word vectors by skip-gram and CBOW."""

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
    """The spans of a text that are hidden, to be predicted (Raffel et al. 2020, section 3.1.4)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(0.15, gt=0, le=0.5, description="share of a text's tokens that is hidden")
    mean_length: float = Field(
        3.0, ge=1, le=1000, description="mean length of a hidden span in tokens; of bytes Xue et al. 2022 take 20"
    )
