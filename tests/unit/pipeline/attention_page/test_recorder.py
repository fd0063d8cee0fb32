"""Recorded attention is that which the network computes, whatever way it takes, and recording leaves no trace."""

from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.tiny_model import STACK, tiny_model
from tfm.model.attention.explicit_attention import ExplicitAttention, repeat_kv
from tfm.model.attention.inner_attention import VarlenAttention
from tfm.model.attention.multi_head import CrossAttention, SelfAttention, merge_heads
from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.layout import Layout
from tfm.pipeline.attention_page.recorder import attention_modules, record_attentions

LENGTHS = {"source": [80, 3, 6], "target": [75, 7, 2]}
VARIANTS: dict[str, dict[str, Any]] = {
    "fused": {},
    "explicit": {"dropout": {"attention": 0.1}},
    "additive": {"score": "additive"},
    **{name: {"positions": name} for name in ("rotary", "alibi", "shaw", "transformer_xl")},
    "window": {"window": 2},
    "grouped heads": {"encoder": {**STACK.model_dump(), "key_value_heads": 1, "value_dim": 5}, "qk_norm": True},
    "cross alone": {"mixing": "convolution"},
    **{
        kind: {"architecture": "recurrent", "positions": "none", "recurrent": {"attention": kind}}
        for kind in ("bahdanau", "luong")
    },
    "decoder-only": {"architecture": "decoder_only"},
    "encoder-only": {"architecture": "encoder_only", "task": "tagging"},
}


def inputs(lengths: dict[str, list[int]]) -> list[Any]:
    """Random source and target ids of some sentences, each followed by its layout."""
    draw = torch.Generator().manual_seed(4)
    found: list[Any] = []
    for each in lengths.values():
        found += [torch.randint(4, 40, (sum(each),), generator=draw), Layout.from_lengths(torch.tensor(each))]
    return found


def passed(network: nn.Module, given: list[Any]) -> Tensor:
    """Source and target through the network, or the source alone where it takes no more."""
    result: Tensor = network(*given[: 2 if hasattr(network, "head") else 4])
    return result


@pytest.mark.parametrize("name", VARIANTS)
def test_weights_are_those_that_the_output_is_made_of(name: str) -> None:
    network, given = tiny_model(dtype=torch.float64, **VARIANTS[name]).model, inputs(LENGTHS)
    if name in ("bahdanau", "luong"):  # packed steps: one sentence at a time
        given = inputs({side: lengths[:1] for side, lengths in LENGTHS.items()})
    before = passed(network, given)  # with gradients, so that the kernels are taken
    calls: dict[nn.Module, list[tuple[Any, Tensor]]] = defaultdict(list)
    with torch.inference_mode(), record_attentions(network) as recorder:
        found = {module: (module_name, equation) for module_name, module, _, equation in attention_modules(network)}
        for part in [*found, *(equation for _, equation in found.values())]:
            part.register_forward_hook(lambda part, given, output: calls[part].append((given, output)))
        within = passed(network, given)
        weights = recorder.pop_weights()
    torch.testing.assert_close(within, before, atol=1e-10, rtol=0)
    assert found
    assert set(weights) == {module_name for module_name, _ in found.values()}
    for module, (module_name, equation) in found.items():
        first = 0
        for (query, _, value, _, query_positions, key_positions), mixed in calls[equation]:
            part = weights[module_name][:, :, first : first + query.shape[2]]
            first += query.shape[2]
            torch.testing.assert_close(part.sum(-1), torch.ones_like(part[..., 0]), atol=1e-12, rtol=0)
            again = part @ repeat_kv(value, query)
            added = equation.positions.relative_values(part, query_positions, key_positions)
            again = again if added is None else again + added
            torch.testing.assert_close(again, mixed, atol=1e-12, rtol=0)
        assert first == weights[module_name].shape[2]
        if isinstance(module, SelfAttention | CrossAttention):
            (((_, layout, *_), output),) = calls[module]
            torch.testing.assert_close(module.output(layout.unpad(merge_heads(again))), output, atol=1e-12, rtol=0)


def test_names_are_those_of_the_modules_and_what_is_masked_has_no_weight() -> None:
    network = tiny_model(window=3).model
    with torch.inference_mode(), record_attentions(network) as recorder:
        passed(network, inputs({"source": [9, 4], "target": [5, 8]}))
        weights = recorder.pop_weights()
        assert recorder.pop_weights() == {}
    assert list(weights) == [
        "encoder.0.attention",
        "encoder.1.attention",
        "decoder.0.attention",
        "decoder.0.cross_attention",
        "decoder.1.attention",
        "decoder.1.cross_attention",
    ]
    steps = torch.arange(9) - torch.arange(9)[:, None]
    for name, found in weights.items():
        batch, _, queries, keys = found.shape
        seen = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
        if not name.startswith("decoder") or "cross" in name:
            seen[1, :, :, 4:] = False
        if "cross" not in name:
            seen &= steps[:queries, :keys].abs() <= 3
        if name in ("decoder.0.attention", "decoder.1.attention"):
            seen &= steps[:queries, :keys] <= 0
        real = torch.zeros_like(seen)  # what stands beside a short sentence asks too, and nobody listens
        for sentence, length in enumerate((5, 8) if name.startswith("decoder") else (9, 4)):
            real[sentence, :, :length] = True
        assert ((found > 0) == seen)[real.expand_as(found)].all()


def test_a_network_for_half_precision_on_a_gpu_is_recorded_too() -> None:
    config = ModelConfig(encoder=STACK, decoder=STACK, max_length=32)
    network = build(config, source_vocab=40, target_vocab=40, compute_dtype=torch.bfloat16).eval()
    assert any(isinstance(module, VarlenAttention) for module in network.modules())
    with torch.inference_mode(), record_attentions(network) as recorder:
        passed(network, inputs({"source": [4], "target": [3]}))
        assert len(recorder.pop_weights()) == 6


@pytest.mark.parametrize("fails", [False, True])
def test_recording_leaves_the_network_as_it_was(fails: bool) -> None:
    network = tiny_model(window=2).model
    modules, state = list(network.named_modules()), list(network.state_dict())
    hooks = [(len(module._forward_hooks), len(module._forward_pre_hooks)) for _, module in modules]
    try:
        with record_attentions(network):
            assert [
                type(mix) for _, module, slot, _ in attention_modules(network) for mix in [getattr(module, slot)]
            ] == [ExplicitAttention] * 6
            if fails:
                raise RuntimeError("within")
    except RuntimeError:
        assert fails
    assert list(network.named_modules()) == modules
    assert list(network.state_dict()) == state
    assert [(len(module._forward_hooks), len(module._forward_pre_hooks)) for _, module in modules] == hooks


def test_a_network_in_training_is_refused() -> None:
    network = tiny_model().model.train()
    with pytest.raises(ValueError, match="eval mode"), record_attentions(network):
        pass


def test_without_attention_there_is_none() -> None:
    assert attention_modules(tiny_model(architecture="recurrent", positions="none").model) == []
    assert attention_modules(tiny_model(architecture="encoder_only", task="tagging", mixing="convolution").model) == []
