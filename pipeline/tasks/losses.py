"""The output layer and its label-smoothed cross-entropy as one function that never stores all logits.

CE(h, y) = -sum_v q_v log softmax(h W^T)_v,   q = (1 - eps) onehot(y) + eps / V   (as torch defines it)

With p = softmax(h W^T), z_y = h . W_y and mean(z) = h . mean(W):
    CE = -log p_y + eps (z_y - mean(z))
    dCE/dz = p - q,   dCE/dh = (p - q) W,   dCE/dW = (p - q)^T h
Gradients are computed in the forward pass, chunk by chunk. Products may be in bf16. The operand rounded for them is p
- q, never p: for a confident model p_y is near 1, and rounding p_y would lose 1 - p_y. The targets' own part,
(p_y - q_y) W_y, is not rounded at all.

An adaptive softmax (`model.adaptive`) has such a loss for its head, over all rows, and one for each tail, over the
rows whose target is in it. Smoothing would need every tail for every row.
Legend: N rows · E width · V vocabulary.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfm.model.layers.adaptive_softmax import AdaptiveSoftmax
from tfm.model.layers.linear import LOW_PRECISION_DTYPES, Linear, pad_rows

CHUNK_ROWS = 512
CPU_CACHE_LOGIT_ROWS = 64
"""Rows whose logits stay in a CPU's cache between two operations."""
GPU_CHUNK_LOGITS = 1 << 26
"""Logits of a chunk on a GPU, which has memory, and to which every operation, and every sum of gradients, is dear."""
MIN_PROBABILITY = 1e-37  # a probability that underflowed still has a finite logarithm


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        dtype: torch.dtype,
        row_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        low_weight = weight.to(dtype)
        target_weights = weight.index_select(0, targets)
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        target_probs = hidden.new_empty(len(hidden), 1)
        rows = pad_rows(hidden, dtype)
        on_cpu = hidden.device.type == "cpu"
        num_rows = CHUNK_ROWS if on_cpu else max(CHUNK_ROWS, GPU_CHUNK_LOGITS // len(weight))
        make_gradients = _logit_gradients_by_blocks if on_cpu else _logit_gradients
        memory = rows.new_empty(min(num_rows, len(rows)), len(weight))
        for first in range(0, len(hidden), num_rows):
            chunk, low_hidden = slice(first, min(first + num_rows, len(hidden))), rows[first : first + num_rows]
            logits = torch.mm(low_hidden, low_weight.t(), out=memory[: len(low_hidden)])
            target_probs[chunk] = make_gradients(logits[: chunk.stop - first], targets[chunk], smoothing, hidden.dtype)
            grad_hidden[chunk] = (logits @ low_weight)[: chunk.stop - first]
            grad_weight += logits.t() @ low_hidden
        of_chosen = target_probs - (1 - smoothing + smoothing / len(weight))
        grad_hidden.addcmul_(of_chosen, target_weights)
        grad_weight.index_add_(0, targets, hidden * of_chosen)
        log_p = target_probs.squeeze(1).clamp_min(MIN_PROBABILITY).log()
        nll = -(log_p if row_mask is None else log_p * row_mask).sum()
        total = nll + smoothing * (hidden * (target_weights - weight.mean(0))).sum()
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None, None, None, None


def _logit_gradients(logits: Tensor, targets: Tensor, smoothing: float, dtype: torch.dtype) -> Tensor:
    """Turn logits (n, V) into p - q, computed in `dtype`, and 0 for the targets; return p of the targets (n, 1)."""
    p = torch.softmax(logits, -1, dtype=dtype)
    target_probs = p.gather(1, targets[:, None])
    torch.sub(p, smoothing / logits.shape[1], out=logits).scatter_(1, targets[:, None], 0.0)
    return target_probs


def _logit_gradients_by_blocks(logits: Tensor, targets: Tensor, smoothing: float, dtype: torch.dtype) -> Tensor:
    """Do as `_logit_gradients`, a few rows at a time."""
    target_probs, memory = logits.new_empty(len(logits), 1, dtype=dtype), None
    if logits.dtype != dtype:
        memory = logits.new_empty(CPU_CACHE_LOGIT_ROWS, logits.shape[1], dtype=dtype)
    for first in range(0, len(logits), CPU_CACHE_LOGIT_ROWS):
        low, target_ids = (
            logits[first : first + CPU_CACHE_LOGIT_ROWS],
            targets[first : first + CPU_CACHE_LOGIT_ROWS, None],
        )
        z = low if memory is None else memory[: len(low)].copy_(low)
        p = torch.softmax(z, -1, out=z)
        target_probs[first : first + CPU_CACHE_LOGIT_ROWS] = p.gather(1, target_ids)
        if smoothing:
            p.sub_(smoothing / logits.shape[1])
        p.scatter_(1, target_ids, 0.0)
        if memory is not None:
            low.copy_(p)
    return target_probs


def linear_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    smoothing: float,
    compute_dtype: torch.dtype,
    row_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the sums over rows of the smoothed cross-entropy (differentiable) and of -log p(target).

    Args:
        hidden: (N, E).
        weight: (V, E).
        targets: (N,).
        smoothing: eps.
        compute_dtype: precision of the products, if lower.
        row_mask: (N,), 1 where a row counts, 0 where it is filler; None if all count.
    """
    if row_mask is not None:
        hidden = hidden * row_mask[:, None]  # a row of zeros adds nothing to any gradient but its own, which this drops
    dtype = compute_dtype if compute_dtype in LOW_PRECISION_DTYPES else hidden.dtype
    return _LinearCrossEntropy.apply(hidden, weight, targets, smoothing, dtype, row_mask)  # type: ignore[no-untyped-call,no-any-return]


def output_loss(
    output: nn.Module, hidden: Tensor, targets: Tensor, *, smoothing: float, row_mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the sums over rows of the smoothed cross-entropy (differentiable) and of -log p(target), by any output
    layer.

    Args:
        output: the output layer.
        hidden: (N, E).
        targets: (N,).
        smoothing: eps.
        row_mask: (N,), 1 where a row counts, 0 where it is filler; None if all count.
    """
    return LOSS_BY_OUTPUT_LAYER[type(output)](output, hidden, targets, smoothing, row_mask)


def with_bias_column(output: Linear, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """The weight (V, E) and hidden rows (N, E), each with one more column if there is a bias, so that logits are one
    product: W h + b = [W ; b] [h ; 1].
    """
    if output.bias is None:
        return output.weight, hidden
    weight = torch.cat([output.weight, output.bias.unsqueeze(1)], dim=1)
    return weight, torch.cat([hidden, hidden.new_ones(len(hidden), 1)], dim=1)


def _linear_loss(
    output: Linear, hidden: Tensor, targets: Tensor, smoothing: float, row_mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    weight, hidden = with_bias_column(output, hidden)
    dtype = output.compute_dtype
    return linear_cross_entropy(hidden, weight, targets, smoothing=smoothing, compute_dtype=dtype, row_mask=row_mask)


def _adaptive_loss(
    output: AdaptiveSoftmax, hidden: Tensor, targets: Tensor, smoothing: float, row_mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the loss of an adaptive softmax; each tail is computed only for the rows whose target lies in it.

    Reads from the device how many these are. Raises ValueError for smoothing, where there are tails.
    """
    if smoothing and output.cutoffs:
        raise ValueError("label smoothing asks an adaptive softmax for all that it leaves out: smoothing must be 0")
    dtype, cluster = output.words.compute_dtype, output.find_cluster(targets)
    in_head = torch.where(cluster > 0, len(output.words.weight) + cluster - 1, targets)
    total, nll = linear_cross_entropy(
        hidden, output.head_weight(), in_head, smoothing=smoothing, compute_dtype=dtype, row_mask=row_mask
    )
    if not output.cutoffs:
        return total, nll
    if row_mask is not None:
        cluster = torch.where(row_mask > 0, cluster, 0)  # filler enters no tail
    first, *sizes = cluster.bincount(minlength=len(output.cutoffs) + 1).tolist()
    order = cluster.argsort(stable=True)[first:]
    parts = (torch.split(each[order], sizes) for each in (hidden, targets))
    for rows, tail_targets, tail, begin in zip(*parts, output.iterate_tails(), output.cutoffs, strict=True):
        tail_sums = linear_cross_entropy(
            tail.project(rows), tail.words.weight, tail_targets - begin, smoothing=0.0, compute_dtype=dtype
        )
        total, nll = total + tail_sums[0], nll + tail_sums[1]
    return total, nll


LOSS_BY_OUTPUT_LAYER: dict[type[nn.Module], Callable[..., tuple[Tensor, Tensor]]] = {
    Linear: _linear_loss,
    AdaptiveSoftmax: _adaptive_loss,
}
"""By the kind of output layer: (output, hidden, targets, smoothing, counts) -> as `output_loss`."""
