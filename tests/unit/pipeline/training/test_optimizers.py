"""Optimisers: what they are made of, which weights decay, and that their state survives saving to the bit."""

from typing import get_args

import pytest
import torch
from torch import nn

from tfm.pipeline.training.optimizers import (
    OPTIMIZERS,
    make_optimizer,
    restore_state,
    set_learning_rate,
    state_tensors,
)
from tfm.pipeline.training_config import Optimizer, OptimizerConfig

NAMES: tuple[Optimizer, ...] = get_args(Optimizer)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)).double()


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


def test_adamw_decays_matrices_only() -> None:
    model = network()
    before = weights(model)
    optimizer = make_optimizer(model, OptimizerConfig(name="adamw", weight_decay=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    set_learning_rate(optimizer, 0.1)
    optimizer.step()
    after = weights(model)
    assert after[0] == pytest.approx([value * (1 - 0.1 * 0.5) for value in before[0]])
    assert after[1:] == before[1:]


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


def test_restoring_refuses_a_parameter_it_does_not_know() -> None:
    model = network()
    with pytest.raises(KeyError):
        restore_state(make_optimizer(model, OptimizerConfig()), model, {"other/exp_avg": torch.zeros(1)})
