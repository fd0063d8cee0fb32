"""Loops of a decoding step that torch does slowly where there are few queries a sentence, compiled by numba.

Each has its equation in torch (`attention/inner_attention.py`, `attention/kv_cache.py`, `layers/log_probs.py`,
`layers/normalization.py`, `transformer/decoder_state.py`, `pipeline/decoding/search/top_k.py`), which takes its place
where numba is not installed; a test holds the two equal. A row is computed from that row alone, in the same order
whatever is beside it. Here the loops are gathered.
"""

from tfm.model.cpu_kernels.decode_attention import attend, list_allowed, take_slots, write
from tfm.model.cpu_kernels.jit import AT_ONCE
from tfm.model.cpu_kernels.layer_norm import add_and_norm, layer_norm
from tfm.model.cpu_kernels.log_softmax_topk import best_of_logits, log_softmax

__all__ = [
    "AT_ONCE",
    "add_and_norm",
    "attend",
    "best_of_logits",
    "layer_norm",
    "list_allowed",
    "log_softmax",
    "take_slots",
    "write",
]
