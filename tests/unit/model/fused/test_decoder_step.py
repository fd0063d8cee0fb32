"""A step of many rows side by side says what the model says in float64; what it does not know is left to the model."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.image_models import DECODERS as IMAGE_DECODERS
from tests.image_models import V as IMAGE_V
from tests.image_models import images, layout_of
from tests.image_models import network as image_network
from tests.plain_model import STACK, VOCAB, network
from tests.rounding import assert_rounds_like
from tfm.model.config import StackConfig
from tfm.model.cpu_kernels import dispatch
from tfm.model.fused.decoder_step import FusedDecoderStep, fuse_if_supported
from tfm.model.layers.linear import inference_precision
from tfm.model.layout import Layout
from tfm.model.transformer.decoder_state import TransformerState

pytest.importorskip("tfm.model.cpu_kernels.library", reason="no numba (extra: fast)", exc_type=ImportError)

STEPS = 7
SSRU = STACK.model_copy(update={"mixing": "recurrent"})
KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "post"},
    {"norm": "post", "positions": "none", "tie": "none"},
    {"positions": "rotary"},
    {"positions": "rotary", "rotary": {"base": 50.0, "factor": 2.0}, "norm": "post"},
    {
        "positions": "rotary",
        "decoder": StackConfig(layers=2, dim=24, heads=4, key_value_heads=2, value_dim=5, feed_forward_dim=36),
    },
    {"encoder": STACK.model_copy(update={"layers": 1}), "decoder": STACK.model_copy(update={"layers": 3})},
    {"decoder": StackConfig(layers=2, dim=24, heads=4, key_value_heads=2, feed_forward_dim=36)},
    {"decoder": StackConfig(layers=2, dim=24, heads=3, key_dim=5, value_dim=7, feed_forward_dim=36)},
    {"embedding_dim": 16},
    {"embedding_norm": True},
    {"embedding_norm": True, "norm": "post"},
    {"adaptive": {"cutoffs": [8], "inputs": False}, "tie": "none"},
    {"decoder": SSRU, "recurrent": {"cell": "ssru"}},
    {"decoder": SSRU, "recurrent": {"cell": "ssru"}, "norm": "post", "positions": "rotary"},
]


@pytest.fixture(autouse=True)
def _without_gradients() -> Iterator[None]:
    with torch.no_grad(), dispatch.use_compiled_kernels(True):
        yield


def begun(model: Any, batch: int, beam: int) -> TransformerState:
    lengths = torch.arange(batch) % 9 + 1
    ids = torch.arange(int(lengths.sum())) % (VOCAB - 4) + 4
    state: TransformerState = model.start(ids, Layout.from_lengths(lengths))
    return state.select(torch.arange(batch).repeat_interleave(beam))


def said(model: Any, batch: int, beam: int) -> list[Tensor]:
    """What a model says, step by step, of hypotheses that are taken, left and taken again, and of fewer at the end."""
    draw, state, found = torch.Generator().manual_seed(1), begun(model, batch, beam), []
    for step in range(STEPS):
        rows = batch * beam
        predict, state = model.step(torch.randint(4, VOCAB, (rows,), generator=draw), state)
        found.append(predict(slice(None)))
        assert len(found[-1]) == rows
        parents = torch.randint(0, beam, (batch, beam), generator=draw)
        state = state.select((parents + beam * torch.arange(batch)[:, None]).flatten())
        if step == STEPS - 3:
            batch -= 2
            state = state.select(torch.arange(batch * beam))
        if step == STEPS - 2:
            new = torch.arange(beam, 3 * beam)
            state = state.replace(new, begun(model, 2, beam))
    return found


@pytest.mark.few(6)
@pytest.mark.parametrize(("batch", "beam"), [(32, 5), (47, 3), (133, 1), (5, 5), (5, 1)])
@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_it_says_what_the_equations_give(changes: dict[str, Any], batch: int, beam: int) -> None:
    model = network(**changes)
    fused = fuse_if_supported(model)
    assert isinstance(fused, FusedDecoderStep)
    exact = said(copy.deepcopy(model).double(), batch, beam)
    fast = said(fused, batch, beam)
    with dispatch.use_compiled_kernels(False):
        plain = said(model, batch, beam)
    assert_rounds_like(fast, plain, exact)


def test_models_for_it_say_different_things_of_different_pasts() -> None:
    for each in said(network().double(), 32, 5):
        assert each.var(0).min() > 1e-3


@pytest.mark.parametrize("changes", [{}, {"mixing": "recurrent"}], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8])
@pytest.mark.few(2)
def test_it_multiplies_in_the_precision_that_was_asked_for(dtype: torch.dtype, changes: dict[str, Any]) -> None:
    """As the equations do, but for the rare rows of which a factor has been rounded to the other side."""
    wide = STACK.model_copy(update={"feed_forward_dim": 5000} | changes)
    model = network(decoder=wide, recurrent={"cell": "ssru"} if changes else {})
    in_full, exact = said(fuse_if_supported(model), 32, 5), said(copy.deepcopy(model).double(), 32, 5)
    with inference_precision(model, dtype):
        fused = fuse_if_supported(model)
        assert isinstance(fused, FusedDecoderStep)
        fast = said(fused, 32, 5)
        with dispatch.use_compiled_kernels(False):
            plain = said(model, 32, 5)
        assert_rounds_like(fast, plain, exact)
        differ = [(one - other).abs().amax(1) > 1e-4 for one, other in zip(fast, plain, strict=True)]
        assert torch.cat(differ).double().mean() < 0.3
        assert all((one - full).abs().max() > 1e-4 for one, full in zip(fast, in_full, strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        *({"positions": each} for each in ("alibi", "shaw", "transformer_xl")),
        *({"score": each} for each in ("dot", "additive", "distance")),
        *({"activation": each} for each in ("gelu", "swiglu", "none")),
        *({"normalization": each} for each in ("rms", "batch", "none")),
        {"window": 3},
        {"qk_norm": True},
        {"residual": "none"},
        {"feed_forward": "none"},
        {"attention_projections": False},
        {"values": "keys"},
        {"output_projection": False},
        {"lookup": "hard"},
        {"mask": "strict"},
        {"mask": "none"},
        {"positions_join": "attention"},
        {"normalization": "layer_std"},
        {"residual": "none", "norm": "post"},
        {"mixing": "recurrent", "positions": "none"},
        {"canine": {"hashes": 4, "buckets": 20}, "tie": "output"},
    ],
    ids=str,
)
def test_other_parts_are_left_to_the_model(changes: dict[str, Any]) -> None:
    model = network(**changes)
    assert fuse_if_supported(model) is model


def test_another_state_is_left_to_the_model() -> None:
    model, other = network(), nn.Identity()
    hook = model.get_submodule("decoder.1.attention").register_forward_hook(lambda *given: None)
    assert fuse_if_supported(model) is model
    hook.remove()
    assert fuse_if_supported(model) is not model
    with dispatch.use_compiled_kernels(False):
        assert fuse_if_supported(model) is model
    with torch.enable_grad():
        assert fuse_if_supported(model) is model
    assert fuse_if_supported(other) is other
    assert fuse_if_supported(model.train()) is model
    assert fuse_if_supported(model.eval().double()) is model


def test_it_knows_the_decoder_after_an_image_as_well() -> None:
    model = image_network("patches", IMAGE_DECODERS["transformer"]).float()
    pixels, ids = images(70).float(), torch.arange(3 * 70).view(3, 70) % (IMAGE_V - 4) + 4
    found = []
    for dtype, compiled in ((torch.float32, True), (torch.float32, False), (torch.float64, False)):
        with dispatch.use_compiled_kernels(compiled):
            stepper = fuse_if_supported(copy.deepcopy(model).to(dtype))
            assert isinstance(stepper, FusedDecoderStep) == compiled
            state = stepper.start(pixels.to(dtype), layout_of(model, pixels)).select(torch.arange(140) // 2)
            said = []
            for each in ids:
                predict, state = stepper.step(each.repeat_interleave(2), state)
                said.append(predict(slice(None)))
            found.append(said)
    assert_rounds_like(*found)
