"""Optimisers by name, those of torch; the learning rate is set from the schedule at every update."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfm.pipeline.training_config import OptimizerConfig

Groups = list[dict[str, Any]]


def adam(groups: Groups, config: OptimizerConfig, fused: bool) -> torch.optim.Optimizer:
    """Kingma and Ba 2015; weight decay is L2, added to the gradient."""
    return torch.optim.Adam(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=fused)


def adamw(groups: Groups, config: OptimizerConfig, fused: bool) -> torch.optim.Optimizer:
    """Loshchilov and Hutter 2019: weight decay apart from the gradient, and only on matrices."""
    for group in groups:
        group["params"], others = _matrices(group["params"])
        if others:
            groups = [*groups, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=config.betas, eps=config.eps, fused=fused)


def sgd(groups: Groups, config: OptimizerConfig, fused: bool) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    return torch.optim.SGD(groups, lr=0.0, momentum=config.momentum)


def adagrad(groups: Groups, config: OptimizerConfig, fused: bool) -> torch.optim.Optimizer:
    """Duchi et al. 2011."""
    return torch.optim.Adagrad(groups, lr=0.0, eps=config.eps)


def _matrices(parameters: list[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Weights that may decay, and biases and norms, which may not."""
    return [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim <= 1]


OPTIMIZERS: dict[str, Callable[[Groups, OptimizerConfig, bool], torch.optim.Optimizer]] = {
    "adam": adam,
    "adamw": adamw,
    "sgd": sgd,
    "adagrad": adagrad,
}


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """The configured optimiser over all parameters of `model` that are trained; tied ones once."""
    parameters = [each for each in model.parameters() if each.requires_grad]
    # The fused kernels do one pass over all tensors; torch has them for these devices.
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    group = {"params": parameters, "weight_decay": config.weight_decay}
    return OPTIMIZERS[config.name]([group], config, fused)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of the coming update, for every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def can_skip(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a device can skip its step: torch's fused Adam has that, for mixed precision."""
    return isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)) and bool(optimizer.defaults["fused"])


def step_unless(optimizer: torch.optim.Optimizer, is_useless: Tensor) -> None:
    """Change the weights by the gradient, or change nothing where `is_useless` (), float32, is 1.

    The device reads that, not the program. Only where `can_skip`.
    """
    optimizer.found_inf = is_useless  # type: ignore[attr-defined]
    optimizer.step()


def state_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """What the optimiser remembers of each parameter, as `<parameter>/<quantity>`: what a checkpoint holds of it."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{names[id(parameter)]}/{key}": value
        for parameter, values in optimizer.state.items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }


def restore_state(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give the optimiser back what `state_tensors` took of it.

    Raises KeyError for a parameter it does not know, RuntimeError where a shape is another or something is missing.
    """
    parameters = dict(model.named_parameters())
    quantities: defaultdict[str, set[str]] = defaultdict(set)
    for name, tensor in tensors.items():
        parameter_name, _, key = name.rpartition("/")
        parameter = parameters[parameter_name]
        if tensor.ndim and tensor.shape != parameter.shape:
            raise RuntimeError(f"{name} is {tuple(tensor.shape)}, not {tuple(parameter.shape)}")
        quantities[key].add(parameter_name)
        # Step counts stay where the optimiser keeps them: with the fused kernels beside the weights, else on the CPU.
        on_device = tensor.ndim > 0 or optimizer.defaults.get("fused", False)
        device = parameter.device if on_device else torch.device("cpu")
        optimizer.state[parameter][key] = tensor.to(device, copy=True)
    if any(names != next(iter(quantities.values())) for names in quantities.values()):
        raise RuntimeError("not every parameter has all that the optimiser remembers of it")
