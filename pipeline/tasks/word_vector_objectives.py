"""Objectives of word vectors: the softmax over all words, and negative sampling (Mikolov et al. 2013a and b).

Legend: n predictions · k noise words · D width · V vocabulary.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.data.batching.example_keys import rng_keys_to_uniform
from tfm.pipeline.tasks.losses import CHUNK_ROWS, linear_cross_entropy
from tfm.pipeline.tasks.task import NUM_EVALUATION_DRAWS, EvaluationSums, LossSums
from tfm.pipeline.tasks.translation import count_correct_tokens
from tfm.tokenizer.sampled import RandomKeys, hash_numbers

NOISE_POWER = 0.75  # of frequencies, Mikolov et al. 2013b, section 2.2
MakeKeys = Callable[[], RandomKeys]
"""Keys that are computed where they are needed, since copying them from a GPU would wait for it."""


class WordVectorObjective(Protocol):
    """Loss of the predictions of words. num_draws: the number of random draws that an evaluation sums up."""

    has_perplexity: bool
    num_draws: int

    def loss(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> LossSums:
        """Return the loss, summed.

        Args:
            model: the network.
            hidden: (n, D), the predicting vectors.
            targets: (n,), the words to predict.
            keys: () -> (n,), the keys of the draws for each prediction.
        """

    def counts(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> EvaluationSums:
        """Return the counts of an evaluation.

        Args:
            model: the network.
            hidden: (n, D), the predicting vectors.
            targets: (n,), the words to predict.
            keys: () -> (n,), the keys of the draws for each prediction.
        """


class FullSoftmaxObjective:
    """The softmax over all words."""

    has_perplexity, num_draws = True, 1

    def __init__(self, label_smoothing: float) -> None:
        self.label_smoothing = label_smoothing

    def loss(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> LossSums:
        """Return the label-smoothed cross-entropy, summed.

        Args:
            model: the network.
            hidden: (n, D), the predicting vectors.
            targets: (n,), the words to predict.
            keys: unused.
        """
        output = model.output
        total, nll = linear_cross_entropy(
            hidden, output.weight, targets, smoothing=self.label_smoothing, compute_dtype=output.compute_dtype
        )
        return LossSums(total, nll, len(targets))

    def counts(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> EvaluationSums:
        """Return -log p, and how often the target is the likeliest word of all.

        Args:
            model: the network.
            hidden: (n, D), the predicting vectors.
            targets: (n,), the words to predict.
            keys: unused.
        """
        # a few rows at a time: there are several predictions a token, each with as many logits as there are words
        parts = zip(torch.split(hidden, CHUNK_ROWS), torch.split(targets, CHUNK_ROWS), strict=True)
        sums = [count_correct_tokens(model.output(rows), words) for rows, words in parts]
        zero = hidden.new_zeros(())
        return EvaluationSums(
            sum((each.nll for each in sums), zero), sum((each.correct for each in sums), zero), len(targets)
        )


class NegativeSamplingObjective:
    """Telling a word from k noise words (Mikolov et al. 2013b, eq. 4)."""

    has_perplexity, num_draws = False, NUM_EVALUATION_DRAWS

    def __init__(self, negatives: int) -> None:
        self.negatives = negatives

    def loss(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> LossSums:
        """Return -log s(v'_o . h) - sum_i log s(-v'_i . h), summed.

        Args:
            model: the network.
            hidden: (n, D), the predicting vectors.
            targets: (n,), the words to predict.
            keys: () -> (n,), the keys of the draws for each prediction.
        """
        total = negative_sampling_losses(*self._noise_scores(model, hidden, targets, keys)).sum()
        return LossSums(total, total.detach(), len(targets))

    def counts(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> EvaluationSums:
        """Return the loss, and how often the target scores higher than each of its noise words.

        Args:
            model: the network.
            hidden: (n, D), the predicting vectors.
            targets: (n,), the words to predict.
            keys: () -> (n,), the keys of the draws for each prediction.
        """
        true, false = self._noise_scores(model, hidden, targets, keys)
        return EvaluationSums(negative_sampling_losses(true, false).sum(), (true > false.amax(1)).sum(), len(targets))

    def _noise_scores(self, model: Any, hidden: Tensor, targets: Tensor, keys: MakeKeys) -> tuple[Tensor, Tensor]:
        noise = draw_noise_words(model.frequencies, targets, self.negatives, keys()).to(targets.device)
        weight = model.output.weight
        true = (hidden * F.embedding(targets, weight)).sum(1)
        return true, torch.einsum("nd,nkd->nk", hidden, F.embedding(noise, weight))


def negative_sampling_losses(target_scores: Tensor, noise_scores: Tensor) -> Tensor:
    """Return the losses (n,) from the scores of the right word (n,) and of its noise words (n, k): Mikolov et al.
    2013b, eq. 4, negated.
    """
    return -F.logsigmoid(target_scores) - F.logsigmoid(-noise_scores).sum(1)


def draw_noise_words(frequencies: Tensor, targets: Tensor, count: int, keys: RandomKeys) -> Tensor:
    """Draw words with probability ~ frequency^(3/4), none of them the target, on the CPU.

    The distribution is that of drawing again until another word comes: the target's stretch of the line from which
    words are drawn is passed over. The target itself is drawn if there is no other word.

    Args:
        frequencies: (V,).
        targets: (n,), the words to predict.
        count: number of noise words of each prediction.
        keys: (n,), of the draws.

    Returns:
        (n, count).
    """
    cumulative = frequencies.detach().cpu().double().pow(NOISE_POWER).cumsum(0)
    begin, end = (
        each[targets.cpu(), None] for each in (torch.cat([cumulative.new_zeros(1), cumulative[:-1]]), cumulative)
    )
    draws = torch.from_numpy(rng_keys_to_uniform(hash_numbers(keys[:, None], np.arange(count)))) * (
        cumulative[-1] - (end - begin)
    )
    draws = torch.where(draws < begin, draws, (draws + (end - begin)).maximum(end))
    # rounding may lead to the end of the line, or to the beginning of its last word if that is the target
    limit = torch.where(end < cumulative[-1], cumulative[-1], begin)
    draws = draws.minimum(limit.nextafter(torch.zeros_like(limit)))
    return torch.searchsorted(cumulative, draws, right=True).clamp_(max=len(cumulative) - 1)
