"""Masked language modelling (Devlin et al. 2019, section 3.1): some tokens of a text are hidden, and predicted.

Of the tokens, 15 % are chosen; of those 80 % read as hidden, 10 % as a random piece, and 10 % as what they are.
"""

from typing import Any, Self

import torch
from torch import Tensor

from tfm.data.batching.batches import PairBatch
from tfm.data.dataset.split import Ints, Split
from tfm.model.layers.counter_rng import counter_hash
from tfm.model.layout import Layout
from tfm.pipeline.tasks.criteria import Criterion, Predictions, criterion_of
from tfm.pipeline.tasks.task import Counts, Loss, PairTask, TaskContext
from tfm.pipeline.tasks.translation import counts_of
from tfm.tokenizer.special import PAD_ID, SPECIALS

CHOSEN, HIDDEN, RANDOM = 0.15, 0.8, 0.1
HIDDEN_ID = PAD_ID
"""What a hidden token reads as: the token of a place where nothing is, which no text has."""


class MaskedLanguageModel(PairTask):
    """The source side of each pair by itself: the target is not looked at."""

    nothing = "no text that is not empty"

    def __init__(self, criterion: Criterion) -> None:
        self.criterion = criterion

    @classmethod
    def of(cls, about: TaskContext) -> Self:
        """The task as a recipe has it."""
        return cls(criterion_of(about.config))

    def predictions(self, split: Split) -> Ints:
        """(rows,) how many tokens of each text may be chosen: those before its end token."""
        return split.source_lengths

    def lengths(self, split: Split) -> tuple[Ints, Ints]:
        return split.source_lengths + 1, split.source_lengths + 1

    def loss(self, model: Any, batch: PairBatch) -> Loss:
        """What the chosen tokens cost, summed; what is chosen follows from (seed, step)."""
        key = model.noise.draw()

        def predict() -> Predictions:
            hidden, wanted = _predictions(model, batch, key)
            return Predictions(hidden, wanted, len(wanted))

        return self.criterion.loss(model.output, predict)

    def evaluate(self, model: Any, batch: PairBatch) -> Counts:
        """-log p and accuracy of the chosen tokens; which they are follows from the batch's rows."""
        hidden, wanted = _predictions(model, batch, counter_hash(*batch.rows.tolist()))
        return counts_of(model.output(hidden), wanted)


def _predictions(model: Any, batch: PairBatch, key: int) -> tuple[Tensor, Tensor]:
    """What enters the output layer at the chosen tokens (n, E), and these tokens (n,)."""
    source, device = batch.source, batch.source.device
    is_end = torch.zeros(len(source), dtype=torch.bool)
    is_end[batch.source_lengths.cumsum(0) - 1] = True
    chosen, places, instead = masking(is_end, model.embedding.table.num_embeddings, key)
    chosen, places, instead = (each.to(device, non_blocking=True) for each in (chosen, places, instead))
    shown = source.index_copy(0, places, instead)
    return model(shown, Layout.of(batch.source_lengths, device)).index_select(0, chosen), source[chosen]


def masking(is_end: Tensor, vocab: int, key: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which rows are chosen (n,); which of them read as something else (m,), and as what (m,). On the CPU.

    is_end (N,): end tokens, which are never chosen. Of other tokens at least one is, where there is one.
    """
    generator = torch.Generator().manual_seed(key >> 1)
    draw, fate = torch.rand(2, len(is_end), generator=generator)
    random = torch.randint(min(len(SPECIALS), vocab - 1), vocab, (len(is_end),), generator=generator)
    draw = draw.masked_fill(is_end, 2.0)
    least = float(draw.min())
    chosen = (draw < (max(CHOSEN, least + 1e-6) if least < 1 else CHOSEN)).nonzero().squeeze(1)
    instead = torch.where(fate < HIDDEN, HIDDEN_ID, random)[chosen]
    changed = fate[chosen] < HIDDEN + RANDOM
    return chosen, chosen[changed], instead[changed]
