"""Each layer against torch's own with the same weights, float64, outputs and gradients."""

import importlib.util
from pathlib import Path

import pytest
import torch
from torch import Tensor

from model.attention import CrossAttention, SelfAttention
from model.build import build
from model.config import Activation, Norm
from model.layout import Layout
from model.masks import causal_mask, padding_mask
from model.noise import Noise
from model.positions import AttentionPositions
from model.scores import ScaledDot

_spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
assert _spec is not None and _spec.loader is not None
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

SOURCE, TARGET = Layout.of(torch.tensor([5, 2, 4])), Layout.of(torch.tensor([3, 6, 1]))
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
    ours = SelfAttention(
        16, 4, score=ScaledDot(), positions=AttentionPositions(), dropout=0, noise=Noise(), compute_dtype=F64
    ).double()
    x = rows(SOURCE)
    got = ours(x, SOURCE, causal_mask() if is_causal else padding_mask(SOURCE))
    padded = SOURCE.pad(x)
    want, _ = reference.attention_like(ours)(
        padded,
        padded,
        padded,
        key_padding_mask=~SOURCE.mask,
        attn_mask=causal(SOURCE.width) if is_causal else None,
    )
    close(got, SOURCE.unpad(want))
    same_gradients(got, SOURCE.unpad(want), [x])


def test_cross_attention() -> None:
    ours = CrossAttention(16, 16, 4, score=ScaledDot(), dropout=0, noise=Noise(), compute_dtype=F64).double()
    x, memory = rows(TARGET), rows(SOURCE)
    got = ours(x, TARGET, memory, SOURCE, padding_mask(SOURCE))
    keys = SOURCE.pad(memory)
    want, _ = reference.attention_like(ours)(TARGET.pad(x), keys, keys, key_padding_mask=~SOURCE.mask)
    close(got, TARGET.unpad(want))
    same_gradients(got, TARGET.unpad(want), [x, memory])


@pytest.mark.parametrize(("norm", "activation"), VARIANTS)
def test_encoder_layer(norm: Norm, activation: Activation) -> None:
    config = reference.small(norm=norm, activation=activation)
    ours = build(config, source_vocab=9, target_vocab=9).double().encoder[0]
    x = rows(SOURCE)
    got = ours(x, SOURCE, padding_mask(SOURCE))
    theirs = reference.encoder_layer_like(ours, config)
    want = SOURCE.unpad(theirs(SOURCE.pad(x), src_key_padding_mask=~SOURCE.mask))
    close(got, want)
    same_gradients(got, want, [x])


@pytest.mark.parametrize(("norm", "activation"), VARIANTS)
def test_decoder_layer(norm: Norm, activation: Activation) -> None:
    config = reference.small(norm=norm, activation=activation)
    ours = build(config, source_vocab=9, target_vocab=9).double().decoder[0]
    x, memory = rows(TARGET), rows(SOURCE)
    got = ours(x, TARGET, causal_mask(), memory, SOURCE, padding_mask(SOURCE))
    theirs = reference.decoder_layer_like(ours, config)
    want = theirs(
        TARGET.pad(x), SOURCE.pad(memory), tgt_mask=causal(TARGET.width), memory_key_padding_mask=~SOURCE.mask
    )
    close(got, TARGET.unpad(want))
    same_gradients(got, TARGET.unpad(want), [x, memory])
