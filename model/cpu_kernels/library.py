"""Loops of a decoding step that are slow in torch with few queries for each sentence, compiled by numba.

Each loop has its equation in torch (`attention/explicit_attention.py`, `attention/kv_cache.py`,
`attention/relative_positions.py`, `layers/log_probs.py`, `layers/normalization.py`, `transformer/decoder_state.py`,
`pipeline/decoding/search/top_k.py`), which is used if numba is not installed; a test checks that the two are equal. The
result of a row depends on that row only, and is computed in the same order in any batch. All loops are collected here.
"""

from tfm.model.cpu_kernels.decode_attention import attend, attend_bf16, list_allowed, take_slots, write
from tfm.model.cpu_kernels.jit import UNROLL
from tfm.model.cpu_kernels.layer_norm import add_and_norm, add_and_norm_low, layer_norm
from tfm.model.cpu_kernels.log_softmax_topk import best_of_logits, best_of_low_logits, log_softmax, next_rows
from tfm.model.cpu_kernels.rotary import turn

__all__ = [
    "UNROLL",
    "add_and_norm",
    "add_and_norm_low",
    "attend",
    "attend_bf16",
    "best_of_logits",
    "best_of_low_logits",
    "layer_norm",
    "list_allowed",
    "log_softmax",
    "next_rows",
    "take_slots",
    "turn",
    "write",
]
