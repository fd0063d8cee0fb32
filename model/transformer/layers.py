"""The layers of the Transformer: attention and feed-forward, each in its residual connection.

Legend: N rows · D width · R hypotheses.
"""

from collections.abc import Callable

from torch import Tensor, nn

from tfm.model.attention.kv_cache import CacheSlots, LayerKVCache
from tfm.model.attention.multi_head import CrossAttention
from tfm.model.layers.feed_forward import FeedForward
from tfm.model.layers.residual import Residual, Sublayer
from tfm.model.layout import AnyLayout
from tfm.model.masks import Mask
from tfm.model.transformer.token_mixing import Mixing


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in its residual; with a causal mask the layer of a decoder-only model.

    Args:
        attention: self-attention, or a replacement that mixes positions.
        feed_forward: the feed-forward layer; None for none.
        residual: () -> a residual connection.
    """

    def __init__(self, attention: Mixing, feed_forward: FeedForward | None, residual: Callable[[], Residual]) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention = residual()
        self.around_feed_forward = None if feed_forward is None else residual()

    def forward(self, rows: Tensor, layout: AnyLayout, mask: Mask, prediction_rows: Tensor | None = None) -> Tensor:
        """Compute the layer.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.
            prediction_rows: (n,) the rows that are asked for, of the last layer those of predictions; None for all.

        Returns:
            Rows (N, D), or (n, D).
        """
        return self._apply_sublayers(rows, lambda x: self.attention(x, layout, mask), prediction_rows)

    def prefill(self, rows: Tensor, layout: AnyLayout, mask: Mask) -> tuple[Tensor, LayerKVCache]:
        """Return the output of `forward`, and the cache with which `step` goes on after these rows.

        Args:
            rows: (N, D).
            layout: the sentences of these rows.
            mask: the rows that each row may see.

        Returns:
            Rows (N, D), and the cache.
        """
        caches = []

        def attend(x: Tensor) -> Tensor:
            mixed, key_value = self.attention.prefill(x, layout, mask)
            caches.append(LayerKVCache.from_kv(*key_value))
            return mixed

        return self._apply_sublayers(rows, attend), caches[0]

    def step(self, rows: Tensor, cache: LayerKVCache, slots: CacheSlots) -> Tensor:
        """Compute one new row a hypothesis.

        Args:
            rows: (R, D).
            cache: the rows so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.

        Returns:
            Rows (R, D).
        """
        return self._apply_sublayers(rows, lambda x: self.attention.step(x, cache, slots))

    def _apply_sublayers(self, rows: Tensor, attend: Sublayer, prediction_rows: Tensor | None = None) -> Tensor:
        rows = self.around_attention(rows, attend)
        if prediction_rows is not None:  # no row sees another from here on
            rows = rows.index_select(0, prediction_rows)
        return rows if self.around_feed_forward is None else self.around_feed_forward(rows, self.feed_forward)


def apply_layers(
    layers: nn.ModuleList, rows: Tensor, layout: AnyLayout, mask: Mask, prediction_rows: Tensor | None
) -> Tensor:
    """Compute one layer after the other.

    Args:
        layers: encoder layers.
        rows: (N, D).
        layout: the sentences of these rows.
        mask: the rows that each row may see.
        prediction_rows: (n,) the rows that are asked for; None for all.

    Returns:
        Rows (N, D), or (n, D).
    """
    for number, layer in enumerate(layers, 1):
        rows = layer(rows, layout, mask, prediction_rows if number == len(layers) else None)
    return rows if layers or prediction_rows is None else rows.index_select(0, prediction_rows)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each in its residual.

    Args:
        attention: self-attention, or a replacement that mixes positions.
        cross_attention: attention to the memory.
        feed_forward: the feed-forward layer; None for none.
        residual: () -> a residual connection.
    """

    def __init__(
        self,
        attention: Mixing,
        cross_attention: CrossAttention,
        feed_forward: FeedForward | None,
        residual: Callable[[], Residual],
    ) -> None:
        super().__init__()
        self.attention, self.cross_attention, self.feed_forward = attention, cross_attention, feed_forward
        self.around_attention, self.around_cross_attention = residual(), residual()
        self.around_feed_forward = None if feed_forward is None else residual()

    def forward(
        self, rows: Tensor, layout: AnyLayout, mask: Mask, memory: Tensor, memory_layout: AnyLayout, memory_mask: Mask
    ) -> Tensor:
        """Compute the layer.

        Args:
            rows: (N, D).
            layout: the layout of the targets.
            mask: the target rows that each target row may see.
            memory: the encoder's output, a row for each source row.
            memory_layout: the layout of the memory.
            memory_mask: the source rows that each target row may attend to.

        Returns:
            Rows (N, D).
        """
        return self._apply_sublayers(
            rows,
            lambda x: self.attention(x, layout, mask),
            lambda x: self.cross_attention(x, layout, memory, memory_layout, memory_mask),
        )

    def step(
        self,
        rows: Tensor,
        cache: LayerKVCache,
        slots: CacheSlots,
        memory_keys_values: tuple[Tensor, Tensor],
        memory_mask: Mask,
    ) -> Tensor:
        """Compute one new row a hypothesis.

        Args:
            rows: (R, D).
            cache: the rows so far; the new ones are written into it.
            slots: the slots of the new rows, and those from which each hypothesis descends.
            memory_keys_values: keys (B, G, S, K) and values (B, G, S, V) of the memory.
            memory_mask: the source rows that may be attended to.

        Returns:
            Rows (R, D).
        """
        return self._apply_sublayers(
            rows,
            lambda x: self.attention.step(x, cache, slots),
            lambda x: self.cross_attention.step(x, memory_keys_values, memory_mask),
        )

    def _apply_sublayers(self, rows: Tensor, attend: Sublayer, attend_memory: Sublayer) -> Tensor:
        rows = self.around_attention(rows, attend)
        rows = self.around_cross_attention(rows, attend_memory)
        return rows if self.around_feed_forward is None else self.around_feed_forward(rows, self.feed_forward)


def find_layers(model: nn.Module) -> list[EncoderLayer | DecoderLayer]:
    """Return the layers of a Transformer, in order."""
    return [each for each in model.modules() if isinstance(each, (EncoderLayer, DecoderLayer))]
