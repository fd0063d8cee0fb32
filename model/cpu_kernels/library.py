"""Loops of a decoding step that are slow in torch with few queries for each sentence, compiled by numba.

Each loop has its equation in torch (`attention/explicit_attention.py`, `attention/kv_cache.py`,
`attention/relative_positions.py`, `layers/log_probs.py`, `layers/normalization.py`, `transformer/decoder_state.py`,
`pipeline/decoding/search/top_k.py`), which is used if numba is not installed; a test checks that the two are equal. The
result of a row depends on that row only, and is computed in the same order in any batch. All loops are collected here.
"""

from tfm.model.cpu_kernels.decode_attention import allocate_slots, attend, attend_bf16, list_allowed_keys, write_slots
from tfm.model.cpu_kernels.jit import UNROLL_FACTOR
from tfm.model.cpu_kernels.layer_norm import add_and_norm, add_and_norm_bf16, layer_norm
from tfm.model.cpu_kernels.log_softmax_topk import (
    list_unpruned_hypotheses,
    log_softmax,
    topk_of_bf16_logits,
    topk_of_logits,
)
from tfm.model.cpu_kernels.transformer_layers import rotate_rows

__all__ = [
    "UNROLL_FACTOR",
    "add_and_norm",
    "add_and_norm_bf16",
    "allocate_slots",
    "attend",
    "attend_bf16",
    "layer_norm",
    "list_allowed_keys",
    "list_unpruned_hypotheses",
    "log_softmax",
    "rotate_rows",
    "topk_of_bf16_logits",
    "topk_of_logits",
    "write_slots",
]
