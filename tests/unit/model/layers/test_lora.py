"""LoRA: the equation, that the rest stays, and that a merged matrix is the sum."""

import pytest
import torch
from torch import nn

from tests.tiny_model import TEXTS, tiny_model
from tfm.model.layers.linear import Linear, inference_precision
from tfm.model.layers.lora import LoraLinear, add_lora, merge_adapters, merge_lora_weight, split_adapters
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.teacher_forcing import target_log_probs

FP64 = torch.float64


def layer(dtype=FP64, *, bias=True, compute_dtype=torch.float32):
    torch.manual_seed(1)
    frozen = Linear(6, 4, bias=bias, compute_dtype=compute_dtype).to(dtype)
    found = LoraLinear(frozen, 2, 1.5)
    with torch.no_grad():
        found.b.normal_()
    frozen.requires_grad_(False)
    return found


@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_equation_with_and_without_gradients(bias):
    one, x = layer(bias=bias), torch.randn(5, 6, dtype=FP64)
    wanted = x @ one.frozen.weight.T + 1.5 * (x @ one.a.T) @ one.b.T + (one.bias if bias else 0)
    assert torch.allclose(one(x), wanted, rtol=0, atol=1e-12)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert torch.allclose(one.eval()(x), wanted, rtol=0, atol=1e-12)
    one.train()(x).square().sum().backward()
    found = {name: each.grad is not None for name, each in one.named_parameters()}
    assert {name for name, has in found.items() if has} == {"a", "b"}


def test_gradients_are_those_of_the_written_out_product():
    one, x = layer(), torch.randn(5, 6, dtype=FP64, requires_grad=True)
    one(x).square().sum().backward()
    a, b, again = (each.detach().clone().requires_grad_() for each in (one.a, one.b, x))
    whole = one.frozen.weight + 1.5 * b @ a
    (again @ whole.T + one.bias).square().sum().backward()
    for found, wanted in ((one.a.grad, a.grad), (one.b.grad, b.grad), (x.grad, again.grad)):
        assert torch.allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_at_first_nothing_changes():
    network = tiny_model(dtype=FP64).model
    source = [[5, 6, 7], [9]]
    before = target_log_probs(network, source, [[8, 9], [4]])
    add_lora(network, 3, 6.0, None, seed=1)
    assert target_log_probs(network.eval(), source, [[8, 9], [4]]).tolist() == before.tolist()


def test_what_was_merged_is_merged_anew_where_an_adapter_has_changed():
    one, x = layer().eval(), torch.randn(3, 6, dtype=FP64)
    with torch.no_grad():
        one(x)
        one.b.add_(1)
        assert torch.allclose(
            one(x), x @ merge_lora_weight(one.frozen.weight, one.a, one.b, 1.5).T + one.bias, atol=1e-12
        )
    optimizer = torch.optim.Adam([one.a, one.b], lr=0.5, fused=True)
    one.train()(x).sum().backward()
    optimizer.step()
    with torch.inference_mode():
        wanted = x @ one.frozen.weight.T + 1.5 * (x @ one.a.T) @ one.b.T + one.bias
        assert torch.allclose(one.eval()(x), wanted, atol=1e-12)


def test_low_precision_multiplies_the_frozen_matrix_in_it():
    one, x = layer(torch.float32, compute_dtype=torch.bfloat16), torch.randn(5, 6)
    wanted = x @ one.frozen.weight.T + 1.5 * (x @ one.a.T) @ one.b.T + one.bias
    assert torch.allclose(one.train()(x), wanted, atol=0.1)
    with inference_precision(one.eval(), torch.bfloat16), torch.no_grad():
        assert torch.allclose(one(x), wanted, atol=0.1)


@pytest.mark.parametrize(
    ("changes", "products", "wanted"),
    [
        ({}, None, {"query_key_value": 4, "query": 2, "key_value": 2}),
        ({}, ["inner", "outer"], {"inner": 4, "outer": 4}),
        ({}, ["output"], {"output": 6}),
        ({"architecture": "decoder_only", "tie": "none"}, ["output"], {"output": 2}),
        ({"architecture": "encoder_only", "task": "classification"}, None, {"query_key_value": 2}),
    ],
)
def test_the_named_products_are_adapted_and_all_else_is_frozen(changes, products, wanted):
    network = tiny_model(**changes).model
    before = {name: each.clone() for name, each in network.state_dict().items()}
    add_lora(network, 2, 4.0, products, seed=5)
    found = [name for name, each in network.named_modules() if isinstance(each, LoraLinear)]
    counts = {name.rpartition(".")[2]: 0 for name in found}
    for name in found:
        counts[name.rpartition(".")[2]] += 1
    assert counts == wanted
    trained = {name for name, each in network.named_parameters() if each.requires_grad}
    assert trained == {f"{name}.{side}" for name in found for side in "ab"}
    frozen, adapters = split_adapters(network.state_dict())
    assert adapters.keys() == trained
    assert frozen.keys() == before.keys()
    assert all(torch.equal(frozen[name], before[name]) for name in before)


@pytest.mark.parametrize("changes", [{}, {"tie": "none", "activation": "swiglu"}, {"architecture": "decoder_only"}])
def test_a_merged_network_is_the_adapted_one(changes):
    """To 1e-12 in float64: teacher forcing, and what a search finds by its faster paths."""
    loaded, plain = (tiny_model(dtype=FP64, **changes) for _ in range(2))
    network = loaded.model
    add_lora(network, 3, 6.0, ["query_key_value", "inner", "outer", "output"], seed=5)
    with torch.no_grad():
        for name, each in network.named_parameters():
            if name.endswith(".b"):
                each.normal_(std=0.3)
    plain.model.load_state_dict(merge_adapters(*split_adapters(network.state_dict()), 2.0))
    sources, targets = loaded.source_tokenizer.encode_batch(TEXTS), loaded.target_tokenizer.encode_batch(TEXTS[::-1])
    wanted = target_log_probs(plain.model, sources, targets)
    assert abs(target_log_probs(network.eval(), sources, targets) - wanted).max() < 1e-12 * abs(wanted).max()
    with torch.enable_grad():
        rows = torch.randn(7, 16, dtype=FP64)
        for name, each in plain.model.named_modules():
            if isinstance(each, Linear) and each.weight.shape[1] == 16 and "." in name:
                found = network.get_submodule(name)(rows)
                assert torch.allclose(found, each(rows), rtol=0, atol=1e-12), name
    config = DecodingConfig(beam=3, max_length=9)
    assert decode(network, sources, config) == decode(plain.model, sources, config)


@pytest.mark.parametrize("batch", [64, pytest.param(1, marks=pytest.mark.slow)])
def test_float32_paths_of_decoding_see_the_adapters(batch):
    loaded, plain = (tiny_model() for _ in range(2))
    add_lora(loaded.model, 3, 6.0, ["query_key_value", "inner", "outer", "output"], seed=5)
    with torch.no_grad():
        for name, each in loaded.model.named_parameters():
            if name.endswith(".b"):
                each.normal_(std=0.3)
    plain.model.load_state_dict(merge_adapters(*split_adapters(loaded.model.state_dict()), 2.0))
    sources = loaded.source_tokenizer.encode_batch(TEXTS * 4)
    config = DecodingConfig(beam=1, max_length=9, batch_sentences=batch)
    found, wanted = (decode(each.model.eval(), sources, config) for each in (loaded, plain))
    assert [one[0].ids for one in found] == [one[0].ids for one in wanted]


def test_products_that_are_not_there_are_named():
    with pytest.raises(ValueError, match=r"has no product inter; it has inner, key_value, outer, output, query, query"):
        add_lora(tiny_model().model, 2, 2.0, ["inner", "inter"], seed=1)
    with pytest.raises(ValueError, match=r"no product query_key_value, query, key_value; it has none"):
        add_lora(nn.Linear(2, 2), 2, 2.0, None, seed=1)


def test_adapters_that_do_not_fit_are_refused():
    weights = {"x.weight": torch.zeros(4, 6)}
    for adapters in (
        {"x.a": torch.zeros(2, 6)},
        {"y.a": torch.zeros(2, 6), "y.b": torch.zeros(4, 2)},
        {"x.a": torch.zeros(2, 5), "x.b": torch.zeros(4, 2)},
        {"x.a": torch.zeros(3, 6), "x.b": torch.zeros(4, 2)},
        {"x.a": torch.zeros(6), "x.b": torch.zeros(4)},
    ):
        with pytest.raises(ValueError, match="its adapter does not fit"):
            merge_adapters(weights, adapters, 1.0)
