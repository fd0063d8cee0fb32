"""Curricula: the epochs in which each training corpus is used, and the number of times that its rows then occur."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints
from tfm.data.errors import DataError


@dataclass(frozen=True)
class CorpusEpochs:
    """One training corpus in a dataset, where the rows of each are contiguous.

    epochs: the first and the last one that use it, counted from 1; None: all.
    """

    rows: int
    epochs: tuple[int, int] | None = None

    def is_active(self, epoch: int) -> bool:
        """Whether the corpus is used in this epoch, counted from 0 as in training."""
        return self.epochs is None or self.epochs[0] <= epoch + 1 <= self.epochs[1]


def epoch_weights(
    weights: NDArray[np.float64], corpus_epochs: Sequence[CorpusEpochs], epoch: int
) -> NDArray[np.float64] | None:
    """The number of times that each row occurs in an epoch: never if its corpus is not used in it.

    Args:
        weights: (rows,) of the rows if they are used.
        corpus_epochs: the epochs in which each corpus is used, in the order of the rows.
        epoch: counted from 0.

    Returns:
        (rows,) weights; None if every row occurs once.
    """
    inactive = [not turn.is_active(epoch) for turn in corpus_epochs]
    if any(inactive):
        weights = np.where(np.repeat(inactive, [turn.rows for turn in corpus_epochs]), 0.0, weights)
    return None if (weights == 1).all() else weights


def active_rows(corpus_epochs: Sequence[CorpusEpochs], epoch: int, rows: Ints) -> NDArray[np.bool_]:
    """Return for each of some rows whether its corpus is used in an epoch.

    Args:
        corpus_epochs: the epochs in which each corpus is used, in the order of the rows; empty: all.
        epoch: counted from 0.
        rows: (n,) row numbers.
    """
    if not corpus_epochs:
        return np.ones(len(rows), np.bool_)
    ends = np.cumsum([turn.rows for turn in corpus_epochs])
    active = np.array([turn.is_active(epoch) for turn in corpus_epochs])
    return active[np.searchsorted(ends, rows, side="right")]


def read_corpus_epochs(corpora: Sequence[Mapping[str, Any]], num_rows: int, file: Path) -> tuple[CorpusEpochs, ...]:
    """Read the epochs in which training corpora take part from dataset.json; none if all take part in every epoch.

    Args:
        corpora: the corpora as dataset.json lists them.
        num_rows: the rows of training data.
        file: dataset.json, for messages.

    Raises:
        DataError: the corpora do not have `num_rows` rows in all.
    """
    if all(each.get("epochs") is None for each in corpora):
        return ()
    turns = [_parse_corpus_epochs(each.get("rows"), each.get("epochs")) for each in corpora]
    corpus_epochs = tuple(turn for turn in turns if turn is not None)
    if len(corpus_epochs) < len(corpora) or sum(turn.rows for turn in corpus_epochs) != num_rows:
        raise DataError("has no valid `train_corpora`", file=file)
    return corpus_epochs


def _parse_corpus_epochs(rows: object, epochs: object) -> CorpusEpochs | None:
    """The turn of a corpus in dataset.json; None if the entry is none."""
    if type(rows) is not int or rows < 0:
        return None
    if epochs is None:
        return CorpusEpochs(rows)
    is_range = isinstance(epochs, list) and len(epochs) == 2 and all(type(each) is int for each in epochs)
    return CorpusEpochs(rows, (epochs[0], epochs[1])) if is_range else None  # type: ignore[index]
