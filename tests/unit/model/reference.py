"""torch's own layers with our weights."""

from typing import Literal

import torch
from torch import nn

from model.attention import CrossAttention, SelfAttention
from model.blocks import DecoderLayer, EncoderLayer
from model.config import Activation, DropoutConfig, ModelConfig, Norm, StackConfig, Tie
from model.linear import Linear

NO_DROPOUT = DropoutConfig(residual=0, embedding=0)


def small(
    norm: Norm = "pre",
    activation: Activation = "relu",
    tie: Tie = "none",
    positions: Literal["none", "sinusoidal", "learned"] = "sinusoidal",
    dropout: DropoutConfig = NO_DROPOUT,
    embedding_dim: int | None = None,
    encoder_dim: int = 16,
) -> ModelConfig:
    return ModelConfig(
        encoder=StackConfig(layers=2, dim=encoder_dim, heads=4, feed_forward_dim=24),
        decoder=StackConfig(layers=2, dim=16, heads=4, feed_forward_dim=24),
        embedding_dim=embedding_dim,
        norm=norm,
        activation=activation,
        tie=tie,
        positions=positions,
        dropout=dropout,
        max_length=64,
    )


def copy_linear(theirs: nn.Linear, ours: Linear) -> None:
    theirs.load_state_dict(ours.state_dict())


def attention_like(ours: SelfAttention | CrossAttention) -> nn.MultiheadAttention:
    dim = ours.output.weight.shape[0]
    theirs = nn.MultiheadAttention(dim, ours.heads, batch_first=True, dtype=torch.float64)
    if isinstance(ours, SelfAttention):
        weight, bias = ours.query_key_value.weight, ours.query_key_value.bias
    else:
        assert ours.query.bias is not None and ours.key_value.bias is not None
        weight = torch.cat([ours.query.weight, ours.key_value.weight])  # type: ignore[assignment]
        bias = torch.cat([ours.query.bias, ours.key_value.bias])  # type: ignore[assignment]
    assert weight is not None and bias is not None
    with torch.no_grad():
        theirs.in_proj_weight.copy_(weight)
        theirs.in_proj_bias.copy_(bias)
    copy_linear(theirs.out_proj, ours.output)
    return theirs.eval()


def activation_of(name: str) -> object:
    return torch.tanh if name == "tanh" else name


def encoder_layer_like(ours: EncoderLayer, config: ModelConfig) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(
        config.encoder.dim,
        config.encoder.heads,
        config.encoder.feed_forward_dim,
        dropout=0,
        activation=activation_of(config.activation),  # type: ignore[arg-type]
        batch_first=True,
        norm_first=config.norm == "pre",
        dtype=torch.float64,
    )
    theirs.self_attn.load_state_dict(attention_like(ours.attention).state_dict())
    copy_linear(theirs.linear1, ours.feed_forward.inner)
    copy_linear(theirs.linear2, ours.feed_forward.outer)
    theirs.norm1.load_state_dict(ours.around_attention.norm.state_dict())
    theirs.norm2.load_state_dict(ours.around_feed_forward.norm.state_dict())
    return theirs.train()  # train mode keeps torch off its inference-only fast path


def decoder_layer_like(ours: DecoderLayer, config: ModelConfig) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(
        config.decoder.dim,
        config.decoder.heads,
        config.decoder.feed_forward_dim,
        dropout=0,
        activation=activation_of(config.activation),  # type: ignore[arg-type]
        batch_first=True,
        norm_first=config.norm == "pre",
        dtype=torch.float64,
    )
    theirs.self_attn.load_state_dict(attention_like(ours.attention).state_dict())
    theirs.multihead_attn.load_state_dict(attention_like(ours.cross_attention).state_dict())
    copy_linear(theirs.linear1, ours.feed_forward.inner)
    copy_linear(theirs.linear2, ours.feed_forward.outer)
    theirs.norm1.load_state_dict(ours.around_attention.norm.state_dict())
    theirs.norm2.load_state_dict(ours.around_cross_attention.norm.state_dict())
    theirs.norm3.load_state_dict(ours.around_feed_forward.norm.state_dict())
    return theirs.train()
