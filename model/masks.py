"""Attention masks, with one convention: True = may attend."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.model.layout import AnyLayout, FlatLayout


@dataclass(eq=False)
class Mask:
    """A mask over (B, H, T, S) that is written out only where a kernel needs it.

    causal: query t sees keys 0..t. strict: of a causal mask; query t sees keys 0..t - 1, and the first, before which
    there is none, itself. allowed: (B, 1, 1 or T, S) bool, or None if every key is real. flat: the layouts
    of queries and keys whose rows lie end to end; a query sees keys of its own sentence alone. window: in
    self-attention, query t sees keys t - window .. t + window, and always itself: beside a short sentence stands
    padding that would see nothing, whose softmax is no number. Two masks are equal only if they are the same object.
    Each form is written out once and kept, so these fields are not assigned again.
    """

    causal: bool = False
    strict: bool = field(default=False, kw_only=True)
    allowed: Tensor | None = None
    flat: tuple[FlatLayout, FlatLayout] | None = None
    window: int | None = None
    _biases: dict[tuple[int, int, torch.dtype], Tensor] = field(default_factory=dict, repr=False)
    _window_masks: "dict[tuple[int, ...], Mask]" = field(default_factory=dict, repr=False)

    @property
    def needs_explicit_attention(self) -> bool:
        """Whether the mask is `allowed` alone."""
        return not self.causal and self.flat is None and self.window is None

    def bias(self, num_queries: int, num_keys: int, like: Tensor) -> Tensor | None:
        """Return M of softmax(Q K^T + M): 0 where a query may attend, else -inf; written once for all layers.

        Args:
            num_queries: T.
            num_keys: S.
            like: a tensor that has the type and device of the result.

        Returns:
            M, broadcastable to (B, H, T, S); None if all may attend to all.
        """
        if self.needs_explicit_attention and self.allowed is None:
            return None
        key = num_queries, num_keys, like.dtype
        if key not in self._biases:
            allowed = self.allowed
            if self.flat is not None:
                queries, keys = self.flat
                allowed = (queries.sentence[:, None] == keys.sentence)[None, None]
            if self.window is not None:
                distances = _key_distances(num_queries, num_keys, like.device)
                in_window = distances.abs() <= self.window
                allowed = in_window if allowed is None else (in_window & allowed) | (distances == 0)
            if self.causal:
                causal = torch.ones(num_queries, num_keys, dtype=torch.bool, device=like.device).tril(-self.strict)
                allowed = causal if allowed is None else causal & allowed
            if self.strict:
                assert allowed is not None  # a strict mask is causal
                allowed = _let_empty_rows_attend_to_self(allowed, _key_distances(num_queries, num_keys, like.device))
            assert allowed is not None  # see the first line
            self._biases[key] = torch.zeros_like(allowed, dtype=like.dtype).masked_fill_(~allowed, float("-inf"))
        return self._biases[key]

    def restrict_to_window(self, window: int) -> "Mask":
        """Return the same mask of self-attention, where no query sees farther than `window` positions."""
        if (window,) not in self._window_masks:
            self._window_masks[window,] = Mask(self.causal, self.allowed, self.flat, window, strict=self.strict)
        return self._window_masks[window,]

    def blocked_window_mask(
        self, size: int, blocks_per_window: int, batch: int, length: int, device: torch.device
    ) -> "Mask":
        """Return the mask (B C, 1, size, parts * size) of self-attention within a window, for queries in C blocks.

        Args:
            size: rows of a block, at least the window.
            blocks_per_window: blocks whose keys a block sees; the second is its own.
            batch: B.
            length: length of the padded sentences.
            device: device of the mask.
        """
        assert self.window is not None
        if (size, batch, length) not in self._window_masks:
            num_blocks = -(-length // size)
            is_real = torch.ones(1, length, device=device).bool() if self.allowed is None else self.allowed[:, 0, 0]
            is_real = F.pad(is_real, (size, (num_blocks + blocks_per_window - 2) * size - length)).unfold(
                1, blocks_per_window * size, size
            )
            distances = _key_distances(size, blocks_per_window * size, device) - size
            in_window = (distances.abs() <= self.window) & (distances <= -self.strict if self.causal else True)
            allowed = in_window & is_real.unsqueeze(2)
            allowed = _let_empty_rows_attend_to_self(allowed, distances) if self.strict else allowed | (distances == 0)
            allowed = allowed.expand(batch, -1, -1, -1).flatten(0, 1).unsqueeze(1)
            self._window_masks[size, batch, length] = Mask(allowed=allowed)
        return self._window_masks[size, batch, length]


def _key_distances(num_queries: int, num_keys: int, device: torch.device) -> Tensor:
    """Return the distance (T, S) of each key after each query, both counted from 0."""
    return torch.arange(num_keys, device=device) - torch.arange(num_queries, device=device)[:, None]


def _let_empty_rows_attend_to_self(allowed: Tensor, key_offsets: Tensor) -> Tensor:
    """Return a mask (.., T, S) in which a query that may attend to none attends to itself.

    Args:
        allowed: (.., T, S).
        key_offsets: (T, S), the position of each key less that of each query.
    """
    return allowed | ((key_offsets == 0) & ~allowed.any(-1, keepdim=True))


def padding_mask(keys: AnyLayout, queries: AnyLayout | None = None) -> Mask:
    """Every query sees the real keys of its own sentence. queries: their layout, if it is not that of the keys."""
    if isinstance(keys, FlatLayout):
        query_layout = queries or keys
        assert isinstance(query_layout, FlatLayout)  # both sides of a batch are laid out alike
        return Mask(flat=(query_layout, keys))
    return Mask(allowed=None if keys.has_no_padding else keys.mask[:, None, None, :])


def causal_mask(layout: AnyLayout) -> Mask:
    """Query t sees keys 0..t of its sentence. Padding stands to the right of all real rows, so none of them sees it."""
    return Mask(causal=True, flat=(layout, layout) if isinstance(layout, FlatLayout) else None)


def strictly_causal_mask(layout: AnyLayout) -> Mask:
    """Query t sees keys 0..t - 1 of its sentence, and the first query, before which there is none, itself."""
    return Mask(causal=True, strict=True, flat=(layout, layout) if isinstance(layout, FlatLayout) else None)
