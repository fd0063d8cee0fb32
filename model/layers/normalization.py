"""Layer norm in three forms, RMS norm, batch norm and none.

Legend: N rows · D width.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from tfm.model.cpu_kernels import dispatch


class LayerNorm(nn.LayerNorm):
    """(x - mean) / sqrt(var + eps) * g + b, mean and variance of each row   (Ba et al. 2016, eq. 3)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        normed = dispatch.layer_norm(input, self.weight, self.bias, self.eps)
        return super().forward(input) if normed is None else normed


class StdLayerNorm(nn.Module):
    """(x - mean) / (sqrt(var) + eps) * g + b: eps is added to the deviation, not to the variance.

    Args:
        dim: D.
        eps: added to the deviation.
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        # a row of equal numbers has deviation 0, with a gradient that is not a number
        deviation = variance.clamp(min=torch.finfo(x.dtype).tiny).sqrt()
        return (x - mean) / (deviation + self.eps) * self.weight + self.bias


class BatchNorm(nn.Module):
    """(x - mean) / sqrt(var + eps) * g + b, mean and variance of each column   (Ioffe and Szegedy 2015, alg. 1).

    In training over the rows of the batch, of all its sentences and positions; else over those of training, running
    averages of them, so that a row does not depend on others beside it.

    Args:
        dim: D.
        eps: added to the variance.
        momentum: share of the batch in the running averages.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, dim: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("variance", torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        if not self.training:
            return (x - self.mean) * (self.variance + self.eps).rsqrt() * self.weight + self.bias
        variance, mean = torch.var_mean(x, dim=0, correction=0)
        self._update_running_stats(mean.detach(), variance.detach() * len(x) / max(1, len(x) - 1))
        return (x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias

    @torch.no_grad()
    def _update_running_stats(self, mean: Tensor, variance: Tensor) -> None:
        for running, new in ((self.mean, mean), (self.variance, variance)):
            # an update that is not finite is left out, and leaves no trace here either
            running.lerp_(torch.where(new.isfinite(), new, running), self.momentum)


def no_norm(dim: int, *, eps: float) -> nn.Module:
    """Return a module that leaves rows as they are."""
    return nn.Identity()


NORM_EPS = 1e-5


def has_batch_norm(module: nn.Module) -> bool:
    """Whether a part of a module is batch norm, for which every row counts, also one without a prediction."""
    return any(isinstance(each, BatchNorm) for each in module.modules())


NORMALIZATIONS: dict[str, Callable[..., nn.Module]] = {
    "layer": partial(LayerNorm, eps=NORM_EPS),
    "layer_gain": partial(nn.LayerNorm, eps=NORM_EPS, bias=False),  # (x - mean) / sqrt(var + eps) * g
    "layer_std": partial(StdLayerNorm, eps=NORM_EPS),
    "rms": partial(nn.RMSNorm, eps=NORM_EPS),  # x / sqrt(mean(x^2) + eps) * g (Zhang and Sennrich 2019)
    "batch": partial(BatchNorm, eps=NORM_EPS),
    "none": partial(no_norm, eps=NORM_EPS),
}
"""By name: (width, eps = EPS) -> a norm."""
NORM_CLASSES = (nn.LayerNorm, nn.RMSNorm, StdLayerNorm, BatchNorm)
"""The classes of norms that have weights."""
