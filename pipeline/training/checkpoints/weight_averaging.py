"""Means of weights: an exponential moving average during training, and the mean of checkpoints after it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfm.pipeline.model_io.model_weights import drop_shared_tensors
from tfm.pipeline.runtime.fully_sharded import is_sharded, named_weights


def local_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a network's weights where they are now, each shared one once; of sharded ones this process's parts."""
    return named_weights(model) if is_sharded(model) else drop_shared_tensors(model.state_dict())


class Ema:
    """Exponential moving average of a model's weights: a <- d a + (1 - d) w after every update.

    d = min(decay, (1 + n) / (10 + n)) at update n, so that the random first weights are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self._model = decay, model
        self.weights = {name: tensor.clone() for name, tensor in local_weights(self._model).items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the model's weights after update number `step`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.weights.values()), list(local_weights(self._model).values()), 1 - decay)

    def load(self, weights: dict[str, Tensor]) -> None:
        """Go on from these averages. Raises KeyError if one is missing."""
        _copy_tensors(weights, self.weights)

    @contextmanager
    def use_ema_weights(self) -> Iterator[None]:
        """Give the model the averaged weights while the body runs; then its own again, to the bit."""
        saved_weights = {name: tensor.clone() for name, tensor in local_weights(self._model).items()}
        try:
            _copy_tensors(self.weights, local_weights(self._model))
            yield
        finally:
            _copy_tensors(saved_weights, local_weights(self._model))


@torch.no_grad()
def _copy_tensors(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    for name, tensor in target.items():
        tensor.copy_(source[name])


def mean_weights(checkpoints: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of weights, added up in float64, in their own dtype. One set is in memory at a time.

    Raises ValueError without any.
    """
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    num_sets = 0
    for weights in checkpoints:
        num_sets += 1
        for name, tensor in weights.items():
            dtypes[name] = tensor.dtype
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    if not num_sets:
        raise ValueError("no weights to take the mean of")
    return {name: (tensor / num_sets).to(dtypes[name]) for name, tensor in total.items()}
