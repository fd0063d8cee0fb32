"""The interface of a task: the batch of some examples, the loss, and the counts of validation.

The training loop only uses this interface, so it does not depend on the task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from tfm.data.arrays import Floats, Ints
from tfm.data.batching.batches import PairBatch, make_pair_batch
from tfm.data.batching.buckets import length_sorted_batches, make_batches
from tfm.data.batching.epochs import EpochBatches, empty_epoch_error, make_sharded_epochs
from tfm.data.batching.padding_cost import make_batch_counter
from tfm.data.dataset.split import Dataset, Split
from tfm.data.errors import DataError, format_count, format_share
from tfm.model.config import ModelConfig
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.special import SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

Rows = NDArray[np.int64]
NUM_EVALUATION_DRAWS = 7
"""The number of random draws of an evaluation, whose figures are sums over all of them."""


@dataclass(frozen=True)
class LossSums:
    """Sums over the predictions of a batch: the objective (differentiable), -log p, and their number."""

    sum: Tensor
    nll: Tensor
    count: int


@dataclass(frozen=True)
class EvaluationSums:
    """Sums over the predictions of validation: -log p, the number of right predictions, and their number.

    unknown: labels beside those, of which training has none: they have no probability, and what is given is wrong.
    """

    nll: Tensor
    correct: Tensor
    count: int
    unknown: int = 0

    def __add__(self, other: "EvaluationSums") -> "EvaluationSums":
        return EvaluationSums(
            self.nll + other.nll,
            self.correct + other.correct,
            self.count + other.count,
            self.unknown + other.unknown,
        )


def add_evaluation_sums(counts: Sequence[EvaluationSums]) -> EvaluationSums:
    """Add at least one evaluation sum."""
    return reduce(EvaluationSums.__add__, counts)


@dataclass(frozen=True)
class PredictedLabels:
    """The labels of a source, as target ids, and the sum of their log-probabilities."""

    ids: list[int]
    log_prob: float


def best_log_prob_and_label(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability and id (n,) of the likeliest label of each row (n, V); control tokens are none."""
    log_probs, labels = logits.log_softmax(-1)[:, len(SPECIAL_TOKENS) :].max(-1)
    return log_probs, labels + len(SPECIAL_TOKENS)


def best_labels(logits: Tensor, count: int) -> list[list[PredictedLabels]]:
    """The `count` likeliest labels, or all where there are fewer, of each row of logits (n, V)."""
    log_probs = logits.log_softmax(-1)[:, len(SPECIAL_TOKENS) :]
    order = log_probs.sort(dim=-1, descending=True, stable=True)
    pairs = zip(order.indices[:, :count].tolist(), order.values[:, :count].tolist(), strict=True)
    return [[PredictedLabels([label + len(SPECIAL_TOKENS)], p) for label, p in zip(*row, strict=True)] for row in pairs]


def count_correct_labels(logits: Tensor, labels: Tensor) -> EvaluationSums:
    """-log p and accuracy of labels (n,) under logits (n, V), by the labels that would be given."""
    known_rows = (labels != UNK_ID).nonzero().squeeze(1)
    nll = F.cross_entropy(logits[known_rows], labels[known_rows], reduction="sum")
    return EvaluationSums(
        nll, (best_log_prob_and_label(logits)[1] == labels).sum(), len(known_rows), len(labels) - len(known_rows)
    )


def check_has_sources(data: Dataset, task: str) -> None:
    """Raise DataError if a task reads sources, and no example of a split has one."""
    for name, split in {"train": data.train, "valid": data.valid, **data.tests}.items():
        if split.images is None and not any(part.source_lengths.any() for part in split.iterate_parts()):
            raise DataError(
                f'all sources of the {name} split are empty, and model.task = "{task}" reads them: make the dataset '
                'with sources, or set model.task = "language_model" for texts alone'
            )


def check_known_labels(valid: Split) -> None:
    """Raise DataError if training has none of the labels of the validation split."""
    ids, _ = valid.target.take(np.arange(len(valid)))
    if len(ids) and (ids == UNK_ID).all():
        raise DataError("none of the labels of the valid split is in the training data: nothing can be validated")


@dataclass(frozen=True)
class TaskContext:
    """The facts from which a task is made.

    image_tokens: the number of tokens that the model makes of an image, where sources are images. guide: a further loss
    of translation; None for none.
    """

    config: TrainingConfig
    model: ModelConfig
    source: Tokenizer
    target: Tokenizer
    batch_tokens: int
    image_tokens: int = 1
    guide: "AlignmentLoss | None" = None


class AlignmentLoss(Protocol):
    """A further loss of a network's pass over the pairs of a batch."""

    def add_alignment_loss(self, model: Any, batch: PairBatch, compute: Callable[[], LossSums]) -> LossSums:
        """Return the loss that `compute` returns, with the further one.

        Args:
            model: the network.
            batch: the batch that is read.
            compute: runs the network over the batch.
        """


class Task(Protocol):
    """Interface of a task, as training, validation and scoring need it. The result of `batch` has `.to(device)`.

    has_perplexity: whether the loss is -log p of the predictions, so that there is a perplexity. num_draws: the number
    of random draws that `evaluate` sums up; each follows from the text and its number alone. empty_message: the words
    for a split without predictions.
    """

    has_perplexity: bool
    num_draws: int
    empty_message: str

    def batch(self, split: Split, rows: Rows) -> Any: ...
    def lengths(self, split: Split) -> tuple[Ints, Ints]: ...
    def num_predictions(self, split: Split) -> Ints: ...
    def expected_predictions(self, split: Split) -> Floats: ...
    def epochs(self, split: Split, budget: int, seed: int) -> EpochBatches:
        """Return the batches of each epoch, by its number, and their number.

        Args:
            split: the examples.
            budget: tokens of a batch.
            seed: seed of the order.
        """

    def ordered_batches(self, split: Split, budget: int) -> Sequence[Rows]: ...
    def check_data(self, data: Dataset, model: ModelConfig) -> None: ...
    def prepare_model(self, model: Any, data: Dataset) -> None: ...
    def loss(self, model: Any, batch: Any) -> LossSums: ...
    def evaluate(self, model: Any, batch: Any) -> EvaluationSums: ...
    def largest_batch(self, split: Split, budget: int) -> Rows: ...
    def num_tokens(self, split: Split, rows: Rows) -> int: ...
    def describe_batch(self, split: Split, rows: Rows) -> str: ...


class PairTask:
    """The part of a task that concerns its examples, if they are the pairs of a dataset, or one side of them.

    empty_message: the words for a split without predictions. image_tokens: the number of tokens that an image counts in
    a batch.
    """

    has_perplexity = True
    num_draws = 1
    empty_message = "no examples"
    image_tokens = 1

    def batch(self, split: Split, rows: Rows) -> Any:
        """The examples at these row numbers as one batch."""
        return make_pair_batch(split, rows)

    def lengths(self, split: Split) -> tuple[Ints, Ints]:
        """Return (rows,) the tokens a side that a batch holds of each example, end tokens counted."""
        if split.images is not None:
            return np.full(len(split), self.image_tokens), split.target_lengths + 1
        return split.source_lengths + 1, split.target_lengths + 1

    def num_predictions(self, split: Split) -> Ints:
        """Return (rows,) the number of predictions in the loss of each example; those with none are in no batch."""
        return split.target_lengths + 1

    def expected_predictions(self, split: Split) -> Floats:
        """Return (rows,) the rows of the output layer that an update computes of each example, in expectation over its
        draws.
        """
        return self.num_predictions(split).astype(np.float64)

    def epochs(self, split: Split, budget: int, seed: int) -> EpochBatches:
        """Return the batches of each epoch, by its number, and their number.

        Args:
            split: the examples.
            budget: tokens of a batch.
            seed: seed of the order.
        """
        if split.is_sharded:
            return make_sharded_epochs(self, split, budget, seed)
        lengths = self.lengths(split)
        split = replace(split, weights=split.weights[:] * (self.num_predictions(split) > 0))

        def epoch(index: int) -> Sequence[Rows]:
            batches = make_batches(
                *lengths, budget=budget, seed=seed, epoch=index, weights=split.weights_in_epoch(index)
            )
            if not batches:
                raise empty_epoch_error(index)
            return batches

        size = make_batch_counter(np.maximum(*lengths), budget=budget, seed=seed, epoch_weights=split.weights_in_epoch)

        def num_batches(epoch: int) -> int:
            batches = size(epoch)
            if not batches:
                raise empty_epoch_error(epoch)
            return batches

        return EpochBatches(epoch, num_batches, int(np.maximum(*lengths).sum()))

    def ordered_batches(self, split: Split, budget: int) -> Sequence[Rows]:
        """Every example once of which something is predicted, in batches for validation."""
        rows = np.flatnonzero(self.num_predictions(split))
        source, target = self.lengths(split)
        return [rows[batch] for batch in length_sorted_batches(source[rows], target[rows], budget=budget)]

    def check_data(self, data: Dataset, model: ModelConfig) -> None:
        """Raise DataError if an example is longer than the model can read, or a split has nothing to predict."""
        for name, split in {"train": data.train, "valid": data.valid, **data.tests}.items():
            if not any(self.num_predictions(part).any() for part in split.iterate_parts()):
                raise DataError(f"the {name} split has {self.empty_message}; make the dataset again with more data")
        for name, split in (("train", data.train), ("valid", data.valid)):
            too_long = longest = 0
            for part in split.iterate_parts():
                lengths = self.lengths(part)
                longer = np.maximum(*lengths) if split.images is None else lengths[1]
                too_long += int((longer > model.max_length).sum())
                longest = max(longest, int(longer.max()))
            if too_long:
                remedy = "raise it, or lower data.limits.max_length" if name == "train" else "raise it"
                share = format_share(too_long, len(split), f"{name} example", "has", "have")
                raise DataError(
                    f"{share} more than model.max_length = {model.max_length} pieces (the longest {longest}, end "
                    f"token included); {remedy}"
                )

    def prepare_model(self, model: Any, data: Dataset) -> None:
        """Give a model whose training begins the facts of the data that it needs; most know it by learning."""

    def largest_batch(self, split: Split, budget: int) -> Rows:
        """The longest examples, as many as a batch may hold: none takes more for attention."""
        rows, larger, begin = np.empty(0, np.int64), np.empty(0, np.int64), 0
        for part in split.iterate_parts():
            larger = np.concatenate([larger, np.maximum(*self.lengths(part))])
            longest = np.argsort(larger, kind="stable")[-max(1, budget // int(larger.max())) :]
            rows = np.concatenate([rows, np.arange(begin, begin + len(part))])[longest]
            larger, begin = larger[longest], begin + len(part)
        return rows

    def num_tokens(self, split: Split, rows: Rows) -> int:
        """The tokens of a batch, both sides together."""
        return sum(int(lengths.sum()) for lengths in self.lengths(split.select_training_rows(rows)))

    def describe_batch(self, split: Split, rows: Rows) -> str:
        """A batch in words, for a message that it does not fit in memory."""
        longest = max(int(lengths.max()) for lengths in self.lengths(split.select_training_rows(rows)))
        return f"a batch of {format_count(len(rows), 'row')} x {format_count(longest, 'token')}"
