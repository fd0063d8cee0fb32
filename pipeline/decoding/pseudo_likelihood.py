"""Pseudo-log-likelihood: the score of a text by a masked language model (Salazar et al. 2020).

    PLL(W) = sum over t of log p(w_t | W without w_t)

Each piece is hidden once and predicted from all others, so that a text of n pieces is read n times. The sum is no
log-probability: the conditionals are of no one distribution over texts, and texts compare with one another alone.
Legend: R readings at a time · V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tfm.model.layers.log_probs import log_softmax
from tfm.model.layout import Layout
from tfm.pipeline.decoding.search.hypothesis import check_not_nan
from tfm.pipeline.tasks.masked_language_model import MASKED_TOKEN_ID
from tfm.tokenizer.special import EOS_ID

MASKED_TEXTS_PER_BATCH = 64
"""R: readings in one batch."""


def pseudo_log_likelihoods(
    model: Any, texts: Sequence[Sequence[int]], start_positions: Sequence[int]
) -> NDArray[np.float64]:
    """Return for each text the sum of log p of its pieces from a first one on, each given all others, in nats.

    Args:
        model: a masked language model, in eval mode.
        texts: ids of each text, without its end token.
        start_positions: of each text, the place of the first piece that counts; those before it are read alone.
    """
    sums = np.zeros(len(texts))
    hidden = [
        (number, position)
        for number, text in enumerate(texts)
        for position in range(start_positions[number], len(text))
    ]
    with torch.inference_mode():
        for begin in range(0, len(hidden), MASKED_TEXTS_PER_BATCH):
            batch = hidden[begin : begin + MASKED_TEXTS_PER_BATCH]
            np.add.at(sums, [number for number, _ in batch], _masked_log_probs(model, texts, batch))
    check_not_nan(sums)
    return sums


def _masked_log_probs(
    model: Any, texts: Sequence[Sequence[int]], masked_positions: Sequence[tuple[int, int]]
) -> NDArray[np.float64]:
    """log p (R,) of the pieces at some places (number of the text, place in it), one hidden in each reading."""
    device = next(model.parameters()).device
    readings = [
        [*texts[number][:position], MASKED_TOKEN_ID, *texts[number][position + 1 :], EOS_ID]
        for number, position in masked_positions
    ]
    lengths = torch.tensor([len(each) for each in readings])
    ids = torch.tensor([piece for reading in readings for piece in reading], device=device)
    rows = (lengths.cumsum(0) - lengths + torch.tensor([position for _, position in masked_positions])).to(device)
    targets = torch.tensor([texts[number][position] for number, position in masked_positions], device=device)
    states = model(ids, Layout.from_lengths(lengths, device), rows)
    log_probs = log_softmax(model.output(states).double())
    predicted: NDArray[np.float64] = log_probs.gather(1, targets.unsqueeze(1)).squeeze(1).cpu().numpy()
    return predicted
