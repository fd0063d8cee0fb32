"""Values derived from weights for faster computation, computed again when the weights have changed."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

from torch import Tensor, UntypedStorage
from torch.optim.optimizer import register_optimizer_step_post_hook

T = TypeVar("T")
_uncounted_changes = 0


def invalidate_derived_weights(*_: object) -> None:
    """Discard all derived values, where weights change and torch does not count it in their versions. Every step of an
    optimizer calls it, for the fused ones count nothing.
    """
    global _uncounted_changes
    _uncounted_changes += 1


register_optimizer_step_post_hook(invalidate_derived_weights)


class DerivedWeights(Generic[T]):
    """Something made of weights, for as long as they are the same tensors in the same place with the same numbers.

    Unnoticed are only writes that torch does not count, through `tensor.data` or numpy, if nobody calls
    `invalidate_derived_weights`. Torch counts none of tensors made in inference mode: with these it is always made
    anew. A copy, or an object read from a pickle, begins with nothing.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Free the value."""
        self._seen: list[object] | None = None
        self._memory: list[UntypedStorage] = []
        self._made: T | None = None

    def get_or_make(self, weights: Sequence[Tensor], make: Callable[[], T], *settings: object) -> T:
        """Return the value made by `make` from these weights with these settings; make it now where they have changed.

        Args:
            weights: the weights on which the value depends.
            make: () -> the value.
            settings: everything else on which the value depends.
        """
        seen: list[object] = [_uncounted_changes, settings]
        for each in weights:
            seen.append(each.data_ptr())
            seen.append(object() if each.is_inference() else each._version)
        if seen != self._seen:
            self._made = make()
            self._memory = [each.untyped_storage() for each in weights]  # so that no other weights come to lie there
            self._seen = seen
        return cast(T, self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
