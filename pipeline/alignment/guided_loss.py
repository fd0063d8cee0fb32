"""The loss by which one head of cross-attention learns to align (Garg et al. 2019, "Jointly Learning to Align").

    L_a = - sum over t, s of p(t, s) log A(t, s),   p(t, s) = 1 / |links of piece t|   of the links (t, s) of a piece

A is the attention of the head, p the alignment that is wanted; a piece without links counts nothing. L_a is added to
the loss of the translation with a weight, so that an update divides both by its tokens. The paper's further decoder
pass, in which the head reads the whole target and not only what is before it, is left out.
Legend: B sentences · H heads · T pieces of the target · S pieces of the source · K width of a head.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tfm.data.batching.batches import PairBatch
from tfm.model.attention.explicit_attention import ExplicitAttention, add_optional_biases, repeat_kv
from tfm.model.masks import Mask
from tfm.pipeline.alignment.piece_links import PieceLinks
from tfm.pipeline.attention_page.forward_passes import FORWARD_SPECS
from tfm.pipeline.attention_page.recorder import attention_modules, to_explicit_attention
from tfm.pipeline.config import GuidedAlignmentConfig
from tfm.pipeline.tasks.task import LossSums


@dataclass(frozen=True)
class GuidedAlignmentLoss:
    """The supervision of one head by the links of training pairs.

    links: of each row of the training split. layer: from 1.
    """

    links: PieceLinks
    config: GuidedAlignmentConfig
    layer: int

    def add_alignment_loss(self, model: nn.Module, batch: PairBatch, compute: Callable[[], LossSums]) -> LossSums:
        """Return the loss that `compute` returns, with that of the alignment; the mean where it runs several passes.

        Args:
            model: the network.
            batch: the batch that is read.
            compute: runs the network over the batch.
        """
        passes: list[Tensor] = []
        mix = cross_attention_of_layer(model, self.layer)
        equation = to_explicit_attention(mix)

        def record_log_attention(_: nn.Module, inputs: tuple[Any, ...]) -> None:
            query, key, mask = inputs[0], inputs[1], inputs[3]
            passes.append(log_attention(equation, query, key, mask, self.config.head - 1))

        handle = mix.register_forward_pre_hook(record_log_attention)
        try:
            loss_sums = compute()
        finally:
            handle.remove()
        if not passes:  # a layer that a batch leaves out (model.dropout.depth)
            return loss_sums
        total = torch.stack([self.loss(each, batch) for each in passes]).mean()
        return replace(loss_sums, sum=loss_sums.sum + self.config.weight * total)

    def loss(self, log_weights: Tensor, batch: PairBatch) -> Tensor:
        """Return L_a of a batch, summed.

        Args:
            log_weights: (B, T, S), log A.
            batch: whose rows have links.
        """
        pair, target, source = self.links.links_of_rows(batch.rows)
        shares = 1 / np.bincount(pair * log_weights.shape[1] + target)[pair * log_weights.shape[1] + target]
        device, dtype = log_weights.device, log_weights.dtype
        indices = [torch.from_numpy(each).to(device) for each in (pair, target + self.config.is_shifted, source)]
        loss: Tensor = -(log_weights[tuple(indices)] * torch.from_numpy(shares).to(device, dtype)).sum()
        return loss


def cross_attention_of_layer(model: nn.Module, layer: int) -> Any:
    """Return the inner attention of the cross-attention of a Transformer's layer, from 1."""
    kind_of = FORWARD_SPECS["transformer"].kind
    crossing = [(module, slot) for name, module, slot, _ in attention_modules(model) if kind_of(name) == "cross"]
    module, slot = crossing[layer - 1]
    return module.get_submodule(slot)


def log_attention(equation: ExplicitAttention, query: Tensor, key: Tensor, mask: Mask, head: int) -> Tensor:
    """Return log A (B, T, S) of one head, whichever kernel computes the attention.

    Args:
        equation: the attention written out.
        query: (B, H, T, K).
        key: (B, G, S, K).
        mask: the keys that each query may attend to.
        head: from 0.
    """
    key = repeat_kv(key, query)
    if next(equation.score.parameters(), None) is None:  # a score without weights of its heads
        query, key, head = query[:, head : head + 1], key[:, head : head + 1], 0
    logits = equation.score(query, key)
    if (bias := add_optional_biases(None, mask.bias(query.shape[2], key.shape[2], query))) is not None:
        logits = logits + bias
    log_weights: Tensor = logits.log_softmax(-1)[:, head]
    return log_weights
