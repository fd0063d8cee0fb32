"""Dropout in which every draw is a pure function of (seed, step), without generator state.

Masks are windows of a pool of random factors at random offsets, several times cheaper than drawing each element; the
pool is drawn again every STEPS_PER_POOL steps.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfm.model.layers.counter_rng import counter_hash

POOL_SIZES = {"cpu": 1 << 22}
GPU_POOL_SIZE = 1 << 25
"""Batches of a GPU are larger, and to draw each element costs it several passes over memory."""
STEPS_PER_POOL = 64


class DropoutRng:
    """The source of all dropout masks of a model. `seed_batch` fixes every draw until the next `seed_batch`.

    Its `update_key` is for draws that concern single examples of an update, whatever batch they are in.
    """

    def __init__(self) -> None:
        self._pools: dict[tuple[float, torch.dtype, torch.device], tuple[int, Tensor]] = {}
        self._leaves_out = True
        self.seed_batch(0, 0, 0, 0)

    def seed_batch(self, seed: int, step: int, batch_index: int = 0, part: int = 0) -> None:
        """Start the forward pass of a part of a batch.

        Args:
            seed: seed of all draws.
            step: number of the update.
            batch_index: place of the batch in the update.
            part: number of the part of the batch.
        """
        self._pool_key = counter_hash(seed, step // STEPS_PER_POOL)
        self._key = counter_hash(seed, step, batch_index, part)
        self.update_key = counter_hash(seed, step)
        self._draws = 0

    def next_key(self) -> int:
        """The next of the pass's random numbers, 64 bits."""
        self._draws += 1
        return counter_hash(self._key, self._draws)

    @property
    def state(self) -> tuple[int, int, int, int]:
        """The state from which the next draws follow."""
        return self._pool_key, self._key, self.update_key, self._draws

    @contextmanager
    def replay(self, state: tuple[int, int, int, int]) -> Iterator[None]:
        """Draw as after an earlier state while the body runs."""
        previous_state = self.state
        self._pool_key, self._key, self.update_key, self._draws = state
        try:
            yield
        finally:
            self._pool_key, self._key, self.update_key, self._draws = previous_state

    def should_drop_layer(self, rate: float) -> bool:
        """Return whether a part is left out of this pass, with probability `rate`: of all rows of it."""
        return self.next_key() < rate * 2**64 and self._leaves_out

    @contextmanager
    def no_layer_drop(self) -> Iterator[None]:
        """Keep every layer while the body runs: to see how much memory a pass may take."""
        self._leaves_out = False
        try:
            yield
        finally:
            self._leaves_out = True

    def mask(self, like: Tensor, rate: float) -> Tensor:
        """Return factors of like's shape: 0 with probability `rate`, else 1 / (1 - rate)."""
        draw, size, pool_size = self.next_key(), like.numel(), POOL_SIZES.get(like.device.type, GPU_POOL_SIZE)
        if size > pool_size // 2:
            return _draw_scaled_mask(size, draw, rate, like).view_as(like)
        offset = draw % (pool_size - size + 1)
        return self._get_mask_pool(pool_size, rate, like)[offset : offset + size].view(like.shape)

    def _get_mask_pool(self, pool_size: int, rate: float, like: Tensor) -> Tensor:
        slot = (rate, like.dtype, like.device)
        key, pool = self._pools.get(slot, (None, None))
        if pool is None or key != self._pool_key:
            pool = _draw_scaled_mask(pool_size, self._pool_key, rate, like)
            self._pools[slot] = (self._pool_key, pool)
        return pool


def _draw_scaled_mask(size: int, key: int, rate: float, like: Tensor) -> Tensor:
    # Drawn where they are needed, so that nothing waits for a copy; another kind of device draws others.
    device = torch.device("cpu") if like.is_meta else like.device
    generator = torch.Generator(device).manual_seed(key >> 1)
    # Single-precision numbers for every dtype, so that a model in float64 drops the same elements.
    is_kept = torch.rand(size, generator=generator, device=device) >= rate
    return is_kept.to(like.device, like.dtype).mul_(1 / (1 - rate))


class Dropout(nn.Module):
    """Layer that sets elements to zero at a rate and scales the others up, in training only (Srivastava et al.
    2014).
    """

    def __init__(self, rate: float, dropout_rng: DropoutRng) -> None:
        super().__init__()
        self.rate, self.dropout_rng = rate, dropout_rng

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        return x * self.dropout_rng.mask(x, self.rate)

    def extra_repr(self) -> str:
        return str(self.rate)
