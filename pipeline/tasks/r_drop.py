"""R-Drop (Liang et al. 2021): a batch is read twice, with other dropout each time, and both are to say the same.

    L_KL  = (KL(p1 || p2) + KL(p2 || p1)) / 2           (eq. 2)
    L_NLL = -log p1(y) - log p2(y)                      (eq. 3)
    L     = L_NLL + alpha L_KL                          (eq. 4)

The loss here is L / 2, so that it is as large as that of one pass, and equals it where both say the same; the ratio of
its parts, which alpha sets, is the paper's. With label smoothing, the smoothed cross-entropies stand for L_NLL. With
d = log p1 - log p2 and logits z1, z2, KL(p1 || p2) + KL(p2 || p1) = sum_v (p1 - p2)_v d_v = J, and

    dJ/dz1 = p1 (d - KL(p1 || p2)) + p1 - p2,     dJ/dz2 = p2 (-d - KL(p2 || p1)) + p2 - p1

Output layer and loss are one function, chunk by chunk, as in `losses.py`; the rules of rounding there hold here.
Legend: N rows · E width · V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from tfm.model.layers.adaptive_softmax import AdaptiveSoftmax, OutputLayer
from tfm.model.layers.linear import LOW_PRECISION_DTYPES, pad_rows
from tfm.pipeline.tasks.losses import CHUNK_ROWS, with_bias_column


class _TwoCrossEntropies(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        alpha: float,
        dtype: torch.dtype,
        counts: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        passes, low_weight = (first, second), weight.to(dtype)
        low_passes = [pad_rows(each, dtype) if dtype != each.dtype else each for each in passes]
        grad_passes, grad_weight = [torch.empty_like(each) for each in passes], torch.zeros_like(weight)
        target_errors = [first.new_empty(len(first), 1) for _ in passes]
        cost, nll = first.new_empty(len(first)), first.new_empty(len(first))
        for begin in range(0, len(first), CHUNK_ROWS):
            chunk, target_ids = slice(begin, begin + CHUNK_ROWS), targets[begin : begin + CHUNK_ROWS, None]
            low = [each[chunk] for each in low_passes]
            log_p = [(each @ low_weight.t()).to(first.dtype).log_softmax(-1) for each in low]
            size = len(target_ids)
            errors, divergence = _logit_gradients(log_p, smoothing, alpha)
            first_log_p, second_log_p = (each[:size] for each in log_p)
            nll[chunk] = -(first_log_p.gather(1, target_ids) + second_log_p.gather(1, target_ids)).squeeze(1) / 2
            cost[chunk] = (1 - smoothing) * nll[chunk] + alpha / 4 * divergence[:size]
            if smoothing:
                cost[chunk] -= smoothing * (first_log_p.mean(1) + second_log_p.mean(1)) / 2
            for number, error in enumerate(errors):
                target_error = error[:size].gather(1, target_ids).sub_((1 - smoothing) / 2)
                error[:size].scatter_(1, target_ids, 0.0)
                error[size:] = 0.0  # rows that only fill up
                low_error = error.to(dtype)
                target_errors[number][chunk] = target_error
                grad_passes[number][chunk] = (low_error @ low_weight)[:size]
                grad_weight += low_error.t() @ low[number]
        target_weights = weight.index_select(0, targets)
        for hidden, grad_hidden, target_error in zip(passes, grad_passes, target_errors, strict=True):
            grad_hidden.addcmul_(target_error, target_weights)
            grad_weight.index_add_(0, targets, hidden * target_error)
        ctx.save_for_backward(*grad_passes, grad_weight)
        total, nll = ((each if counts is None else each * counts).sum() for each in (cost, nll))
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_first, grad_second, grad_weight = ctx.saved_tensors
        return grad_first * grad, grad_second * grad, grad_weight * grad, None, None, None, None, None


def _logit_gradients(log_p: list[Tensor], smoothing: float, alpha: float) -> tuple[list[Tensor], Tensor]:
    """The gradients by both logits (rows, V), but for (1 - smoothing) / 2 at the target; and J (rows,)."""
    first, second = (each.exp() for each in log_p)
    log_ratio, difference = log_p[0] - log_p[1], first - second
    first_kl, second_kl = ((p * log_ratio).sum(1, keepdim=True) for p in (first, second))  # KL(p1 || p2), -KL(p2 || p1)
    j = (difference * log_ratio).sum(1)
    uniform = smoothing / log_p[0].shape[1]
    grad_first = ((log_ratio - first_kl) * first).add_(difference).mul_(alpha / 4)
    grad_second = ((second_kl - log_ratio) * second).sub_(difference).mul_(alpha / 4)
    return [
        grad_first.add_(first, alpha=0.5).sub_(uniform / 2),
        grad_second.add_(second, alpha=0.5).sub_(uniform / 2),
    ], j


def two_pass_loss(
    output: OutputLayer,
    first_hidden: Tensor,
    second_hidden: Tensor,
    targets: Tensor,
    *,
    smoothing: float,
    alpha: float,
    counts: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the sums over rows of the loss of two passes (differentiable), and of the mean of their -log p(target).

    Args:
        output: the output layer.
        first_hidden: (N, E), its input in the first pass.
        second_hidden: (N, E), its input in the second pass.
        targets: (N,).
        smoothing: eps of label smoothing.
        alpha: the factor of L_KL.
        counts: (N,), 1 where a row counts, 0 where it is filler; None if all count.

    Raises:
        ValueError: the output layer is an adaptive softmax with tails.
    """
    if isinstance(output, AdaptiveSoftmax) and output.cutoffs:
        raise ValueError("R-Drop asks an adaptive softmax for all that it leaves out: it needs the full softmax")
    layer = output.words if isinstance(output, AdaptiveSoftmax) else output
    (weight, first_hidden), (_, second_hidden) = (
        with_bias_column(layer, each) for each in (first_hidden, second_hidden)
    )
    if counts is not None:
        first_hidden, second_hidden = (each * counts[:, None] for each in (first_hidden, second_hidden))
    dtype = layer.compute_dtype if layer.compute_dtype in LOW_PRECISION_DTYPES else first_hidden.dtype
    inputs = first_hidden, second_hidden, weight, targets, smoothing, alpha, dtype, counts
    return _TwoCrossEntropies.apply(*inputs)  # type: ignore[no-untyped-call,no-any-return]
