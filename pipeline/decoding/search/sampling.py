"""Sampling: each piece drawn from the model's distribution, with temperature, top-k or top-p.

    p_T(v) = p(v)^(1/T) / sum over w of p(w)^(1/T)              temperature T (Ackley et al. 1985)
    top-k: only the k most probable pieces                      (Fan et al. 2018, section 5.2)
    top-p: only the fewest pieces whose p_T sums to p or more   (Holtzman et al. 2020, section 3.1)

in this order, each renormalized. The uniform number of a draw is a hash of (seed, sentence, number of the sample,
step), so that a hypothesis depends neither on its batch nor on the position of its sentence; the piece is the first
whose cumulative probability exceeds it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.search.greedy import log_prob_sum_dtype
from tfm.pipeline.decoding.search.numpy_sampling import uniform_numbers
from tfm.pipeline.decoding.search.top_k import largest_value_indices


class TokenSampler:
    """Sampler of the next piece of each sentence. `keys`: one a sentence, see `sampling_key`."""

    def __init__(self, config: DecodingConfig, keys: Sequence[int]) -> None:
        self._config, self._keys = config, np.array(keys, dtype=np.uint64)

    def __call__(self, log_probs: Tensor, sentences: Tensor, num_pieces: Tensor) -> tuple[Tensor, Tensor]:
        """The model's log-probability of the piece drawn (B,), and the piece (B,); see `greedy.TokenSelector`."""
        config = self._config
        if config.temperature == 0 or config.top_k == 1:
            best, tokens = log_probs.max(-1)
            return best, tokens
        uniform = uniform_numbers(self._keys[sentences.clamp(min=0).numpy()], num_pieces.numpy())
        tokens = draw_tokens(log_probs, torch.from_numpy(uniform), config.temperature, config.top_k, config.top_p)
        return log_probs.gather(1, tokens.unsqueeze(1)).squeeze(1), tokens


def draw_tokens(
    log_probs: Tensor, uniform: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Return the piece (B,) on which each uniform number falls.

    Pieces lie side by side in the order of their ids or, where the distribution is cut short, best first, among equals
    the lowest id first.

    Args:
        log_probs: (B, V), -inf for pieces that may not come.
        uniform: (B,), numbers from 0 to 1.
        temperature: T.
        top_k: number of pieces to draw from; None for all.
        top_p: probability of the pieces to draw from; None for 1.
    """
    tokens, vocab = None, log_probs.shape[1]
    if top_k is not None or top_p is not None:
        tokens = largest_value_indices(log_probs, min(top_k or vocab, vocab))
        order = log_probs.gather(1, tokens).sort(dim=1, descending=True, stable=True).indices
        tokens = tokens.gather(1, order)
        log_probs = log_probs.gather(1, tokens)
    exact = log_probs.to(log_prob_sum_dtype(log_probs.device))
    weights = ((exact - exact.amax(1, keepdim=True)) / temperature).exp_()
    sums = weights.cumsum(1)
    if top_p is not None:
        weights.masked_fill_(sums - weights >= top_p * sums[:, -1:], 0.0)
        sums = weights.cumsum(1)
    totals = sums[:, -1:]
    # rounded up to the total it would fall beyond the last piece
    targets = torch.minimum(uniform.to(totals).unsqueeze(1) * totals, torch.nextafter(totals, torch.zeros_like(totals)))
    columns = torch.searchsorted(sums, targets, right=True).clamp_(max=log_probs.shape[1] - 1)
    return (columns if tokens is None else tokens.gather(1, columns)).squeeze(1)
