"""The weights of models as compiled loops read them, laid out once for as long as a model stays as it is."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from tfm.model.layers.derived_weights import DerivedWeights

WeightsT = TypeVar("WeightsT")


class WeightCache(Generic[WeightsT]):
    """The weights of a model as the loop reads them, for as long as the model stays as it is.

    The weights are compared before every text, so the tensors to compare are gathered once. The cache has no reference
    to the model itself.

    Args:
        model: the model.
        make: (model) -> its weights; None if the loop does not apply.
    """

    def __init__(self, model: nn.Module, make: Callable[[Any], WeightsT | None]) -> None:
        modules = list(model.modules())
        self._modules = modules[1:]  # so that no new part takes the identity of an old one
        self._parts = [each._modules for each in modules if each._modules]
        self._hooks = [hooks for module in modules for hooks in (module._forward_hooks, module._forward_pre_hooks)]
        tensor_groups: list[Any] = [tensors for module in modules for tensors in (module._parameters, module._buffers)]
        self._tensors: list[dict[str, Tensor | None]] = [tensors for tensors in tensor_groups if tensors]
        self._initial_submodule_ids = self._submodule_ids()
        self._weights: DerivedWeights[WeightsT | None] = DerivedWeights()
        self._make = make

    def is_unchanged(self) -> bool:
        return self._submodule_ids() == self._initial_submodule_ids

    def has_hooks(self) -> bool:
        return any(self._hooks)

    def current_weights(self, model: nn.Module) -> WeightsT | None:
        """Return the weights of the model; None if the loop does not apply."""
        tensors = [tensor for tensors in self._tensors for tensor in tensors.values() if tensor is not None]
        return self._weights.get_or_make(tensors, lambda: self._make(model), model.training)

    def _submodule_ids(self) -> list[int]:
        return [id(part) for parts in self._parts for part in parts.values()]


def cached_weights(
    caches: "WeakKeyDictionary[nn.Module, WeightCache[WeightsT]]",
    model: nn.Module,
    make: Callable[[Any], WeightsT | None],
) -> WeightsT | None:
    """Return the weights of a model as it is now; None if the loop does not apply.

    Args:
        caches: the caches of the loop, by model.
        model: the model.
        make: (model) -> its weights; None if the loop does not apply.
    """
    cache = caches.get(model)
    if cache is None or not cache.is_unchanged():
        cache = caches[model] = WeightCache(model, make)
    if cache.has_hooks():
        del caches[model]  # a hook may hold the model, which would never be freed
        return None
    return cache.current_weights(model)
