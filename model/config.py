"""The [model] part of a recipe: the parts of the network.

The keys are in `config_fields.py`, those of its tables in `config_tables.py`, the checks for incompatible values in
`config_checks/`.
"""

from pydantic import model_validator

from tfm.model.config_checks.registry import first_config_problem
from tfm.model.config_fields import (
    CHARACTER_TASKS,
    CONVOLUTION_WINDOW,
    IMAGE_TASKS,
    SUPPORTED_TASKS,
    ActivationName,
    Architecture,
    AttentionScore,
    DecoderMaskName,
    FeedForwardLayer,
    LanguageMarking,
    LookupKind,
    ModelFields,
    NormPlacement,
    Pooling,
    PositionsJoin,
    PositionsName,
    ResidualConnection,
    Task,
    ValueSource,
    WeightTying,
)
from tfm.model.config_tables import (
    AdaptiveConfig,
    CanineConfig,
    ConvolutionConfig,
    DropoutConfig,
    GridPositions,
    MixingName,
    Normalization,
    RecurrentAttention,
    RecurrentCell,
    RecurrentConfig,
    RotaryConfig,
    SpanCorruptionConfig,
    StackConfig,
    VisionConfig,
    VisionEncoder,
    WordVectorsConfig,
)

__all__ = [
    "BOS_ID",
    "CHARACTER_TASKS",
    "CONVOLUTION_WINDOW",
    "IMAGE_TASKS",
    "SUPPORTED_TASKS",
    "ActivationName",
    "AdaptiveConfig",
    "Architecture",
    "AttentionScore",
    "CanineConfig",
    "ConvolutionConfig",
    "DecoderMaskName",
    "DropoutConfig",
    "FeedForwardLayer",
    "GridPositions",
    "LanguageMarking",
    "LookupKind",
    "MixingName",
    "ModelConfig",
    "NormPlacement",
    "Normalization",
    "Pooling",
    "PositionsJoin",
    "PositionsName",
    "RecurrentAttention",
    "RecurrentCell",
    "RecurrentConfig",
    "ResidualConnection",
    "RotaryConfig",
    "SpanCorruptionConfig",
    "StackConfig",
    "Task",
    "ValueSource",
    "VisionConfig",
    "VisionEncoder",
    "WeightTying",
    "WordVectorsConfig",
]

BOS_ID = 2
"""The id of the token that begins a text, `<s>`."""


NEWER_MODEL_KEYS = ("residual", "feed_forward", "attention_projections", "values", "output_projection")
"""Keys of [model] that models of an earlier time lack, which are made as by the defaults: manifests leave those out."""


class ModelConfig(ModelFields):
    """The encoder-decoder of Vaswani et al. 2017, its variants, and other models. Used by `tfm train`.

    A model with one stack takes it from `encoder` (encoder_only) or `decoder` (decoder_only); word vectors, which have
    none, are as wide as `embedding_dim`, or as `encoder`.
    """

    @model_validator(mode="after")
    def _check_compatibility(self) -> "ModelConfig":
        problem = first_config_problem(self)
        if problem is not None:
            raise ValueError(problem)
        return self

    @property
    def width(self) -> int:
        """D, by which a schedule may scale: of the stack that predicts, of word vectors theirs."""
        if self.task == "word_vectors":
            return self.embedding_dim or self.encoder.dim
        return (self.encoder if self.only_stack == "encoder" else self.decoder).dim
