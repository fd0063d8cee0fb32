"""The [model] part of a recipe: the parts of the network.

The keys are in `config_fields.py`, those of its tables in `config_tables.py`, the checks for incompatible values in
`config_checks/`.
"""

from pydantic import model_validator

from tfm.model.config_checks.registry import first_problem
from tfm.model.config_fields import (
    CHARACTER_TASKS,
    CONVOLUTION_WINDOW,
    IMAGE_TASKS,
    SUPPORTED_TASKS,
    Activation,
    Architecture,
    DecoderMask,
    FeedForwardLayer,
    Languages,
    Lookup,
    Mixing,
    ModelFields,
    Norm,
    Pooling,
    Positions,
    PositionsJoin,
    ResidualConnection,
    Score,
    Task,
    Tie,
    Values,
)
from tfm.model.config_tables import (
    AdaptiveConfig,
    CanineConfig,
    Cell,
    ConvolutionConfig,
    DropoutConfig,
    GridPositions,
    Normalization,
    RecurrentAttention,
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
    "Activation",
    "AdaptiveConfig",
    "Architecture",
    "CanineConfig",
    "Cell",
    "ConvolutionConfig",
    "DecoderMask",
    "DropoutConfig",
    "FeedForwardLayer",
    "GridPositions",
    "Languages",
    "Lookup",
    "Mixing",
    "ModelConfig",
    "Norm",
    "Normalization",
    "Pooling",
    "Positions",
    "PositionsJoin",
    "RecurrentAttention",
    "RecurrentConfig",
    "ResidualConnection",
    "RotaryConfig",
    "Score",
    "SpanCorruptionConfig",
    "StackConfig",
    "Task",
    "Tie",
    "Values",
    "VisionConfig",
    "VisionEncoder",
    "WordVectorsConfig",
]

BOS_ID = 2
"""The id of the token that begins a text, `<s>`."""


class ModelConfig(ModelFields):
    """The encoder-decoder of Vaswani et al. 2017, its variants, and other models. Used by `tfm train`.

    A model with one stack takes it from `encoder` (encoder_only) or `decoder` (decoder_only); word vectors, which have
    none, are as wide as `embedding_dim`, or as `encoder`.
    """

    @model_validator(mode="after")
    def _check_compatibility(self) -> "ModelConfig":
        problem = first_problem(self)
        if problem is not None:
            raise ValueError(problem)
        return self

    @property
    def width(self) -> int:
        """D, by which a schedule may scale: of the stack that predicts, of word vectors theirs."""
        if self.task == "word_vectors":
            return self.embedding_dim or self.encoder.dim
        return (self.encoder if self.only_stack == "encoder" else self.decoder).dim
