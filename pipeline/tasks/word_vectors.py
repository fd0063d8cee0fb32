"""Word vectors from texts (Mikolov et al. 2013a): a word and its neighbors predict each other, within a window.

    softmax             -log p(o | h),   p(o | h) = exp(v'_o . h) / sum_w exp(v'_w . h)
    negative sampling   -log s(v'_o . h) - sum_i log s(-v'_i . h),   i = 1..k drawn ~ frequency^(3/4)

with h the input (a word's vector, or the mean of its neighbors'), o the predicted word, s the logistic function.
Legend: N tokens · n predictions · D width · V vocabulary.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tfm.data.arrays import Floats, Ints
from tfm.data.batching.batches import TextBatch, make_text_batch
from tfm.data.batching.example_keys import example_rng_keys, rng_keys_to_uniform, text_rng_keys, token_rng_keys
from tfm.data.dataset.split import Dataset, Ids, Split
from tfm.data.errors import DataError
from tfm.model.config import ModelConfig, WordVectorsConfig
from tfm.model.word_vectors import neighbour_pairs
from tfm.pipeline.tasks.task import EvaluationSums, LossSums, PairTask, Rows, TaskContext, add_evaluation_sums
from tfm.pipeline.tasks.word_vector_objectives import (
    FullSoftmaxObjective,
    MakeKeys,
    NegativeSamplingObjective,
    WordVectorObjective,
)
from tfm.tokenizer.sampled import RandomKeys, hash_numbers
from tfm.tokenizer.special import SPECIAL_TOKENS

ROWS_PER_CHUNK = 1 << 15

_SUBSAMPLING_STREAM, _WINDOW_RNG_STREAM, _NOISE_STREAM = 0, 1, 2


class WordVectorTask(PairTask):
    """The target side of each pair by itself: the source is not looked at. Control tokens are no words."""

    empty_message = "no text with two known words, and a word is learned from its neighbours"

    def __init__(
        self, config: WordVectorsConfig, objective: WordVectorObjective, architecture: str = "skip_gram"
    ) -> None:
        self.config, self.objective, self.count_predictions = config, objective, NUM_PREDICTIONS[architecture]
        self.has_perplexity = objective.has_perplexity
        # windows that shrink have each width once, and with each of them other noise words
        self.num_draws = config.window if config.shrink else objective.num_draws

    @classmethod
    def from_context(cls, context: TaskContext) -> "WordVectorTask":
        """The task as a recipe has it: with the softmax or, where `negatives` says how many, with noise words."""
        config = context.model.word_vectors
        softmax = FullSoftmaxObjective(context.config.label_smoothing)
        objective = softmax if config.negatives is None else NegativeSamplingObjective(config.negatives)
        return cls(config, objective, context.model.architecture)

    def lengths(self, split: Split) -> tuple[Ints, Ints]:
        return split.target_lengths + 1, split.target_lengths + 1

    def batch(self, split: Split, rows: Rows) -> TextBatch:
        return make_text_batch(split.target, rows)

    def num_predictions(self, split: Split) -> Ints:
        """Return (rows,) the number of words of each text that have neighbors."""
        counts = num_words(split)
        return counts * (counts > 1)

    def expected_predictions(self, split: Split) -> Floats:
        """Return (rows,) the predictions of an update of each text, in expectation over windows, for one draw of the
        words that are dropped.
        """
        words = num_words(split)
        if self.config.subsample is not None:
            vocab = 1 + max(int(ids.max(initial=0)) for _, ids, _ in iterate_chunks(split))
            chance = keep_probability(torch.from_numpy(word_frequencies(split, vocab)), self.config.subsample).numpy()
            chance[: len(SPECIAL_TOKENS)] = 0
            draws = np.random.default_rng(0)
            for rows, ids, lengths in iterate_chunks(split):
                text = np.repeat(np.arange(len(rows)), lengths)
                words[rows] = np.bincount(text[draws.random(len(ids)) < chance[ids]], minlength=len(rows))
        return self.count_predictions(words, self.config)

    def loss(self, model: Any, batch: TextBatch) -> LossSums:
        """The objective, summed over predictions; the draws for a text follow from (seed, step, row)."""
        keys, lengths = example_rng_keys(model.dropout_rng.update_key, batch.rows, batch.repeats), batch.lengths.numpy()
        is_kept = is_word(batch.tokens_out)
        if self.config.subsample is not None:
            chance = keep_probability(model.frequencies, self.config.subsample)[batch.tokens_out]
            draws = torch.from_numpy(rng_keys_to_uniform(token_rng_keys(keys, lengths, _SUBSAMPLING_STREAM)))
            is_drawn = is_kept & (draws < chance.cpu()).to(is_kept.device)
            # an empty batch would teach nothing, so it is read whole
            is_kept = is_drawn if self._has_predictions(batch, is_drawn) else is_kept
        reach = torch.full_like(batch.tokens_out, self.config.window)
        if self.config.shrink:
            drawn_reach = 1 + (
                token_rng_keys(keys, lengths, _WINDOW_RNG_STREAM) % np.uint64(self.config.window)
            ).astype(np.int64)
            reach = torch.from_numpy(drawn_reach).to(reach.device, non_blocking=True)
        return self.objective.loss(model, *self._predictions(model, batch, is_kept, reach, keys))

    def evaluate(self, model: Any, batch: TextBatch) -> EvaluationSums:
        """Return the objective, and the number of right predictions, of texts read whole.

        Windows that shrink have each width once; noise words follow from the text and the number of the pass.
        """
        keys = text_rng_keys(batch.tokens_out.cpu().numpy(), batch.lengths.numpy())
        is_kept, passes = is_word(batch.tokens_out), []
        for number in range(self.num_draws):
            reach = torch.full_like(batch.tokens_out, number + 1 if self.config.shrink else self.config.window)
            predictions = self._predictions(model, batch, is_kept, reach, hash_numbers(keys, np.array([number])))
            passes.append(self.objective.counts(model, *predictions))
        return add_evaluation_sums(passes)

    def prepare_model(self, model: Any, data: Dataset) -> None:
        """Tell the model how frequent each word is in training."""
        model.frequencies.copy_(torch.from_numpy(word_frequencies(data.train, len(model.frequencies))))

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError also if there is no noise word to tell a word from."""
        super().check_data(data, model)
        ids_in_text = set[int]().union(*(np.unique(ids).tolist() for _, ids, _ in iterate_chunks(data.train)))
        if (
            isinstance(self.objective, NegativeSamplingObjective)
            and len(ids_in_text - set(range(len(SPECIAL_TOKENS)))) < 2
        ):
            raise DataError(
                "the training data has only one word, and negative sampling distinguishes a word from others: give "
                "more text, or leave word_vectors.negatives out"
            )

    def _predictions(
        self, model: Any, batch: TextBatch, is_kept: Tensor, window_sizes: Tensor, keys: RandomKeys
    ) -> tuple[Tensor, Tensor, MakeKeys]:
        """The predictions of the words that are kept (N,), each with a window of its own.

        Args:
            model: The network.
            batch: Texts of N tokens.
            is_kept: (N,) whether a token takes part.
            window_sizes: (N,) how far the window of each token reaches.
            keys: (B,) those of the texts.

        Returns:
            The predicting vectors (n, D), the words to predict (n,), and a function of the keys of the draws for them
            (n,).
        """
        words = batch.tokens_out[is_kept]
        hidden, centres, predicted_indices = model(
            words, *neighbour_pairs(_sentence_ids(batch)[is_kept], window_sizes[is_kept], self.config.window)
        )

        def keys_of_predictions() -> RandomKeys:
            tokens = token_rng_keys(keys, batch.lengths.numpy(), _NOISE_STREAM)[is_kept.cpu().numpy()]
            # by places among the words that are kept, which follow from the text as these words do
            return hash_numbers(tokens[centres.cpu().numpy()], (predicted_indices - centres).cpu().numpy())

        return hidden, words[predicted_indices], keys_of_predictions

    def _has_predictions(self, batch: TextBatch, is_kept: Tensor) -> bool:
        """Return whether two words of a text are kept."""
        sentence = _sentence_ids(batch)[is_kept]
        return bool((sentence[1:] == sentence[:-1]).any())


def num_neighbour_pairs(words: Any, config: WordVectorsConfig) -> Floats:
    """Return (texts,) the pairs of a word and a neighbor, in expectation over windows that shrink.

    Args:
        words: (texts,) the number of words of each text.
        config: the window of a word.
    """
    num_pairs = np.zeros(len(words))
    for distance in range(1, min(config.window, int(np.max(words, initial=0))) + 1):
        share = (config.window - distance + 1) / config.window if config.shrink else 1.0
        num_pairs += 2 * share * np.maximum(words - distance, 0)
    return num_pairs


def num_words_with_neighbours(words: Any, config: WordVectorsConfig) -> Floats:
    """Return (texts,) the words that have a neighbor.

    Args:
        words: (texts,) the number of words of each text.
        config: unused: the nearest word is within each window.
    """
    return np.where(np.asarray(words) > 1, words, 0).astype(np.float64)


NUM_PREDICTIONS: dict[str, Callable[[Any, WordVectorsConfig], Floats]] = {
    "skip_gram": num_neighbour_pairs,
    "cbow": num_words_with_neighbours,
}
"""By architecture: (words of each text, config) -> the predictions of an update of it."""


def keep_probability(frequencies: Tensor, threshold: float) -> Tensor:
    """Return (V,) the probability that a word is kept, sqrt(t / f) and at most 1: 1 - P of Mikolov et al. 2013b, eq.
    5.
    """
    return (threshold / frequencies.clamp_min(threshold)).sqrt()


def word_frequencies(split: Split, vocab: int) -> NDArray[np.float64]:
    """Return (V,) the share of each word among all words of an epoch; of control tokens 0."""
    counts = np.zeros(vocab)
    for rows, ids, lengths in iterate_chunks(split):
        counts += np.bincount(ids, weights=np.repeat(split.weights[rows], lengths), minlength=vocab)
    counts[: len(SPECIAL_TOKENS)] = 0
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def num_words(split: Split) -> Ints:
    """Return (rows,) the number of words of each text; unknown pieces are none."""
    counts = np.zeros(len(split), np.int64)
    for rows, ids, lengths in iterate_chunks(split):
        text = np.repeat(np.arange(len(rows)), lengths)
        counts[rows] = np.bincount(text[ids >= len(SPECIAL_TOKENS)], minlength=len(rows))
    return counts


def iterate_chunks(split: Split) -> Iterator[tuple[Rows, Ids, Ints]]:
    """Yield rows of a split, the ids of their targets and the length of each, so few that their size is no matter."""
    for begin in range(0, len(split), ROWS_PER_CHUNK):
        rows = np.arange(begin, min(begin + ROWS_PER_CHUNK, len(split)))
        yield rows, *split.target.take(rows)


def is_word(tokens: Tensor) -> Tensor:
    """Return (N,) whether a token is a word, and no control token."""
    return tokens >= len(SPECIAL_TOKENS)


def _sentence_ids(batch: TextBatch) -> Tensor:
    """Return (N,) the number of each token's text."""
    return torch.repeat_interleave(batch.lengths).to(batch.tokens_out.device)
