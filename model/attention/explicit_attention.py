"""Attention written out, softmax(score(Q, K) + bias) V, and its gradient for short sentences.

Legend: B sentences · H heads · G heads of keys and values, each shared by H / G heads · T queries · S keys ·
K width of a head's queries and keys · V width of its values.
"""

from collections.abc import Callable
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.layers.dropout import Dropout
from tfm.model.masks import Mask

MIN_LOGITS_TO_PAD_SOFTMAX = 4096
MIN_KEYS_FOR_TORCH_SOFTMAX = 16


class AttentionFunction(Protocol):
    """Inner attention of all heads.

    Args:
        query: (B, H, T, K).
        key: (B, G, S, K); each of the G heads is shared by H / G heads of queries.
        value: (B, G, S, V).
        mask: the keys that each query may attend to.
        query_positions: (T,), or (B, T) where sentences differ.
        key_positions: (S,), or (B, S) where sentences differ.

    Returns:
        The mixed values (B, H, T, V).
    """

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor: ...


def softmax_weights(logits: Tensor) -> Tensor:
    """Return exp(x) / sum of exp(x), over the last dimension.

    On a CPU torch's is ten times as slow for fewer than 16 keys: they are topped up with -inf, which adds nothing.
    """
    num_keys = logits.shape[-1]
    if (
        num_keys >= MIN_KEYS_FOR_TORCH_SOFTMAX
        or logits.numel() < MIN_LOGITS_TO_PAD_SOFTMAX
        or logits.device.type != "cpu"
    ):
        return logits.softmax(-1)
    return F.pad(logits, (0, MIN_KEYS_FOR_TORCH_SOFTMAX - num_keys), value=float("-inf")).softmax(-1)[..., :num_keys]


def hard_attention_weights(logits: Tensor) -> Tensor:
    """Return 1 at the largest number of the last dimension, the first of equal ones, and 0 elsewhere.

    As that has no gradient, it takes the softmax's: onehot(argmax x) + p - sg(p), p = softmax(x), where sg(p) is p
    without a gradient (the straight-through estimator of Bengio et al. 2013).
    """
    soft = softmax_weights(logits)
    hard_weights = torch.zeros_like(soft).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    return hard_weights + (soft - soft.detach()) if soft.requires_grad else hard_weights


AttentionWeightFunction = Callable[[Tensor], Tensor]
ATTENTION_WEIGHT_FUNCTIONS: dict[str, AttentionWeightFunction] = {
    "soft": softmax_weights,
    "hard": hard_attention_weights,
}
"""By name: logits (.., S) -> attention weights (.., S)."""


class ExplicitAttention(nn.Module):
    """The equation written out: every score, every mask, every position hook, dropout on the weights.

    Args:
        score: (query, key) -> logits (B, H, T, S).
        positions: the hooks of the position scheme.
        dropout: applied to the attention weights.
        lookup: logits -> attention weights.
    """

    def __init__(
        self,
        score: nn.Module,
        positions: AttentionPositions,
        dropout: Dropout,
        lookup: AttentionWeightFunction = softmax_weights,
    ) -> None:
        super().__init__()
        self.score, self.positions, self.dropout = score, positions, dropout
        self.lookup = lookup

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, query_positions: Tensor, key_positions: Tensor
    ) -> Tensor:
        """Return softmax(score(Q, K) + bias) V, with the terms that positions add; arguments as in
        `AttentionFunction`.
        """
        key, value = repeat_kv(key, query), repeat_kv(value, query)
        logits = self.score(query, key)
        position_bias = self.positions.relative_bias(query, key, query_positions, key_positions)
        if (bias := add_optional_biases(position_bias, mask.bias(query.shape[2], key.shape[2], query))) is not None:
            logits = logits + bias
        weights = self.dropout(self.lookup(logits))
        mixed: Tensor = weights @ value
        if (added := self.positions.relative_values(weights, query_positions, key_positions)) is not None:
            mixed = mixed + added
        return mixed


def repeat_kv(heads: Tensor, query: Tensor) -> Tensor:
    """Repeat keys or values (B, G, S, K) for every head of the query (B, H, T, K): (B, H, S, K)."""
    return heads if heads.shape[1] == query.shape[1] else heads.repeat_interleave(query.shape[1] // heads.shape[1], 1)


def add_optional_biases(position_bias: Tensor | None, mask_bias: Tensor | None) -> Tensor | None:
    """Return the sum of the biases of the logits; None for nothing."""
    if position_bias is None or mask_bias is None:
        return mask_bias if position_bias is None else position_bias
    return position_bias + mask_bias


class ShortSequenceAttention(torch.autograd.Function):
    """P V with P = softmax(Q K^T / sqrt(K) + bias), and its gradients:

    dV = P^T dO     dP = dO V^T     dS = P * (dP - sum_s P dP)     dQ = dS K / sqrt(K)     dK = dS^T Q / sqrt(K)

    P is kept, which torch's kernel avoids; where there are few keys that kernel takes twice as long.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None) -> Tensor:
        """Return softmax(Q K^T / sqrt(K) + bias) V, and save the tensors that the gradient needs.

        Args:
            ctx: the context of autograd.
            query: (B, H, T, K).
            key: (B, H, S, K).
            value: (B, H, S, V).
            bias: added to the logits, broadcastable to (B, H, T, S); None for nothing.

        Returns:
            The mixed values (B, H, T, V).
        """
        batch, heads, num_queries, width = query.shape
        query, key, value = (each.reshape(batch * heads, -1, each.shape[3]) for each in (query, key, value))
        logits = query.new_empty(batch, heads, num_queries, key.shape[1])
        logits.copy_(logits.new_zeros(()) if bias is None else bias)
        logits = logits.flatten(0, 1).baddbmm_(query, key.transpose(1, 2), alpha=width**-0.5)
        weights = softmax_weights(logits)
        ctx.save_for_backward(query, key, value, weights)
        return (weights @ value).view(batch, heads, num_queries, -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, weights = ctx.saved_tensors
        batch, heads = grad.shape[:2]
        grad = grad.reshape(batch * heads, -1, grad.shape[3])
        grad_value = weights.transpose(1, 2) @ grad
        grad_weights = grad @ value.transpose(1, 2)
        grad_logits = grad_weights.sub_((grad_weights * weights).sum(-1, keepdim=True)).mul_(weights)
        grad_logits.mul_(query.shape[-1] ** -0.5)
        grad_query, grad_key = grad_logits @ key, grad_logits.transpose(1, 2) @ query
        return (*(grad.view(batch, heads, -1, grad.shape[-1]) for grad in (grad_query, grad_key, grad_value)), None)
