"""Each layer against torch's own with the same weights, float64, outputs and gradients."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from tfm.model.attention.multi_head import CrossAttention, SelfAttention
from tfm.model.build import build
from tfm.model.config import ActivationName, DropoutConfig, ModelConfig, NormPlacement, StackConfig, WeightTying
from tfm.model.layers.linear import Linear
from tfm.model.layout import Layout
from tfm.model.masks import causal_mask, padding_mask
from tfm.model.transformer.factory import ModuleFactory
from tfm.model.transformer.layers import DecoderLayer, EncoderLayer

NO_DROPOUT = DropoutConfig(residual=0, embedding=0)


def small(
    norm: NormPlacement = "pre",
    activation: ActivationName = "relu",
    tie: WeightTying = "none",
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
    theirs = nn.MultiheadAttention(dim, ours.heads.num_heads, batch_first=True, dtype=torch.float64)
    if isinstance(ours, SelfAttention):
        weight, bias = ours.query_key_value.weight, ours.query_key_value.bias
    else:
        assert ours.query.bias is not None
        assert ours.key_value.bias is not None
        weight = torch.cat([ours.query.weight, ours.key_value.weight])  # type: ignore[assignment]
        bias = torch.cat([ours.query.bias, ours.key_value.bias])  # type: ignore[assignment]
    assert weight is not None
    assert bias is not None
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


SOURCE, TARGET = Layout.from_lengths(torch.tensor([5, 2, 4])), Layout.from_lengths(torch.tensor([3, 6, 1]))
F64 = torch.float64
VARIANTS = [("pre", "relu"), ("post", "relu"), ("pre", "gelu"), ("post", "tanh")]


def rows(layout: Layout) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(layout.num_rows, 16, dtype=F64, requires_grad=True)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def causal(width: int) -> Tensor:
    return ~torch.ones(width, width, dtype=torch.bool).tril()


def same_gradients(ours: Tensor, theirs: Tensor, inputs: list[Tensor]) -> None:
    weights = torch.randn_like(ours)
    for a, b in zip(
        torch.autograd.grad((ours * weights).sum(), inputs),
        torch.autograd.grad((theirs * weights).sum(), inputs),
        strict=True,
    ):
        close(a, b)


@pytest.mark.parametrize("is_causal", [False, True])
def test_self_attention(is_causal: bool) -> None:
    ours = ModuleFactory(small(), F64).self_attention(small().encoder, is_causal, 0).double()
    x = rows(SOURCE)
    got = ours(x, SOURCE, causal_mask(SOURCE) if is_causal else padding_mask(SOURCE))
    padded = SOURCE.pad(x)
    want, _ = attention_like(ours)(
        padded,
        padded,
        padded,
        key_padding_mask=~SOURCE.mask,
        attn_mask=causal(SOURCE.width) if is_causal else None,
    )
    close(got, SOURCE.unpad(want))
    same_gradients(got, SOURCE.unpad(want), [x])


def test_cross_attention() -> None:
    ours = ModuleFactory(small(), F64).cross_attention(small().decoder, 16).double()
    x, memory = rows(TARGET), rows(SOURCE)
    got = ours(x, TARGET, memory, SOURCE, padding_mask(SOURCE))
    keys = SOURCE.pad(memory)
    want, _ = attention_like(ours)(TARGET.pad(x), keys, keys, key_padding_mask=~SOURCE.mask)
    close(got, TARGET.unpad(want))
    same_gradients(got, TARGET.unpad(want), [x, memory])


@pytest.mark.parametrize(("norm", "activation"), VARIANTS)
def test_encoder_layer(norm: NormPlacement, activation: ActivationName) -> None:
    config = small(norm=norm, activation=activation)
    ours = build(config, source_vocab=9, target_vocab=9).double().encoder[0]
    x = rows(SOURCE)
    got = ours(x, SOURCE, padding_mask(SOURCE))
    theirs = encoder_layer_like(ours, config)
    want = SOURCE.unpad(theirs(SOURCE.pad(x), src_key_padding_mask=~SOURCE.mask))
    close(got, want)
    same_gradients(got, want, [x])


@pytest.mark.parametrize(("norm", "activation"), VARIANTS)
def test_decoder_layer(norm: NormPlacement, activation: ActivationName) -> None:
    config = small(norm=norm, activation=activation)
    ours = build(config, source_vocab=9, target_vocab=9).double().decoder[0]
    x, memory = rows(TARGET), rows(SOURCE)
    got = ours(x, TARGET, causal_mask(TARGET), memory, SOURCE, padding_mask(SOURCE))
    theirs = decoder_layer_like(ours, config)
    want = theirs(
        TARGET.pad(x), SOURCE.pad(memory), tgt_mask=causal(TARGET.width), memory_key_padding_mask=~SOURCE.mask
    )
    close(got, TARGET.unpad(want))
    same_gradients(got, TARGET.unpad(want), [x, memory])
