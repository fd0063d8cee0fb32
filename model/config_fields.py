"""The keys of the [model] part of a recipe, with bounds and defaults; each is checked separately here.

Tables: `config_tables.py`. Incompatible values: `config_checks/`. All together, as other modules import it:
`config.py`.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tfm.model.config_tables import (
    AdaptiveConfig,
    CanineConfig,
    ConvolutionConfig,
    DropoutConfig,
    MixingName,
    Normalization,
    RecurrentConfig,
    RotaryConfig,
    SpanCorruptionConfig,
    StackConfig,
    VisionConfig,
    WordVectorsConfig,
)

Architecture = Literal["transformer", "decoder_only", "encoder_only", "recurrent", "skip_gram", "cbow"]
Task = Literal[
    "translation", "language_model", "masked_language_model", "span_corruption", "classification", "tagging",
    "word_vectors",
]  # fmt: skip
Pooling = Literal["mean", "max", "first"]
NormPlacement = Literal["pre", "post"]
PositionsName = Literal[
    "none", "sinusoidal", "sinusoidal_from_one", "fairseq", "learned", "rotary", "alibi", "shaw", "transformer_xl"
]  # fmt: skip
PositionsJoin = Literal["add", "concatenate", "attention"]
FeedForwardLayer = Literal["position_wise", "none"]
ValueSource = Literal["projection", "keys"]
LookupKind = Literal["soft", "hard"]
DecoderMaskName = Literal["causal", "strict", "none"]
ResidualConnection = Literal["add", "none"]
ActivationName = Literal["relu", "gelu", "gelu_tanh", "tanh", "silu", "glu", "swiglu", "none"]
GATED_ACTIVATIONS: tuple[ActivationName, ...] = ("glu", "swiglu")
AttentionScore = Literal["scaled_dot", "dot", "general", "additive", "linear_additive", "distance"]
WeightTying = Literal["none", "embeddings", "output", "all"]
LanguageMarking = Literal["source", "m2m100", "mbart"]

SUPPORTED_TASKS: dict[Architecture, tuple[Task, ...]] = {
    "transformer": ("translation", "span_corruption"),
    "decoder_only": ("translation", "language_model"),
    "encoder_only": ("masked_language_model", "classification", "tagging"),
    "recurrent": ("translation", "language_model", "span_corruption", "classification", "tagging"),
    "skip_gram": ("word_vectors",),
    "cbow": ("word_vectors",),
}
"""The tasks that each architecture can learn."""
SINGLE_STACKS: dict[Architecture, dict[Task, Literal["encoder", "decoder"]]] = {
    "decoder_only": {"translation": "decoder", "language_model": "decoder"},
    "encoder_only": dict.fromkeys(("masked_language_model", "classification", "tagging"), "encoder"),
    "recurrent": {"language_model": "decoder", "classification": "encoder", "tagging": "encoder"},
}
"""By architecture and task the only stack of a network; others have two, or none."""
IMAGE_TASKS: dict[Architecture, tuple[Task, ...]] = {
    "transformer": ("translation",),
    "encoder_only": ("classification",),
    "recurrent": ("translation",),
}
"""The tasks that each architecture can learn where the source is an image."""
CHARACTER_TASKS: dict[Architecture, tuple[Task, ...]] = {
    "transformer": ("translation",),
    "encoder_only": ("classification", "tagging"),
    "recurrent": ("translation",),
}
"""The tasks that each architecture can learn where the source is read as characters (model.canine)."""
TOKEN_OUTPUT_TASKS = ("translation", "language_model", "masked_language_model", "span_corruption")
NUM_PREFIX_TOKENS: dict[LanguageMarking, int] = {"source": 1, "m2m100": 2, "mbart": 1}
"""The number of tokens that a decoder reads before its target, by model.languages."""
CONVOLUTION_WINDOW = 3


class ModelFields(BaseModel):
    """The keys of [model]; `config.ModelConfig` also checks that their values go together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: Architecture = Field("transformer", description="which networks the model is made of")
    task: Task = Field("translation", description="what the model learns")
    embedding_dim: int | None = Field(
        None, ge=1, le=2**20, description="width of embeddings; none: as wide as each stack"
    )
    encoder: StackConfig = StackConfig()
    decoder: StackConfig = StackConfig()
    norm: NormPlacement = Field("pre", description="before or after each sublayer")
    normalization: Normalization = Field(
        "layer",
        description="layer norm, with a gain alone or norm_eps added to the deviation; RMS norm, batch norm or none",
    )
    residual: ResidualConnection = Field("add", description="each sublayer's input is added to its output, or not")
    norm_eps: float = Field(1e-5, gt=0, lt=1, description="what norms add to the variance, or to the mean square")
    mixing: MixingName = Field(
        "attention", description="the layer that mixes positions: self-attention or a replacement"
    )
    window: int | None = Field(
        None,
        ge=1,
        le=2**17,
        description=f"how far self-attention or a convolution sees; none: all, a convolution {CONVOLUTION_WINDOW}",
    )
    convolution: ConvolutionConfig = Field(ConvolutionConfig(), description='only for mixing = "convolution"')
    positions: PositionsName = Field(
        "sinusoidal", description="position scheme; the last four are relative, in self-attention"
    )
    positions_join: PositionsJoin = Field(
        "add",
        description="how positions join embeddings; concatenate: half of a row is embedding, half is position; "
        "attention: they are added to the first layer's queries, keys and values instead",
    )
    rotary: RotaryConfig = Field(RotaryConfig(), description='only for positions = "rotary"')
    activation: ActivationName = Field(
        "relu", description="of feed-forward layers; glu, swiglu: gated, with one more matrix"
    )
    feed_forward: FeedForwardLayer = Field(
        "position_wise", description="two matrices after attention, or no such layer"
    )
    score: AttentionScore = Field("scaled_dot", description="how attention compares a query with a key")
    lookup: LookupKind = Field(
        "soft",
        description="attention weights: the softmax of the scores; hard: 1 of the best key, 0 of the others, and the "
        "softmax's gradient",
    )
    mask: DecoderMaskName = Field(
        "causal",
        description="what a decoder's row sees of its text: the rows up to itself; strict: those before it; none: all, "
        "also what it is to predict",
    )
    attention_projections: bool = Field(True, description="queries, keys and values are products of rows, or the rows")
    values: ValueSource = Field("projection", description="values have a projection of their own, or are the keys")
    output_projection: bool = Field(True, description="the heads' outputs side by side are projected once more")
    qk_norm: bool = Field(False, description="RMS norm of each head's queries and keys")
    tie: WeightTying = Field(
        "all", description="shared tables; embeddings: source = target; output: target = output layer; all: all three"
    )
    output_bias: bool = Field(False, description="a bias of each piece or label in the output layer")
    scale_embedding: bool = Field(True, description="multiply embeddings by the square root of their width")
    embedding_norm: bool = Field(
        False, description="a norm of what a stack reads: of embedding and position together, before dropout"
    )
    adaptive: AdaptiveConfig | None = Field(
        None, description="an adaptive softmax, for large vocabularies; none: the full softmax"
    )
    begin_token: bool = Field(
        False,
        description='encoder_only: a text is read after `<s>`, as BERT reads [CLS]; pooling = "first" takes its row',
    )
    head_transform: bool = Field(
        False,
        description="masked_language_model: a layer before the output, as BERT has: product, activation, norm",
    )
    languages: LanguageMarking = Field(
        "source",
        description="where the languages that a source begins with are read: in the source; m2m100, mbart: the "
        "target's before the target, as these models do",
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
    init_range: float | None = Field(
        None,
        gt=0,
        le=10,
        description="draw all weights but those of norms evenly from minus this to this; none: matrices as Glorot has "
        "it, embeddings of unit length in expectation, biases 0",
    )
    source_vectors: str | None = Field(
        None,
        description="what the embedding of source pieces starts from: a text file of word2vec or GloVe, or the model/ "
        "of another training; none: drawn",
    )
    target_vectors: str | None = Field(None, description="the same for target pieces")
    freeze_vectors: bool = Field(False, description="do not train embeddings that start from vectors")

    @property
    def has_adaptive_tails(self) -> bool:
        """Whether the probabilities of some pieces are computed only if they are needed."""
        return self.adaptive is not None and len(self.adaptive.cutoffs) > 0

    @property
    def only_stack(self) -> Literal["encoder", "decoder"] | None:
        """The only stack of the network; None if it has two, or none."""
        return SINGLE_STACKS.get(self.architecture, {}).get(self.task)

    @property
    def has_pooler(self) -> bool:
        """Whether one row is made of all rows of a text, as a label of the whole is read from it."""
        return self.task == "classification"

    @property
    def embedded_sides(self) -> tuple[str, ...]:
        """The sides with an embedding of texts: both, or the only one that the model reads."""
        if self.architecture in ("skip_gram", "cbow"):
            return ("target",)
        sides: dict[str | None, tuple[str, ...]] = {"encoder": ("source",), "decoder": ("target",)}
        return sides.get(self.only_stack, ("source", "target"))

    @property
    def batch_norm_key(self) -> str | None:
        """The key that gives the model batch norm, which has statistics of a batch; None if it has none."""
        if self.normalization == "batch":
            return "model.normalization"
        of_layers = self.architecture == "recurrent" and self.recurrent.normalization == "batch"
        return "model.recurrent.normalization" if of_layers else None

    def num_positions(self, *, causal: bool) -> int:
        """Return the number of positions of a stack's rows: causal, of a decoder's."""
        if not causal:
            return self.max_length + self.begin_token
        if self.architecture == "decoder_only":
            return (2 if self.task == "translation" else 1) * self.max_length
        return self.max_length + NUM_PREFIX_TOKENS[self.languages] - 1

    def convolution_offsets(self, layer_index: int, *, causal: bool) -> range:
        """Return the distances of the rows that a convolution reads from its own, ascending.

        Args:
            layer_index: number of the layer in its stack, from 0.
            causal: whether a row sees none after it.
        """
        width, dilation = self.convolution.width, self.convolution.dilation**layer_index
        if width is None:
            reach = self.window or CONVOLUTION_WINDOW
            before, after = reach, 0 if causal else reach
        else:
            before, after = (width - 1, 0) if causal else (width // 2, width - 1 - width // 2)
        return range(-before * dilation, after * dilation + 1, dilation)

    @property
    def shared_vocabulary_reason(self) -> str | None:
        """The setting by which source and target must be read by the same pieces; None if they need not."""
        if self.task == "span_corruption":  # one text, read with gaps and written where they are
            return f'task = "{self.task}"'
        if len(self.embedded_sides) == 1:
            reads_both_sides = self.architecture == "decoder_only" and self.task == "translation"
            return f'architecture = "{self.architecture}"' if reads_both_sides else None
        return f'tie = "{self.tie}"' if self.tie in ("embeddings", "all") else None

    @property
    def attention_sides(self) -> tuple[str, ...]:
        """The stacks that have attention of several heads."""
        if self.vision is not None:
            decoder = self.architecture == "transformer" or (
                self.architecture == "recurrent" and self.recurrent.attention != "none"
            )
            return ("encoder",) * (self.encoder.layers > 0) + ("decoder",) * decoder
        if self.architecture == "recurrent":
            if self.only_stack is not None:
                return ()
            encoder = ("encoder",) if self.canine is not None else ()
            return encoder if self.recurrent.attention == "none" else (*encoder, "decoder")
        if self.architecture == "transformer":
            return ("encoder", "decoder") if self.stack_mixing("encoder") == "attention" else ("decoder",)
        stack = {"encoder_only": "encoder", "decoder_only": "decoder"}.get(self.architecture)
        return (stack,) if stack is not None and self.mixing == "attention" else ()

    def stack_mixing(self, side: str) -> MixingName:
        """The layer that mixes positions in a stack: its own, or that of the model."""
        stack_mixing: MixingName | None = getattr(self, side).mixing
        return stack_mixing or self.mixing

    @property
    def text_stacks(self) -> tuple[str, ...]:
        """The stacks that read or write pieces and mix their positions."""
        if self.architecture == "transformer":
            return ("encoder", "decoder") if self.vision is None and self.canine is None else ("decoder",)
        return {"encoder_only": ("encoder",), "decoder_only": ("decoder",)}.get(self.architecture, ())

    @property
    def mixings(self) -> frozenset[MixingName]:
        """The layers that mix positions in its stacks."""
        return frozenset(map(self.stack_mixing, self.text_stacks)) or frozenset({self.mixing})

    @property
    def pretrained_vector_sides(self) -> tuple[str, ...]:
        """The sides with an embedding that starts from word vectors."""
        vector_files = {"source": self.source_vectors, "target": self.target_vectors}
        return tuple(side for side, vectors in vector_files.items() if vectors is not None)

    @property
    def frozen_vector_sides(self) -> tuple[str, ...]:
        """The sides with an embedding that is not trained."""
        return self.pretrained_vector_sides if self.freeze_vectors else ()
