"""Self-attention of short sentences in training, from queries, keys and values side by side: few copies, few calls.

For a step of few tokens calls and copies take as long as products. Heads are laid out once for all three, rotary
positions turn queries and keys in one product, and gradients are written to where the three stand side by side.
Legend: B sentences · H heads · T tokens · K width of a head.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tfm.model.attention.explicit_attention import attention_weights, write_attention_gradients


class PackedAttention(torch.autograd.Function):
    """softmax(Q K^T / sqrt(K) + bias) V of [Q K V] side by side, and its gradient (`ShortAttention` of views of them).

    With rotations Q and K are turned first; the gradient of a turned pair is turned back by the conjugate.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, heads: int, rotations: Tensor | None, bias: Tensor | None) -> Tensor:
        """Return the mixed values, and save the tensors that the gradient needs.

        Args:
            ctx: the context of autograd.
            projected: queries, keys and values (B, T, 3 H K).
            heads: H.
            rotations: e^(i angle) of each pair of a head's features, complex (T, K / 2); None for no turn.
            bias: added to the logits, broadcastable to (B, H, T, T); None for nothing.

        Returns:
            (B, T, H K).
        """
        batch, length, width = projected.shape
        head_dim = width // 3 // heads
        packed = projected.view(batch, length, 3, heads, head_dim).permute(2, 0, 3, 1, 4).contiguous()
        if rotations is not None:
            _turn(packed[:2], rotations)
        query, key, value = packed.view(3, batch * heads, length, head_dim).unbind(0)
        weights = attention_weights(query, key, bias, heads)
        ctx.save_for_backward(packed, weights, rotations)
        return (weights @ value).view(batch, heads, length, head_dim).transpose(1, 2).reshape(batch, length, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        packed, weights, rotations = ctx.saved_tensors
        _, batch, heads, length, head_dim = packed.shape
        grad = grad.view(batch, length, heads, head_dim).transpose(1, 2).reshape(-1, length, head_dim)
        grad_packed = torch.empty_like(packed)
        sides = (each.view(3, batch * heads, length, head_dim).unbind(0) for each in (packed, grad_packed))
        write_attention_gradients(grad, weights, *sides)
        if rotations is not None:
            _turn(grad_packed[:2], rotations.conj())
        return grad_packed.permute(1, 3, 0, 2, 4).reshape(batch, length, -1), None, None, None


def _turn(heads: Tensor, rotations: Tensor) -> None:
    """Turn pairs of features (.., T, K) in place."""
    torch.view_as_complex(heads.view(*heads.shape[:-1], -1, 2)).mul_(rotations)
