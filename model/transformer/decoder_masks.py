"""The rows of its own text that a decoder's row sees: whole texts by a mask, and step by step by slots of the cache."""

from collections.abc import Callable
from typing import NamedTuple

from tfm.model.attention.kv_cache import CacheSlots
from tfm.model.layout import AnyLayout
from tfm.model.masks import Mask, causal_mask, padding_mask, strictly_causal_mask


class DecoderMask(NamedTuple):
    """A mask of self-attention in a decoder.

    make_text_mask: the layout of texts that are read at once -> their mask. mask_step: the slots that a new row and
    those before it take -> the same slots, with the mask of that row.
    """

    make_text_mask: Callable[[AnyLayout], Mask]
    mask_step: Callable[[CacheSlots], CacheSlots]


def keep_slots_unchanged(slots: CacheSlots) -> CacheSlots:
    """The slots as they are: a row sees those before it, and itself."""
    return slots


CAUSAL_DECODER_MASK = DecoderMask(causal_mask, keep_slots_unchanged)
"""Each row sees those before it, and itself."""
DECODER_MASKS: dict[str, DecoderMask] = {
    "causal": CAUSAL_DECODER_MASK,
    "strict": DecoderMask(strictly_causal_mask, CacheSlots.with_strict_mask),
    "none": DecoderMask(padding_mask, keep_slots_unchanged),  # a row that is written has no others after it yet
}
"""By name: the rows of a text that each of its rows may see."""
