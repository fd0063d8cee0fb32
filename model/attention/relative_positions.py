"""Relative positions in attention: schemes that depend only on the distance j - i between a key and a query.

Legend: B sentences · H heads · T queries · S keys · K width of a head's queries and keys, V of its values · D = H K ·
R distances.
"""

import math

import torch
from torch import Tensor, nn

from tfm.model.config_tables import RotaryConfig

MAX_RELATIVE_DISTANCE = 16
DEFAULT_ROTARY = RotaryConfig()


class AttentionPositions(nn.Module):
    """Position hooks of self-attention: four methods, neutral here.

    Queries stand at query_positions (T,), keys at key_positions (S,); or at (B, T) and (B, S), where sentences differ.
    needs_weights: whether the attention weights have to be written out, as `relative_values` needs them.
    """

    needs_weights = False

    @property
    def has_bias(self) -> bool:
        """Whether anything is added to the logits."""
        return type(self).relative_bias is not AttentionPositions.relative_bias

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Turn queries or keys (B, H, T, K) by their positions (T,); the shape stays."""
        return heads

    def rotate_values(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Change values (B, H, T, V) by their positions (T,); the shape stays."""
        return heads

    def relative_bias(
        self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor | None:
        """Return the bias of the logits, broadcastable to (B, H, T, S); None for nothing.

        Args:
            query: (B, H, T, K).
            key: (B, H, S, K).
            query_positions: (T,), or (B, T) where sentences differ.
            key_positions: (S,), or (B, S) where sentences differ.
        """
        return None

    def relative_values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """Return the term added to the mixed values (B, H, T, V); None for nothing.

        Args:
            weights: attention weights (B, H, T, S).
            query_positions: (T,), or (B, T) where sentences differ.
            key_positions: (S,), or (B, S) where sentences differ.
        """
        return None


class Rotary(AttentionPositions):
    """Rotary positions: pairs x_2i, x_2i+1 of queries and keys are turned by an angle   (Su et al. 2021, eq. 34).

    The angle is pos f_i, f_i = base^(-2i/K), or slower (`scale_rope_frequencies`). A pair is a complex number, which
    e^(i pos f_i) turns: one product, where cosines and sines of strided halves take many.

    Args:
        heads: H.
        key_dim: K.
        value_dim: V.
        rotary: base and scaling of the frequencies.
    """

    def __init__(self, heads: int, key_dim: int, value_dim: int, rotary: RotaryConfig = DEFAULT_ROTARY) -> None:
        super().__init__()
        self.rotary = rotary

    def frequencies(self, heads: Tensor) -> Tensor:
        """Return f_i (K / 2,) of queries or keys (..., K), in their type and on their device."""
        return scale_rope_frequencies(_inverse_frequencies(heads.shape[-1], heads, self.rotary.base), self.rotary)

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        wide_heads = heads.float() if heads.itemsize < 4 else heads  # there are no complex numbers of bf16
        rotations = self.rotations(wide_heads, positions)
        rotated = as_complex(wide_heads) * (rotations.unsqueeze(1) if positions.dim() == 2 else rotations)
        return torch.view_as_real(rotated).flatten(-2).to(heads.dtype)

    def rotations(self, heads: Tensor, positions: Tensor) -> Tensor:
        """Return e^(i pos f_i) of positions (..), complex (.., K / 2), for queries or keys (.., K)."""
        angles = positions.unsqueeze(-1) * self.frequencies(heads)
        return torch.polar(torch.ones_like(angles), angles)


def as_complex(x: Tensor) -> Tensor:
    """Return x (..., K) as complex numbers (..., K / 2), x_2i + i x_2i+1: a view, where x lies in memory as complex
    numbers have to.
    """
    is_aligned = x.stride(-1) == 1 and not any(number % 2 for number in (x.storage_offset(), *x.stride()[:-1]))
    aligned = x if is_aligned else x.clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(aligned.view(*x.shape[:-1], -1, 2))


def scale_rope_frequencies(frequencies: Tensor, rotary: RotaryConfig) -> Tensor:
    """Scale frequencies f_i (K / 2,) to f_i / s, s the factor (Chen et al. 2023); with an original length L, as Llama
    3.1:

    w f_i + (1 - w) f_i / s        w: from 0 to 1 while the turns within L, L f_i / 2 pi, go from low to high.
    """
    slow = frequencies / rotary.factor
    if rotary.original_length is None:
        return slow
    low, high = rotary.low_frequency_factor, rotary.high_frequency_factor
    rotations = frequencies * (rotary.original_length / (2 * math.pi))
    kept_share = ((rotations - low) / (high - low)).clamp(0, 1)
    return kept_share * frequencies + (1 - kept_share) * slow


class Alibi(AttentionPositions):
    """- m_h |j - i| is added to the logits, with m_h = 2^(-8 h / H) for heads h = 1 .. H   (Press et al. 2022).

    Args:
        heads: H.
        key_dim: K.
        value_dim: V.
        rotary: unused; every scheme is made by the same call.
    """

    def __init__(self, heads: int, key_dim: int, value_dim: int, rotary: RotaryConfig = DEFAULT_ROTARY) -> None:
        super().__init__()
        self.heads = heads

    def relative_bias(self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return - m_h |j - i|, (H, T, S) or (B, H, T, S).

        Args:
            query: (B, H, T, K).
            key: (B, H, S, K).
            query_positions: (T,), or (B, T) where sentences differ.
            key_positions: (S,), or (B, S) where sentences differ.
        """
        slopes = 2.0 ** (torch.arange(1, self.heads + 1, device=query.device, dtype=query.dtype) * (-8 / self.heads))
        return -slopes[:, None, None] * key_distances(query_positions, key_positions).abs()


class Shaw(AttentionPositions):
    """score = q . (k + a_d) / sqrt(K), and a'_d is added to the values; d = j - i, cut at +-16   (Shaw et al. 2018).

    Args:
        heads: H.
        key_dim: K.
        value_dim: V.
        rotary: unused; every scheme is made by the same call.
    """

    needs_weights = True

    def __init__(self, heads: int, key_dim: int, value_dim: int, rotary: RotaryConfig = DEFAULT_ROTARY) -> None:
        super().__init__()
        self.for_keys = nn.Parameter(torch.empty(2 * MAX_RELATIVE_DISTANCE + 1, key_dim))
        self.for_values = nn.Parameter(torch.empty(2 * MAX_RELATIVE_DISTANCE + 1, value_dim))
        nn.init.xavier_uniform_(self.for_keys)
        nn.init.xavier_uniform_(self.for_values)

    def relative_bias(self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return q . a_d / sqrt(K), (B, H, T, S).

        Args:
            query: (B, H, T, K).
            key: (B, H, S, K).
            query_positions: (T,), or (B, T) where sentences differ.
            key_positions: (S,), or (B, S) where sentences differ.
        """
        distance_logits = query @ self.for_keys.t() * query.shape[-1] ** -0.5
        return _gather_by_distance(distance_logits, self._distance_indices(query_positions, key_positions))

    def relative_values(self, weights: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return the sum over keys of weight * a'_d, (B, H, T, V).

        Args:
            weights: attention weights (B, H, T, S).
            query_positions: (T,), or (B, T) where sentences differ.
            key_positions: (S,), or (B, S) where sentences differ.
        """
        rows = self._distance_indices(query_positions, key_positions).expand_as(weights)
        distance_logits = weights.new_zeros(*weights.shape[:3], 2 * MAX_RELATIVE_DISTANCE + 1).scatter_add(
            3, rows, weights
        )
        return distance_logits @ self.for_values

    def _distance_indices(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        return (
            key_distances(query_positions, key_positions).clamp(-MAX_RELATIVE_DISTANCE, MAX_RELATIVE_DISTANCE)
            + MAX_RELATIVE_DISTANCE
        )


class TransformerXLPositions(AttentionPositions):
    """score = ((q + u) . k + (q + v) . W r_d) / sqrt(K), r_d: sinusoids of d = i - j   (Dai et al. 2019, sec. 3.3).

    Args:
        heads: H.
        key_dim: K.
        value_dim: V.
        rotary: unused; every scheme is made by the same call.
    """

    needs_weights = True  # what it adds to the logits is trained, which torch's kernels are slow at

    def __init__(self, heads: int, key_dim: int, value_dim: int, rotary: RotaryConfig = DEFAULT_ROTARY) -> None:
        super().__init__()
        dim = heads * key_dim
        self.weight = nn.Parameter(torch.empty(dim, dim))
        self.u, self.v = (nn.Parameter(torch.zeros(heads, 1, key_dim)) for _ in range(2))
        nn.init.xavier_uniform_(self.weight)

    def relative_bias(self, query: Tensor, key: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Return (u . k + (q + v) . W r_d) / sqrt(K), (B, H, T, S).

        Args:
            query: (B, H, T, K).
            key: (B, H, S, K).
            query_positions: (T,), or (B, T) where sentences differ.
            key_positions: (S,), or (B, S) where sentences differ.
        """
        heads, head_dim = self.u.shape[0], self.u.shape[2]
        distances = -key_distances(query_positions, key_positions)
        if query_positions.dim() == 1:  # they count up: no need to ask a device how far they reach
            farthest = max(len(query_positions), len(key_positions)) - 1
        else:
            farthest = int(distances.abs().max())
        far_to_near = torch.arange(-farthest, farthest + 1, device=query.device)
        angles = far_to_near.unsqueeze(-1) * _inverse_frequencies(heads * head_dim, query)
        sines = torch.cat([angles.sin(), angles.cos()], dim=1)[:, : heads * head_dim]
        distance_logits = (sines @ self.weight.t()).view(-1, heads, head_dim).permute(1, 2, 0)
        logits: Tensor = self.u @ key.transpose(2, 3) + _gather_by_distance(
            (query + self.v) @ distance_logits, distances + farthest
        )
        return logits / math.sqrt(head_dim)


def key_distances(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Return j - i of every query i and key j: (T, S), or (B, 1, T, S) where the positions of sentences differ."""
    distances = key_positions.unsqueeze(-2) - query_positions.unsqueeze(-1)
    return distances if distances.dim() == 2 else distances.unsqueeze(1)


def _gather_by_distance(distance_logits: Tensor, distance_indices: Tensor) -> Tensor:
    """Select from (B, H, T, R) the value of each query and key, by its index among the R: (B, H, T, S)."""
    return distance_logits.gather(3, distance_indices.expand(*distance_logits.shape[:3], distance_indices.shape[-1]))


def _inverse_frequencies(dim: int, like: Tensor, base: float = DEFAULT_ROTARY.base) -> Tensor:
    """Return 1 / base^(2i/D) (D / 2,), in the type and on the device of `like`."""
    return torch.pow(base, torch.arange(0, dim, 2, device=like.device, dtype=like.dtype) / -dim)
