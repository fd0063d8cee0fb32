"""Keys and values of the tokens decoded so far: each is written once and never moved.

A sentence has slots, one a cached token, shared by its hypotheses; each hypothesis descends from some of them. A slot
that no hypothesis descends from is free, and a new token takes the lowest free one, so that few more slots exist than
are needed. Reordering a beam changes only the mask that says which hypothesis descends from which slots.

Legend: B sentences · W hypotheses a sentence · S slots a sentence · H heads · K width of a head.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.model.cpu_kernels import dispatch
from tfm.model.masks import Mask


@dataclass(eq=False)
class CacheSlots:
    """The slots of one decoding step: where the new row of each hypothesis is written, and the slots that it attends
    to.

    new_slots (B, W): the slot that each new row takes. new_positions (B, W): the row's position. positions (B, S): the
    position of every slot. mask: the slots that each row attends to, including its own. Results derived from these
    are kept, so they are not assigned again.
    """

    new_slots: Tensor
    new_positions: Tensor
    positions: Tensor
    mask: Mask
    _rows: dict[tuple[int, int], Tensor] = field(default_factory=dict, compare=False, repr=False)
    _masks: dict[int, Mask] = field(default_factory=dict, compare=False, repr=False)
    _ancestors: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict, compare=False, repr=False)

    def window_mask(self, window: int) -> Mask:
        """The mask of the slots that are at most `window` positions before each row."""
        if window not in self._masks:
            is_near = (self.new_positions[:, :, None] - self.positions[:, None] <= window)[:, None]
            self._masks[window] = Mask(allowed=is_near if self.mask.allowed is None else is_near & self.mask.allowed)
        return self._masks[window]

    def with_strict_mask(self) -> "CacheSlots":
        """The same slots, of which each row attends to those before its own; a first row has only its own."""
        new = self.new_positions[:, :, None]
        is_earlier = ((self.positions[:, None] < new) | (new == 0))[:, None]
        allowed = is_earlier if self.mask.allowed is None else is_earlier & self.mask.allowed
        return CacheSlots(self.new_slots, self.new_positions, self.positions, Mask(allowed=allowed))

    def ancestor_slots(self, distance: int) -> tuple[Tensor, Tensor]:
        """The slot (B, W) of each row's ancestor `distance` positions before it, and whether there is one (B, W)."""
        if distance not in self._ancestors:
            is_ancestor = self.positions[:, None] == self.new_positions[:, :, None] - distance
            if self.mask.allowed is not None:
                is_ancestor &= self.mask.allowed[:, 0]
            self._ancestors[distance] = is_ancestor.to(torch.uint8).argmax(2), is_ancestor.any(2)
        return self._ancestors[distance]

    def flat_cache_indices(self, heads: int, capacity: int) -> Tensor:
        """Return the indices (B * H * W,) of the new rows in a cache (B, H, capacity, K) viewed as (B * H * capacity,
        K).
        """
        if (heads, capacity) not in self._rows:
            blocks = torch.arange(len(self.new_slots) * heads, device=self.new_slots.device).view(-1, heads, 1)
            self._rows[heads, capacity] = (blocks * capacity + self.new_slots[:, None]).flatten()
        return self._rows[heads, capacity]


class LayerKVCache:
    """The cache of one layer's self-attention."""

    def __init__(self) -> None:
        self._key: Tensor | None = None
        self._value: Tensor | None = None

    def write(self, key: Tensor, value: Tensor, slots: CacheSlots) -> tuple[Tensor, Tensor]:
        """Write the new keys and values into their slots, and return those of all slots.

        Args:
            key: new keys (B, H, W, K).
            value: new values (B, H, W, V).
            slots: the slots of the new rows, and of those before them.

        Returns:
            Keys (B, H, S, K) and values (B, H, S, V).
        """
        keys, values = self.ensure_capacity(slots, key.shape[1], (key.shape[3], value.shape[3]), key)
        if not dispatch.try_write_slots(keys, values, key, value, slots.new_slots):
            rows = slots.flat_cache_indices(key.shape[1], keys.shape[2])
            for cache, new in ((keys, key), (values, value)):
                cache.view(cache.shape[:3].numel(), cache.shape[3]).index_copy_(0, rows, new.flatten(0, 2))
        num_used_slots = slots.positions.shape[1]
        return keys[:, :, :num_used_slots], values[:, :, :num_used_slots]

    def ensure_capacity(
        self, slots: CacheSlots, heads: int, widths: tuple[int, int], like: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the whole cache, keys (B, H, S', K) and values (B, H, S', V), with room for these slots: S' >= S.

        Args:
            slots: the slots that must fit.
            heads: number of heads of keys and values.
            widths: K and V.
            like: a tensor that has the type and device of the cache.
        """
        num_used_slots = slots.positions.shape[1]
        batch, width = slots.new_slots.shape
        self._key = _grow_cache(self._key, num_used_slots, like, (batch, heads, width, widths[0]))
        self._value = _grow_cache(self._value, num_used_slots, like, (batch, heads, width, widths[1]))
        return self._key, self._value

    def ancestor_kv(self, distance: int, slots: CacheSlots) -> tuple[Tensor, Tensor] | None:
        """Return keys and values (R, H K) of the token `distance` positions before each row; zeros if there is none.

        None if nothing has been written yet.
        """
        if self._key is None or self._value is None:
            return None
        slot_indices, has_ancestor = slots.ancestor_slots(distance)
        sentences = torch.arange(len(slot_indices), device=slot_indices.device)[:, None]
        key, value = (
            (cache[sentences, :, slot_indices].flatten(2) * has_ancestor[:, :, None]).flatten(0, 1)
            for cache in (self._key, self._value)
        )
        return key, value

    @classmethod
    def from_kv(cls, key: Tensor, value: Tensor) -> "LayerKVCache":
        """A cache whose first slots hold these keys and values (B, H, S, K)."""
        cache = cls()
        cache._key, cache._value = key.contiguous(), value.contiguous()
        return cache

    def replace(self, sentences: Tensor, replacement: "LayerKVCache", num_slots: int) -> None:
        """Overwrite the first slots of some sentences, in place, from another cache; do nothing while either is empty.

        Args:
            sentences: indices (B',) of the sentences to overwrite.
            replacement: the cache of the B' new sentences.
            num_slots: the number of slots to copy.
        """
        if self._key is None or self._value is None or replacement._key is None or replacement._value is None:
            return  # nothing was written there yet
        self._key = _grow_cache(self._key, num_slots, replacement._key, replacement._key.shape)
        self._value = _grow_cache(self._value, num_slots, replacement._value, replacement._value.shape)
        self._key[sentences, :, :num_slots] = replacement._key[:, :, :num_slots]
        self._value[sentences, :, :num_slots] = replacement._value[:, :, :num_slots]

    def select(self, sentences: Tensor) -> "LayerKVCache":
        """The cache of these sentences (B',), in this order: a copy."""
        selection = LayerKVCache()
        if self._key is not None and self._value is not None:
            selection._key, selection._value = (
                self._key.index_select(0, sentences),
                self._value.index_select(0, sentences),
            )
        return selection


def _grow_cache(cache: Tensor | None, num_used_slots: int, like: Tensor, new_shape: Sequence[int]) -> Tensor:
    """The cache with at least `num_used_slots` slots; it grows by half, so it is seldom copied. New slots are zero.

    new_shape: the shape (B, H, W, K) of the rows to be written.
    """
    batch, heads, width, head_dim = new_shape
    if cache is None:
        return like.new_zeros(batch, heads, max(num_used_slots, 16 * width), head_dim)
    missing = num_used_slots - cache.shape[2]
    return F.pad(cache, (0, 0, 0, max(missing, cache.shape[2] // 2))) if missing > 0 else cache
