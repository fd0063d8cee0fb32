"""The [model] part of a recipe: which parts the network is put together from."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Architecture = Literal["transformer"]
Norm = Literal["pre", "post"]
Positions = Literal["none", "sinusoidal", "learned", "rotary", "alibi", "shaw", "transformer_xl"]
Normalization = Literal["layer", "rms"]
Activation = Literal["relu", "gelu", "tanh", "silu", "glu", "swiglu"]
Score = Literal["scaled_dot", "dot", "general", "additive", "linear_additive"]
Tie = Literal["none", "embeddings", "output", "all"]


class StackConfig(BaseModel):
    """A stack of layers: the encoder or the decoder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: int = Field(6, ge=1, le=1000)
    dim: int = Field(512, ge=1, le=2**20, description="width D of the stack")
    heads: int = Field(8, ge=1, le=2**20)
    feed_forward_dim: int = Field(2048, ge=1, le=2**20, description="width F between the two feed-forward matrices")

    @model_validator(mode="after")
    def _heads_divide(self) -> "StackConfig":
        if self.dim % self.heads:
            raise ValueError(f"heads ({self.heads}) must divide dim ({self.dim})")
        return self


class DropoutConfig(BaseModel):
    """Dropout rates, each its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    residual: float = Field(0.1, ge=0, lt=1, description="on every sublayer's output")
    embedding: float = Field(0.1, ge=0, lt=1, description="on embeddings with positions")
    attention: float = Field(0.0, ge=0, lt=1, description="on attention weights (turns the fused kernel off)")
    feed_forward: float = Field(0.0, ge=0, lt=1, description="after the feed-forward activation")


class ModelConfig(BaseModel):
    """The encoder-decoder of Vaswani et al. 2017 and its variants. Used by `tfm train`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: Architecture = "transformer"
    embedding_dim: int | None = Field(
        None, ge=1, le=2**20, description="width of embeddings; none: as wide as each stack"
    )
    encoder: StackConfig = StackConfig()
    decoder: StackConfig = StackConfig()
    norm: Norm = Field("pre", description="before or after each sublayer")
    normalization: Normalization = Field("layer", description="what is done there: layer norm or RMS norm")
    positions: Positions = Field("sinusoidal", description="the last four are relative, in self-attention")
    activation: Activation = Field("relu", description="of feed-forward layers; glu, swiglu: gated, a matrix more")
    score: Score = "scaled_dot"
    tie: Tie = Field("all", description="embeddings: source = target; output: target = output layer; all: the three")
    scale_embedding: bool = Field(True, description="multiply embeddings by the square root of their width")
    max_length: int = Field(1024, ge=2, le=2**17, description="longest input, in pieces with its end token")
    dropout: DropoutConfig = DropoutConfig()

    @model_validator(mode="after")
    def _positions_fit(self) -> "ModelConfig":
        wanted = {"rotary": ("scaled_dot", "dot"), "shaw": ("scaled_dot",), "transformer_xl": ("scaled_dot",)}
        scores = wanted.get(self.positions, (self.score,))
        if self.score not in scores:
            raise ValueError(
                f'positions = "{self.positions}" is part of a product of query and key: it needs score = '
                f'"{scores[0]}", not "{self.score}"'
            )
        for side, stack in (("encoder", self.encoder), ("decoder", self.decoder)):
            if self.positions == "rotary" and stack.dim // stack.heads % 2:
                width = stack.dim // stack.heads
                raise ValueError(f'positions = "rotary" turns pairs, and heads of the {side} are {width} wide')
        return self

    @model_validator(mode="after")
    def _ties_fit(self) -> "ModelConfig":
        if self.tie in ("embeddings", "all") and self.embedding_dim is None and self.encoder.dim != self.decoder.dim:
            raise ValueError(f'tie = "{self.tie}" with encoder and decoder of different dim needs embedding_dim')
        return self
