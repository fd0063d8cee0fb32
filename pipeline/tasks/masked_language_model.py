"""Masked language modeling (Devlin et al. 2019, section 3.1): some tokens of a text are hidden, and predicted.

In training 15 % of the tokens are chosen, one at least of each text; of those 80 % read as hidden, 10 % as a random
piece, and 10 % as themselves. In evaluation the tokens of each text are dealt out to seven passes: each pass chooses
its own, 14 %, which read as in training, so that each token is predicted once.
Shapes: B texts · N tokens of all texts.
"""

from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from tfm.data.arrays import Floats, Ints
from tfm.data.batching.batches import PairBatch
from tfm.data.batching.example_keys import (
    example_rng_keys,
    rng_keys_to_uniform,
    text_rng_keys,
    token_positions,
    token_rng_keys,
)
from tfm.data.dataset.split import Split
from tfm.model.layout import Layout
from tfm.pipeline.tasks.criteria import Criterion, Predictions, make_criterion
from tfm.pipeline.tasks.task import (
    NUM_EVALUATION_DRAWS,
    EvaluationSums,
    LossSums,
    PairTask,
    TaskContext,
    add_evaluation_sums,
)
from tfm.pipeline.tasks.translation import count_correct_tokens
from tfm.tokenizer.sampled import RandomKeys
from tfm.tokenizer.special import PAD_ID, SPECIAL_TOKENS

PREDICTED_SHARE, MASK_TOKEN_SHARE, RANDOM_TOKEN_SHARE = 0.15, 0.8, 0.1
MASKED_TOKEN_ID = PAD_ID
"""The token that replaces a hidden one: the token of an empty place, which no text has."""
_POSITION_STREAM, _REPLACEMENT_STREAM, _RANDOM_PIECE_STREAM = 0, 1, 2


class MaskedLanguageModel(PairTask):
    """The source side of each pair by itself: the target is not looked at."""

    empty_message = "no text that is not empty"
    num_draws = NUM_EVALUATION_DRAWS

    def __init__(self, criterion: Criterion) -> None:
        self.criterion = criterion

    @classmethod
    def from_context(cls, context: TaskContext) -> Self:
        """The task as a recipe has it."""
        return cls(make_criterion(context.config))

    def num_predictions(self, split: Split) -> Ints:
        """Return (rows,) the number of tokens of each text that may be chosen: those before its end token."""
        return split.source_lengths

    def expected_predictions(self, split: Split) -> Floats:
        """Return (rows,) the number of tokens of each text that are chosen, in expectation; 0 of an empty one."""
        counts: Floats = expected_masked_tokens(split.source_lengths) * (split.source_lengths > 0)
        return counts

    def lengths(self, split: Split) -> tuple[Ints, Ints]:
        return split.source_lengths + 1, split.source_lengths + 1

    def loss(self, model: Any, batch: PairBatch) -> LossSums:
        """The sum over the chosen tokens, which follow from (seed, step, row)."""
        keys = example_rng_keys(model.dropout_rng.update_key, batch.rows, batch.repeats)
        masked_positions = draw_masked_positions(batch.source_lengths.numpy(), keys)

        def predict() -> Predictions:
            hidden, targets = _masked_predictions(model, batch, masked_positions, keys)
            return Predictions(hidden, targets, len(targets))

        return self.criterion.loss(model.output, predict)

    def evaluate(self, model: Any, batch: PairBatch) -> EvaluationSums:
        """-log p and accuracy of all tokens; which of them are hidden together follows from their text."""
        lengths = batch.source_lengths.numpy()
        keys = text_rng_keys(batch.source.cpu().numpy(), lengths)
        passes = partition_positions(lengths, keys, self.num_draws)
        return add_evaluation_sums(
            [
                _masked_prediction_counts(model, batch, masked_positions, keys)
                for masked_positions in passes
                if len(masked_positions) or masked_positions is passes[0]
            ]
        )


def _masked_prediction_counts(model: Any, batch: PairBatch, masked_positions: Ints, keys: RandomKeys) -> EvaluationSums:
    hidden, targets = _masked_predictions(model, batch, masked_positions, keys)
    return count_correct_tokens(model.output(hidden), targets)


def _masked_predictions(
    model: Any, batch: PairBatch, masked_positions: Ints, keys: RandomKeys
) -> tuple[Tensor, Tensor]:
    """Return the input of the output layer at the chosen tokens (n, E), and these tokens (n,)."""
    source, device = batch.source, batch.source.device
    vocab = model.embedding.table.num_embeddings
    changed_positions, replacements = draw_replacements(masked_positions, batch.source_lengths.numpy(), vocab, keys)
    rows, changed_rows, pieces = (
        torch.from_numpy(each).to(device, non_blocking=True)
        for each in (masked_positions, changed_positions, replacements)
    )
    inputs = source.index_copy(0, changed_rows, pieces)
    return model(inputs, Layout.from_lengths(batch.source_lengths, device), rows), source[rows]


def expected_masked_tokens(length: Any) -> Any:
    """Return p n + (1 - p)^n: of n tokens a share p is chosen, and one where that draws none.

    Args:
        length: n, a number or an array.
    """
    return PREDICTED_SHARE * length + (1 - PREDICTED_SHARE) ** length


def draw_masked_positions(lengths: Ints, keys: RandomKeys) -> Ints:
    """The places (n,) of 15 % of the tokens, and of one at least of each text that has one.

    Args:
        lengths: (B,) the tokens of each text with its end token, which is never chosen.
        keys: (B,) those of the texts.
    """
    draws = rng_keys_to_uniform(token_rng_keys(keys, lengths, _POSITION_STREAM))
    draws[np.cumsum(lengths) - 1] = 1.0
    minima = np.minimum.reduceat(draws, np.cumsum(lengths) - lengths)
    positions: Ints = np.flatnonzero((draws <= np.repeat(np.maximum(minima, PREDICTED_SHARE), lengths)) & (draws < 1))
    return positions


def partition_positions(lengths: Ints, keys: RandomKeys, num_passes: int) -> list[Ints]:
    """The places that each of some passes chooses: of each text about as many, so that each token is chosen once.

    Args:
        lengths: (B,) the tokens of each text with its end token, which is never chosen.
        keys: (B,) those of the texts, which say who gets what.
        num_passes: A text with fewer tokens has none in the last passes.
    """
    draws, text = token_rng_keys(keys, lengths, _POSITION_STREAM), np.repeat(np.arange(len(lengths)), lengths)
    is_end = np.zeros(len(text), np.bool_)
    is_end[np.cumsum(lengths) - 1] = True
    order = np.empty(len(text), np.int64)
    order[np.lexsort((draws, is_end, text))] = token_positions(lengths) % num_passes
    return [np.flatnonzero((order == number) & ~is_end) for number in range(num_passes)]


def draw_replacements(masked_positions: Ints, lengths: Ints, vocab: int, keys: RandomKeys) -> tuple[Ints, Ints]:
    """Return the indices of the chosen tokens that are replaced (m,), and their replacements (m,).

    Args:
        chosen: (n,), indices of the chosen tokens.
        lengths: (B,), of the texts, in tokens.
        vocab: number of pieces.
        keys: (B,), of the draws of each text.
    """
    draws = rng_keys_to_uniform(token_rng_keys(keys, lengths, _REPLACEMENT_STREAM))[masked_positions]
    first = min(len(SPECIAL_TOKENS), vocab - 1)
    pieces = first + (
        token_rng_keys(keys, lengths, _RANDOM_PIECE_STREAM)[masked_positions] % np.uint64(vocab - first)
    ).astype(np.int64)
    changed = draws < MASK_TOKEN_SHARE + RANDOM_TOKEN_SHARE
    return masked_positions[changed], np.where(draws < MASK_TOKEN_SHARE, MASKED_TOKEN_ID, pieces)[changed]
