"""Attention of a recurrent decoder: its states are the queries, the encoder's states keys and values.

Legend: N rows · B sentences · T queries · R hypotheses · H heads · S keys · K width of a head · D width.
"""

from collections.abc import Callable

from torch import Tensor, nn

from tfm.model.attention.explicit_attention import AttentionWeightFunction, ExplicitAttention
from tfm.model.attention.memory import Memory
from tfm.model.attention.multi_head import NO_POSITIONS, merge_heads, split_heads
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import SCORES, AdditiveScore
from tfm.model.layers.dropout import Dropout
from tfm.model.layout import Layout
from tfm.model.masks import padding_mask


class PreprojectedAdditiveScore(AdditiveScore):
    """The additive score with keys already multiplied by W_k: that is done once, not at every decoding step."""

    def project(self, key: Tensor) -> Tensor:
        """(B, H, S, K) -> W_k k, of that shape."""
        return key @ self.for_key

    def forward(self, query: Tensor, projected: Tensor) -> Tensor:
        """(B, H, T, K), W_k k (B, H, S, K) -> logits (B, H, T, S)."""
        inner = (query @ self.for_query).unsqueeze(3) + projected.unsqueeze(2)
        return (inner.tanh() * self.weight.mT.unsqueeze(1)).sum(-1)


MEMORY_SCORES: dict[str, Callable[[int, int], nn.Module]] = {**SCORES, "additive": PreprojectedAdditiveScore}
"""By name: (heads, head_dim) -> a score of queries and the keys that `MemoryAttention.project_memory` gives."""


class MemoryAttention(nn.Module):
    """context(q) = sum_s a_s h_s, a = softmax over s of score(q, h_s), h_s: the encoder's state after source row s.

    Heads are slices of query and h; the score alone has further projections.

    Args:
        heads: H.
        fit: projects h to the width of the query.
        score: (query, key) -> logits (B, H, T, S).
        dropout: applied to the attention weights.
        lookup: logits -> attention weights.
    """

    def __init__(
        self, heads: int, *, fit: nn.Module, score: nn.Module, dropout: Dropout, lookup: AttentionWeightFunction
    ) -> None:
        super().__init__()
        self.heads, self.fit = heads, fit
        self.mix = ExplicitAttention(score, AttentionPositions(), dropout, lookup)

    def project_memory(self, rows: Tensor, layout: Layout) -> Memory:
        """The encoder's output (N, D) as keys and values: computed once a sentence."""
        padded, score = layout.pad(self.fit(rows)), self.mix.score
        values = padded.view(*padded.shape[:2], self.heads, -1).transpose(1, 2).contiguous()
        keys = score.project(values) if isinstance(score, PreprojectedAdditiveScore) else values
        return Memory(((keys, values),), padding_mask(layout))

    def forward(self, queries: Tensor, memory: Memory) -> Tensor:
        """Return the contexts (B, T, D) of queries (B, T, D)."""
        (query,) = split_heads(queries, 1, self.heads)
        ((keys, values),) = memory.keys_values
        return merge_heads(self.mix(query, keys, values, memory.mask, NO_POSITIONS, NO_POSITIONS))

    def step(self, queries: Tensor, memory: Memory) -> Tensor:
        """Return the contexts (R, D) of queries (R, D): the hypotheses of a sentence are further queries over its one
        memory.
        """
        contexts: Tensor = self(queries.view(memory.batch_size, -1, queries.shape[1]), memory)
        return contexts.flatten(0, 1)
