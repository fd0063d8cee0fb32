"""LoRA: a frozen matrix plus a trained product of low rank (Hu et al. 2022, eq. 3).

    h = W x + alpha / r * B A x        W (out, in) stays; A (r, in) begins at random, B (out, r) at zero

At the beginning a network computes as before, and W + alpha / r * B A is one matrix again where nothing is trained any
more.
"""

from collections.abc import Collection, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm.model.layers.derived_weights import DerivedWeights
from tfm.model.layers.linear import Linear

DEFAULT_TARGETS = ("query_key_value", "query", "key_value")
"""The products that are adapted where none are named: into queries, keys and values."""
FROZEN_INFIX, DOWN_SUFFIX, UP_SUFFIX = ".frozen.", ".a", ".b"


class LoraLinear(Linear):
    """A frozen linear layer (N, in) -> (N, out) with an adapter; without gradients it is a single product.

    Args:
        frozen: the layer, whose weight stays.
        rank: r.
        factor: alpha / r.
    """

    def __init__(self, frozen: Linear, rank: int, factor: float) -> None:
        nn.Module.__init__(self)
        self.compute_dtype, self.inference_dtype = frozen.compute_dtype, None
        self.frozen, self.factor = frozen, factor
        out_dim, in_dim = frozen.weight.shape
        self.a = nn.Parameter(frozen.weight.new_empty(rank, in_dim).normal_(std=in_dim**-0.5))
        self.b = nn.Parameter(frozen.weight.new_zeros(out_dim, rank))
        self._packed_weight = DerivedWeights()
        self._merged: DerivedWeights[Tensor] = DerivedWeights()

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """W + alpha / r * B A."""
        weights = self.frozen.weight, self.a, self.b
        if torch.is_grad_enabled():
            return self.frozen.weight + self.factor * (self.b @ self.a)
        with torch.inference_mode(False), torch.no_grad():
            return self._merged.get_or_make(weights, lambda: merge_lora_weight(*weights, self.factor))

    @property
    def bias(self) -> nn.Parameter | None:  # type: ignore[override]
        """The bias of the frozen layer."""
        return self.frozen.bias

    def forward(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out)."""
        if not torch.is_grad_enabled():
            return super().forward(x)
        frozen: Tensor = self.frozen(x)
        return frozen + self.factor * F.linear(F.linear(x, self.a), self.b)

    def train(self, mode: bool = True) -> "LoraLinear":
        """Turn training on or off; the merged weight is freed."""
        self._merged.clear()
        return super().train(mode)


def merge_lora_weight(weight: Tensor, down: Tensor, up: Tensor, factor: float) -> Tensor:
    """Return W + alpha / r * B A, computed in float64 and rounded once; on a device that has none, in float32.

    Args:
        weight: W (out, in).
        down: A (r, in).
        up: B (out, r).
        factor: alpha / r.
    """
    wide_dtype = torch.float32 if weight.device.type == "mps" else torch.float64
    return (weight.to(wide_dtype) + factor * (up.to(wide_dtype) @ down.to(wide_dtype))).to(weight.dtype)


def add_lora(network: nn.Module, rank: int, alpha: float, layer_names: Collection[str] | None, seed: int) -> None:
    """Put LoRA around the products of these names, and freeze all else.

    Args:
        network: changed in place; the output layer gets no LoRA.
        rank: r.
        alpha: the factor of B A is alpha / r.
        layer_names: last parts of layers' names: query_key_value, query, key_value, output (of attention), inner, outer
            (of feed-forward layers), ...; None: those of attention.
        seed: seed of the initial A.

    Raises:
        ValueError: the network has no product of a name; the message lists those that there are.
    """
    layers = {name: each for name, each in network.named_modules() if isinstance(each, Linear) and "." in name}
    available = sorted({name.rpartition(".")[2] for name in layers})
    target_names = [name for name in DEFAULT_TARGETS if name in available] if layer_names is None else list(layer_names)
    unknown = [name for name in target_names if name not in available]
    if unknown or not target_names:
        unknown_names, available_names = ", ".join(unknown or DEFAULT_TARGETS), ", ".join(available) or "none"
        raise ValueError(f"training.lora.products: the model has no product {unknown_names}; it has {available_names}")
    network.requires_grad_(False)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, layer in layers.items():
            parent_name, _, last = name.rpartition(".")
            if last in target_names:
                setattr(network.get_submodule(parent_name), last, LoraLinear(layer, rank, alpha / rank))


def split_adapters(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Saved weights as those of the frozen network, under its own names, and those of adapters, if it has some."""
    layers = {name.partition(FROZEN_INFIX)[0] for name in weights if FROZEN_INFIX in name}
    adapters = {f"{layer}{side}": weights[f"{layer}{side}"] for layer in layers for side in (DOWN_SUFFIX, UP_SUFFIX)}
    frozen = {name.replace(FROZEN_INFIX, "."): each for name, each in weights.items() if name not in adapters}
    return frozen, dict(sorted(adapters.items()))


def merge_adapters(weights: Mapping[str, Tensor], adapters: Mapping[str, Tensor], factor: float) -> dict[str, Tensor]:
    """Return the weights of a network, with adapters added to the matrices beside which they stand.

    Args:
        weights: the network's tensors by name.
        adapters: the adapters' tensors by name.
        factor: alpha / r.

    Raises:
        ValueError: an adapter fits none of the weights.
    """
    merged_weights = dict(weights)
    for layer in sorted({name.rpartition(".")[0] for name in adapters}):
        parts = [
            weights.get(f"{layer}.weight"),
            adapters.get(f"{layer}{DOWN_SUFFIX}"),
            adapters.get(f"{layer}{UP_SUFFIX}"),
        ]
        weight, down, up = parts
        if weight is None or down is None or up is None or down.dim() != 2 or up.dim() != 2:
            raise ValueError(f"its adapter does not fit: {layer:.80} is not whole")
        if (up.shape[0], down.shape[1]) != tuple(weight.shape) or up.shape[1] != down.shape[0]:
            raise ValueError(f"its adapter does not fit: {layer:.80} is {tuple(weight.shape)}")
        merged_weights[f"{layer}.weight"] = merge_lora_weight(weight, down, up, factor)
    return merged_weights


def merge_saved_adapters(weights: Mapping[str, Tensor], factor: float) -> dict[str, Tensor]:
    """Saved weights, under the same names, of the same function: W + alpha / r * B A as the frozen matrix, and B = 0.

    The mean of several networks is the mean of these, since mean(B) mean(A) is not mean(B A).
    """
    frozen, adapters = split_adapters(weights)
    merged = merge_adapters(frozen, adapters, factor)
    ups = {name for name in adapters if name.endswith(UP_SUFFIX)}
    return {
        name: torch.zeros_like(weight) if name in ups else merged.get(name.replace(FROZEN_INFIX, "."), weight)
        for name, weight in weights.items()
    }
