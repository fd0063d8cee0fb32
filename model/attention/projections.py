"""The projections of an attention: rows to queries, keys and values side by side, and ways to do with fewer of them.

Legend: N rows · D width · H heads · G heads of keys and values · K width of a head's queries and keys · V width of its
values · P parts.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tfm.model.layers.linear import Linear


class IdentityProjection(nn.Module):
    """x side by side P times: queries, keys and values without a projection.

    Args:
        num_copies: P.
    """

    def __init__(self, num_copies: int) -> None:
        super().__init__()
        self.num_copies = num_copies

    def forward(self, rows: Tensor) -> Tensor:
        """(N, D) -> (N, P D)."""
        return rows.repeat(1, self.num_copies)


class SharedKeyValueProjection(nn.Module):
    """[W_q x ;] W_k x ; W_k x: the values are the keys, which then need no projection of their own.

    Args:
        product: D -> [H K +] G K.
        key_width: G K.
    """

    def __init__(self, product: Linear, key_width: int) -> None:
        super().__init__()
        self.product, self.key_width = product, key_width

    def forward(self, rows: Tensor) -> Tensor:
        """(N, D) -> (N, [H K +] 2 G K)."""
        projected = self.product(rows)
        return torch.cat([projected, projected[..., -self.key_width :]], dim=-1)


Projection = Linear | IdentityProjection | SharedKeyValueProjection


def make_projection(dim: int, heads: Sequence[tuple[int, int]], compute_dtype: torch.dtype) -> Linear:
    """Return a linear layer from D to the sum of H K of some (H, K), side by side.

    Args:
        dim: D.
        heads: number and width (H, K) of the heads of each part; each part is Glorot-initialized by its own fan-out.
        compute_dtype: precision of the operands of matrix products in training.
    """
    widths = [number * width for number, width in heads]
    linear = Linear(dim, sum(widths), compute_dtype=compute_dtype, num_parts=len(widths))
    if len(set(widths)) > 1:
        for part in torch.split(linear.weight.detach(), widths):
            nn.init.xavier_uniform_(part)
    return linear


def make_identity_projection(
    dim: int, heads: Sequence[tuple[int, int]], compute_dtype: torch.dtype
) -> IdentityProjection:
    """Return the parts without a projection, of the arguments of `make_projection`: each H K is D."""
    return IdentityProjection(len(heads))


def make_shared_key_value_projection(
    dim: int, heads: Sequence[tuple[int, int]], compute_dtype: torch.dtype
) -> Projection:
    """Return a projection without the last part, the values, which are the keys; one of queries alone is unchanged.

    Args:
        dim: D.
        heads: number and width (H, K) of the heads of each part.
        compute_dtype: precision of the operands of matrix products in training.
    """
    if len(heads) == 1:
        return make_projection(dim, heads, compute_dtype)
    number, width = heads[-2]
    return SharedKeyValueProjection(make_projection(dim, heads[:-1], compute_dtype), number * width)


ProjectionFactory = Callable[[int, Sequence[tuple[int, int]], torch.dtype], Projection]
VALUE_PROJECTIONS: dict[str, ProjectionFactory] = {
    "projection": make_projection,
    "keys": make_shared_key_value_projection,
}
"""By name: (width of the rows, heads of each part, precision) -> the projection of queries, keys and values."""
