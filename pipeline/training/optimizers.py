"""Optimizers by name, those of torch; the learning rate is set from the schedule at every update."""

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tfm.model.layers.linear import Linear
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.devices import supports_bf16_matmul
from tfm.pipeline.runtime.fully_sharded import local_shard, shard_like
from tfm.pipeline.update_config import OptimizerConfig

AnyOptimizer = TypeVar("AnyOptimizer", bound=torch.optim.Optimizer)


def adam(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Kingma and Ba 2015; weight decay is L2, added to the gradient."""
    parameters = trainable_parameters(model)
    return without_compiler(torch.optim.Adam)(
        parameters,
        lr=0.0,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=_can_fuse(parameters),
    )


def adamw(model: nn.Module, config: OptimizerConfig) -> torch.optim.AdamW:
    """Loshchilov and Hutter 2019: weight decay apart from the gradient, and only on matrices."""
    return _make_adamw(trainable_parameters(model), config)


def sgd(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    return without_compiler(torch.optim.SGD)(
        trainable_parameters(model), lr=0.0, momentum=config.momentum, weight_decay=config.weight_decay
    )


def adagrad(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Duchi et al. 2011."""
    make = without_compiler(torch.optim.Adagrad)
    return make(trainable_parameters(model), lr=0.0, eps=config.eps, weight_decay=config.weight_decay)


def without_compiler(optimizer: type[AnyOptimizer]) -> type[AnyOptimizer]:
    """Return one of torch's optimizers whose methods do not load torch's compiler.

    The first call of each decorated method loads the compiler to keep itself out of compiled graphs: a second or
    more of modules, for graphs that a training here never has.
    """
    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods: dict[str, Any] = {name: inspect.unwrap(getattr(optimizer, name)) for name in names}
    methods["step"] = torch.no_grad()(inspect.unwrap(optimizer.step))
    return type(optimizer.__name__, (optimizer,), methods)


class Muon(torch.optim.Optimizer):
    """Jordan et al. 2024: matrices between hidden features get steps whose singular values are all about 1.

        M <- m M + (1 - m) G,  N = m M + (1 - m) G,  W <- W - 0.2 sqrt(max(rows, columns)) rate orthogonal(N)

    with m = `momentum` and orthogonal(U S V^T) = U V^T nearly, by five Newton-Schulz steps in bf16, or in fp32 on a
    device without products in bf16, which emulates them many times slower. The factor is that of Liu et al. 2025, by
    which a step is as large as one of Adam, so that one rate and one weight decay are for all. Embeddings, the output
    layer, biases and norms have AdamW.
    """

    def __init__(self, model: nn.Module, config: OptimizerConfig) -> None:
        products = _hidden_matrices(model)
        if not products:
            raise RecipeError(
                'training.optimizer.name = "muon" is for matrices between hidden features, and this model has none: '
                'take "adam"'
            )
        first = without_compiler(torch.optim.Muon)(
            products,
            lr=0.0,
            weight_decay=config.weight_decay,
            momentum=config.momentum,
            adjust_lr_fn="match_rms_adamw",
        )
        product_ids = {id(each) for each in products}
        other_parameters = [each for each in trainable_parameters(model) if id(each) not in product_ids]
        self._parts = [first, _make_adamw(other_parameters, config)] if other_parameters else [first]
        groups = [group for part in self._parts for group in part.param_groups]
        super().__init__(groups, {"fused": _can_fuse(other_parameters)})
        for part in self._parts:
            part.state = self.state

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all parameters once."""
        products, *other_parts = self._parts
        if supports_bf16_matmul(products.param_groups[0]["params"][0].device):
            products.step()
        else:
            take_muon_step(products, torch.float32)
        for part in other_parts:
            part.step()


def take_muon_step(optimizer: torch.optim.Optimizer, dtype: torch.dtype) -> None:
    """Take the step of torch.optim.Muon, its products in another type; torch has no choice but bf16.

    Args:
        optimizer: that of torch.
        dtype: type of the products of Newton-Schulz steps.
    """
    for group in optimizer.param_groups:
        rate, momentum = group["lr"], group["momentum"]
        for weight in group["params"]:
            if weight.grad is None:
                continue
            state = optimizer.state[weight]
            if not state:
                state["momentum_buffer"] = torch.zeros_like(weight.grad)
            mean: Tensor = state["momentum_buffer"]
            mean.lerp_(weight.grad, 1 - momentum)
            step = orthogonalize(weight.grad.lerp(mean, momentum).to(dtype), group)
            weight.mul_(1 - rate * group["weight_decay"])
            weight.add_(step, alpha=-0.2 * max(weight.shape) ** 0.5 * rate)


def orthogonalize(matrix: Tensor, settings: Mapping[str, Any]) -> Tensor:
    """Return the matrix (n, m) with singular values of about 1, by steps X <- a X + (b X X^T + c (X X^T)^2) X.

    Args:
        matrix: (n, m).
        settings: of torch.optim.Muon: a, b, c as `ns_coefficients`, `ns_steps` and `eps`.
    """
    a, b, c = settings["ns_coefficients"]
    x = matrix.T if len(matrix) > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=settings["eps"])  # no singular value is above 1
    for _ in range(settings["ns_steps"]):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if len(matrix) > matrix.shape[1] else x


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that change; tied ones once."""
    return [each for each in model.parameters() if each.requires_grad]


def _make_adamw(parameters: list[nn.Parameter], config: OptimizerConfig) -> torch.optim.AdamW:
    groups = [
        {"params": [each for each in parameters if each.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0},  # biases and norms
    ]
    groups = [group for group in groups if group["params"]]
    return without_compiler(torch.optim.AdamW)(
        groups, lr=0.0, betas=config.betas, eps=config.eps, fused=_can_fuse(parameters)
    )


def _hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices of products whose input and output are hidden features: those of a network itself, of its embeddings
    and of its output layer are none of them."""
    layers = [each for name, each in model.named_modules() if isinstance(each, Linear) and is_within_layers(name)]
    parameters = [parameter for layer in layers for parameter in layer.parameters(recurse=False)]
    return [each for each in dict.fromkeys(parameters) if each.ndim == 2 and each.requires_grad]


def is_within_layers(name: str) -> bool:
    """Return whether a product of this name, or a weight of one, is between hidden features."""
    part, dot, _ = name.partition(".")
    return bool(dot) and part != "output" and not part.endswith("embedding")


def _can_fuse(parameters: list[nn.Parameter]) -> bool:
    """Return whether torch has the kernels that do one pass over all tensors, for their devices."""
    return all(each.device.type in ("cpu", "cuda") for each in parameters)


STEP_KEY = "step"
"""The quantity of a parameter that is a number, whatever the parameter's shape: how often it was updated."""
OPTIMIZERS: dict[str, Callable[[nn.Module, OptimizerConfig], torch.optim.Optimizer]] = {
    "adam": adam,
    "adamw": adamw,
    "sgd": sgd,
    "adagrad": adagrad,
    "muon": without_compiler(Muon),
}


def make_optimizer(model: nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
    """The configured optimizer over all parameters of `model` that are trained. Raises RecipeError if it is none for
    this model."""
    return OPTIMIZERS[config.name](model, config)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate of the coming update, for every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def can_skip_step(optimizer: torch.optim.Optimizer) -> bool:
    """Return whether a device can skip its step: torch's fused Adam has that, for mixed precision."""
    return isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)) and bool(optimizer.defaults["fused"])


def step_or_skip(optimizer: torch.optim.Optimizer, is_useless: Tensor) -> None:
    """Change the weights by the gradient, or change nothing if `should_skip` (), float32, is 1.

    The device reads that, not the program. Only where `can_skip`.
    """
    optimizer.found_inf = is_useless  # type: ignore[attr-defined]
    optimizer.step()


def state_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the optimizer's state of each parameter, as `<parameter>/<quantity>`, for a checkpoint."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{names[id(parameter)]}/{key}": local_shard(value)
        for parameter, values in optimizer.state.items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }


def restore_state(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give the optimizer back the tensors that `state_tensors` took from it.

    Args:
        optimizer: changed in place.
        model: the network whose parameters it trains.
        tensors: `<parameter>/<quantity>` to tensor.

    Raises:
        KeyError: a parameter is not known to the network.
        RuntimeError: a shape is another or something is missing.
    """
    parameters = dict(model.named_parameters())
    quantities: defaultdict[int, set[str]] = defaultdict(set)  # of each parameter, by its id
    for name, tensor in tensors.items():
        parameter_name, _, key = name.rpartition("/")
        parameter = parameters[parameter_name]
        shard = local_shard(parameter)
        if tensor.shape != shard.shape and not (key == STEP_KEY and tensor.ndim == 0):
            raise RuntimeError(f"{name} is {tuple(tensor.shape)}, not {tuple(shard.shape)}")
        if tensor.dtype != shard.dtype and not (key == STEP_KEY and tensor.is_floating_point()):
            raise RuntimeError(f"{name} is {tensor.dtype}, not {shard.dtype}")
        quantities[id(parameter)].add(key)
        # Step counts stay where the optimizer keeps them: on the weights' device with fused kernels, else on the CPU.
        on_device = tensor.ndim > 0 or optimizer.defaults.get("fused", False)
        device = parameter.device if on_device else torch.device("cpu")
        optimizer.state[parameter][key] = shard_like(tensor.to(device, copy=True), parameter)
    # of the parameters with one kind of optimizer
    quantities_by_kind: defaultdict[frozenset[str], list[set[str]]] = defaultdict(list)
    for group in optimizer.param_groups:
        quantities_by_kind[frozenset(group)] += [quantities[id(each)] for each in group["params"]]
    if any(
        names != group_quantities[0] or bool(names) != bool(tensors)
        for group_quantities in quantities_by_kind.values()
        for names in group_quantities
    ):
        raise RuntimeError("not every parameter has all that the optimiser remembers of it")
