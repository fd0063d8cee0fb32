"""Values derived from weights for faster computation, computed again when the weights have changed."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from torch import Tensor, UntypedStorage
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

T = TypeVar("T")
STEP_COUNTER_ATTRIBUTE = "_num_optimizer_steps"
"""The attribute of a weight that counts the steps of optimizers: torch's fused ones do not raise its version."""
_num_invalidations = 0


def invalidate_derived_weights() -> None:
    """Derive all values again, after weights were changed in a way that torch does not count in their versions."""
    global _num_invalidations
    _num_invalidations += 1


def _count_step(optimizer: Optimizer, *_: object) -> None:
    """Count a step of an optimizer for those of its weights that something is derived from."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if (num_steps := getattr(weight, STEP_COUNTER_ATTRIBUTE, None)) is not None:
                setattr(weight, STEP_COUNTER_ATTRIBUTE, num_steps + 1)


register_optimizer_step_post_hook(_count_step)


class DerivedWeights(Generic[T]):
    """Something made of weights, for as long as they are the same tensors in the same place with the same numbers.

    Unnoticed are only writes that torch does not count, through `tensor.data` or numpy, if nobody calls
    `invalidate_derived_weights`. Torch counts none of tensors made in inference mode: with these it is always made
    again. A copy, or an object read from a pickle, begins with nothing.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Free the value."""
        self._versions: list[object] | None = None
        self._storages: list[UntypedStorage] = []
        self._value: T | None = None

    def get_or_make(self, weights: Sequence[Tensor], make: Callable[[], T], *settings: object) -> T:
        """Return the value made by `make` from these weights with these settings; make it now where they have changed.

        Args:
            weights: the weights on which the value depends.
            make: () -> the value.
            settings: everything else on which the value depends.
        """
        versions: list[object] = [_num_invalidations, settings]
        for weight in weights:
            versions.append(weight.data_ptr())
            versions.append(object() if weight.is_inference() else weight._version)
            versions.append(getattr(weight, STEP_COUNTER_ATTRIBUTE, 0))
        if versions != self._versions:
            self._value = make()
            for weight in weights:
                if not hasattr(weight, STEP_COUNTER_ATTRIBUTE):
                    setattr(weight, STEP_COUNTER_ATTRIBUTE, 0)
            # so that no other weights come to lie there
            self._storages = [weight.untyped_storage() for weight in weights]
            self._versions = versions
        return cast(T, self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
