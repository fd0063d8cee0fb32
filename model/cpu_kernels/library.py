"""Loops of a decoding step that are slow in torch with few queries for each sentence, compiled by numba.

Each loop has its equation in torch (`attention/explicit_attention.py`, `attention/kv_cache.py`,
`attention/relative_positions.py`, `layers/log_probs.py`, `layers/normalization.py`, `transformer/decoder_state.py`,
`pipeline/decoding/search/top_k.py`), which is used if numba is not installed; a test checks that the two are equal. The
result of a row depends on that row only, and is computed in the same order in any batch. All loops are collected here.
"""

from tfm.model.cpu_kernels.decode_attention import allocate_slots, attend, attend_bf16, list_allowed, write_slots
from tfm.model.cpu_kernels.jit import UNROLL_FACTOR
from tfm.model.cpu_kernels.layer_norm import add_and_norm, add_and_norm_low, layer_norm
from tfm.model.cpu_kernels.log_softmax_topk import best_of_logits, best_of_low_logits, list_open_rows, log_softmax
from tfm.model.cpu_kernels.rotary import rotate_rows

__all__ = [
    "UNROLL_FACTOR",
    "add_and_norm",
    "add_and_norm_low",
    "allocate_slots",
    "attend",
    "attend_bf16",
    "best_of_logits",
    "best_of_low_logits",
    "layer_norm",
    "list_allowed",
    "list_open_rows",
    "log_softmax",
    "rotate_rows",
    "write_slots",
]
