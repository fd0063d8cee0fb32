"""Tasks: how examples become a batch, what the loss is, what is counted in validation.

The training loop knows a task only by these three, so it has no branch on which one it runs.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from data.batches import PairBatch, make_pairs
from data.store import Split
from model.layout import AnyLayout, FlatLayout, Layout
from model.transformer import EncoderDecoder
from pipeline.training.losses import linear_cross_entropy


@dataclass(frozen=True)
class Loss:
    """Sums over the target tokens of a batch: the objective (differentiable), -log p, and how many tokens."""

    sum: Tensor
    nll: Tensor
    count: int


@dataclass(frozen=True)
class Counts:
    """Sums over the target tokens of a batch in validation: -log p, tokens predicted right, tokens."""

    nll: Tensor
    correct: Tensor
    count: int


class Translation:
    """Source -> target, trained by teacher forcing: each target token from the source and those before it.

    flat_rows: in training batches are not padded, but filled up to this number of rows a side.
    """

    def __init__(self, label_smoothing: float, flat_rows: int | None = None) -> None:
        self.label_smoothing, self.flat_rows = label_smoothing, flat_rows

    def batch(self, split: Split, rows: np.ndarray) -> PairBatch:
        """The examples at these row numbers as one batch."""
        return make_pairs(split, rows)

    def loss(self, model: EncoderDecoder, batch: PairBatch) -> Loss:
        """Label-smoothed cross-entropy, summed."""
        output, counts = model.output, None
        if self.flat_rows is not None:
            batch = batch.filled(self.flat_rows)
            device = batch.target_out.device
            real = torch.arange(self.flat_rows) < batch.num_target_tokens
            counts = real.to(device, output.weight.dtype, non_blocking=True)
        total, nll = linear_cross_entropy(
            _hidden(model, batch, self.flat_rows),
            output.weight,
            batch.target_out,
            smoothing=self.label_smoothing,
            compute_dtype=output.compute_dtype,
            counts=counts,
        )
        return Loss(total, nll, batch.num_target_tokens)

    def evaluate(self, model: EncoderDecoder, batch: PairBatch) -> Counts:
        """-log p and accuracy of the reference tokens, without smoothing."""
        hidden = _hidden(model, batch)
        logits = model.output(hidden)
        nll = F.cross_entropy(logits, batch.target_out, reduction="sum")
        correct = (logits.argmax(-1) == batch.target_out).sum()
        return Counts(nll, correct, batch.num_target_tokens)


def _hidden(model: EncoderDecoder, batch: PairBatch, flat_rows: int | None = None) -> Tensor:
    """What enters the output layer (N_t, E)."""
    device, sides = batch.source.device, (batch.source_lengths, batch.target_lengths)
    source: AnyLayout
    target: AnyLayout
    if flat_rows is None:
        source, target = (Layout.of(each, device) for each in sides)
    else:
        source, target = (FlatLayout(each, device, flat_rows) for each in sides)
    hidden: Tensor = model(batch.source, source, batch.target_in, target)
    return hidden


TASKS = {"translation": Translation}
