"""Optimisers: what they are made of, which weights decay, and that their state survives saving to the bit."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import nn

from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.layers.linear import Linear
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.training import optimizers
from tfm.pipeline.training.optimizers import (
    OPTIMIZERS,
    make_optimizer,
    orthogonalize,
    restore_state,
    set_learning_rate,
    state_tensors,
    take_muon_step,
)
from tfm.pipeline.update_config import Optimizer, OptimizerConfig

ROOT = Path(__file__).parents[4]
NAMES: tuple[Optimizer, ...] = get_args(Optimizer)
MUON = OptimizerConfig(name="muon")


def network() -> nn.Module:
    """A product between hidden features, a norm, and an output layer."""
    torch.manual_seed(0)
    hidden = nn.Sequential(Linear(4, 3, compute_dtype=torch.float64), nn.LayerNorm(3))
    return nn.Sequential(hidden, Linear(3, 5, compute_dtype=torch.float64)).double()


def step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    """One update from a made-up gradient."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    set_learning_rate(optimizer, 0.1)
    optimizer.step()


def weights(model: nn.Module) -> list[list[float]]:
    return [parameter.flatten().tolist() for parameter in model.parameters()]


def test_every_name_has_an_optimizer() -> None:
    assert sorted(OPTIMIZERS) == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
        ("sgd", torch.optim.SGD),
        ("adagrad", torch.optim.Adagrad),
    ],
)
def test_updates_are_torchs_own(name: Optimizer, reference: type[torch.optim.Optimizer]) -> None:
    config = OptimizerConfig(name=name, betas=(0.8, 0.9), eps=1e-6, momentum=0.7)
    ours, theirs = network(), network()
    settings = {
        "adam": {"betas": (0.8, 0.9), "eps": 1e-6},
        "adamw": {"betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.0},
        "sgd": {"momentum": 0.7},
        "adagrad": {"eps": 1e-6},
    }[name]
    optimizers = make_optimizer(ours, config), reference(theirs.parameters(), lr=0.1, **settings)
    for seed in range(3):
        step(ours, optimizers[0], seed)
        step(theirs, optimizers[1], seed)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(1)
def test_no_optimizer_loads_torchs_compiler(name: Optimizer) -> None:
    """Nothing that it does, from the first to the last: a new process, as another test may have loaded it."""
    program = f"""
import sys, torch
from torch import nn
from tfm.model.layers.linear import Linear
from tfm.pipeline.training.optimizers import make_optimizer, restore_state, state_tensors
from tfm.pipeline.update_config import OptimizerConfig
hidden, output = [Linear(4, width, compute_dtype=torch.float32) for width in (4, 5)]
model = nn.Sequential(nn.Sequential(hidden, nn.LayerNorm(4)), output)
optimizer = make_optimizer(model, OptimizerConfig(name={name!r}))
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
restore_state(optimizer, model, state_tensors(optimizer, model))
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_adamw_decays_matrices_only() -> None:
    model = network()
    before = weights(model)
    optimizer = make_optimizer(model, OptimizerConfig(name="adamw", weight_decay=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    set_learning_rate(optimizer, 0.1)
    optimizer.step()
    for parameter, old, new in zip(model.parameters(), before, weights(model), strict=True):
        factor = 1 - 0.1 * 0.5 if parameter.ndim == 2 else 1
        assert new == pytest.approx([value * factor for value in old], rel=1e-12, abs=0)


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_optimizer_goes_on_to_the_bit(name: Optimizer) -> None:
    config = OptimizerConfig(name=name, weight_decay=0.01)
    straight = network()
    optimizer = make_optimizer(straight, config)
    for seed in range(3):
        step(straight, optimizer, seed)
    resumed = network()
    resumed.load_state_dict(straight.state_dict())
    second = make_optimizer(resumed, config)
    saved = {key: tensor.clone() for key, tensor in state_tensors(optimizer, straight).items()}
    restore_state(second, resumed, saved)
    for seed in range(3, 6):
        step(straight, optimizer, seed)
        step(resumed, second, seed)
    assert weights(resumed) == weights(straight)


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """The orthogonal matrix nearest to a matrix: its singular vectors, with all singular values 1."""
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    return left @ right


def test_muon_turns_a_matrix_along_the_singular_vectors_of_its_gradients() -> None:
    """Against the singular value decomposition, which Newton-Schulz steps stand for: these leave singular values of
    about 0.7 to 1.2, so directions are compared."""
    model, momentum, rate, decay = network(), 0.7, 0.1, 0.5
    config = OptimizerConfig(name="muon", momentum=momentum, weight_decay=decay)
    weight, optimizer = model[0][0].weight, make_optimizer(model, config)
    mean = torch.zeros_like(weight)
    for seed in range(3):
        before = weight.detach().clone()
        step(model, optimizer, seed)
        assert weight.grad is not None
        mean = momentum * mean + (1 - momentum) * weight.grad
        ahead = momentum * mean + (1 - momentum) * weight.grad  # Nesterov's
        found = (before * (1 - rate * decay) - weight.detach()) / (rate * 0.2 * 4**0.5)
        assert torch.linalg.svdvals(found).tolist() == pytest.approx([1.0] * 3, abs=0.35)
        expected = orthogonal(ahead)
        assert float((found * expected).sum() / found.norm() / expected.norm()) > 0.97


@pytest.mark.parametrize("shape", [(12, 40), (40, 12), (16, 16)])
def test_a_step_of_muon_is_torchs_and_nearly_the_same_in_fp32(shape: tuple[int, int]) -> None:
    draw = torch.Generator().manual_seed(1)
    start, gradients = torch.randn(shape, generator=draw), [torch.randn(shape, generator=draw) for _ in range(4)]

    def train(step: Callable[[torch.optim.Muon], object]) -> torch.Tensor:
        weight = nn.Parameter(start.clone())
        optimizer = torch.optim.Muon([weight], lr=0.1, weight_decay=0.2, momentum=0.9, adjust_lr_fn="match_rms_adamw")
        for each in gradients:
            weight.grad = each.clone()
            step(optimizer)
        return weight.detach()

    with torch.no_grad():
        theirs, ours = train(lambda each: each.step()), train(lambda each: take_muon_step(each, torch.bfloat16))
        in_fp32 = train(lambda each: take_muon_step(each, torch.float32))
    assert torch.equal(ours, theirs)
    torch.testing.assert_close(in_fp32, theirs, rtol=0, atol=0.02 * float((theirs - start).abs().max()))
    turned = orthogonalize(gradients[0], {"ns_coefficients": (3.4445, -4.775, 2.0315), "ns_steps": 5, "eps": 1e-7})
    assert torch.linalg.svdvals(turned).sub(1).abs().max() < 0.5


@pytest.mark.parametrize("has_products", [True, False])
def test_muon_multiplies_in_bf16_where_the_device_can(has_products: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    types = list[torch.dtype]()
    monkeypatch.setattr(optimizers, "supports_bf16_matmul", lambda device: has_products)
    monkeypatch.setattr(optimizers, "take_muon_step", lambda optimizer, dtype: types.append(dtype))
    model = network()
    step(model, make_optimizer(model, MUON), 1)
    assert types == ([] if has_products else [torch.float32])


def test_beside_muon_all_else_has_adamw() -> None:
    """Embeddings, the output layer, biases and norms; of these only matrices decay."""
    config = OptimizerConfig(name="muon", betas=(0.8, 0.9), eps=1e-6, weight_decay=0.5)
    ours, theirs = network(), network()
    both = make_optimizer(ours, config), make_optimizer(theirs, config.model_copy(update={"name": "adamw"}))
    for seed in range(3):
        step(ours, both[0], seed)
        step(theirs, both[1], seed)
    same = [a.equal(b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True)]
    assert same == [False, *[True] * (len(same) - 1)]


STACK = {"layers": 1, "dim": 16, "heads": 2, "feed_forward_dim": 24}
OF_LAYERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "several tables": (
        {"architecture": "decoder_only", "task": "language_model", "adaptive": {"cutoffs": [9]}},
        {"layers"},
    ),
    "narrow embeddings": ({"encoder": STACK, "tie": "none", "embedding_dim": 8}, {"encoder", "decoder"}),
    "recurrent": (
        {"architecture": "recurrent", "encoder": {"dim": 16}, "decoder": {"dim": 16}},
        {"encoder", "decoder"},
    ),
}


@pytest.mark.parametrize("name", OF_LAYERS)
def test_muon_has_no_matrix_of_embeddings_or_of_the_output(name: str) -> None:
    changes, parts = OF_LAYERS[name]
    model = build(ModelConfig.model_validate({"decoder": STACK, **changes}), source_vocab=30, target_vocab=30, seed=1)
    matrices = {id(each) for each in make_optimizer(model, MUON).param_groups[0]["params"]}
    found = {name.partition(".")[0] for name, each in model.named_parameters() if id(each) in matrices}
    assert found == parts


def test_muon_refuses_a_model_without_matrices_between_hidden_features() -> None:
    with pytest.raises(RecipeError, match="this model has none"):
        make_optimizer(nn.Sequential(nn.Embedding(4, 3), Linear(3, 5, compute_dtype=torch.float32)), MUON)


def test_of_matrices_that_stay_muon_knows_nothing() -> None:
    model = network()
    frozen = model[0][0].weight.requires_grad_(False)
    with pytest.raises(RecipeError):
        make_optimizer(model, MUON)
    frozen.requires_grad_(True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name == "0.0.weight")
    step(model, make_optimizer(model, MUON), 0)  # and with nothing beside it


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_restoring_refuses_half_of_what_an_optimizer_remembers(name: Optimizer) -> None:
    model = network()
    optimizer = make_optimizer(model, OptimizerConfig(name=name))
    step(model, optimizer, 0)
    saved = state_tensors(optimizer, model)
    assert len(saved) > 4
    for left_out in saved:
        rest = {key: tensor for key, tensor in saved.items() if key != left_out}
        again = network()
        with pytest.raises(RuntimeError, match="not every parameter"):
            restore_state(make_optimizer(again, OptimizerConfig(name=name)), again, rest)


def test_restoring_refuses_a_parameter_it_does_not_know() -> None:
    model = network()
    with pytest.raises(KeyError):
        restore_state(make_optimizer(model, OptimizerConfig()), model, {"other/exp_avg": torch.zeros(1)})
