"""The interface between searches and models: start, step, select; independent of the architecture.

The encoder-decoder satisfies `Stepper` itself, as do the recurrent and the decoder-only model and an ensemble.
"""

from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from tfm.model.layers.log_probs import LogProbFn
from tfm.model.layout import Layout


class DecodingState(Protocol):
    """All that a model remembers of R unfinished hypotheses, one a row."""

    def select(self, rows: Tensor, /) -> Self:
        """The state whose row i is row `rows[i]` of this one; rows (R',) int64 may repeat or be left out.

        The rows of one sentence lie next to each other, in the order of the sentences, and equally many a sentence.
        """

    def replace(self, rows: Tensor, other: Self, /) -> Self:
        """Return the state in which `rows` (R',) int64, all rows of some sentences, have given their places to those
        of `other`, whose sentences have read no piece yet. The old state is consumed.
        """


StateT = TypeVar("StateT", bound=DecodingState)


class Stepper(Protocol[StateT]):
    """A model of the next piece, given a source and the pieces so far."""

    @property
    def max_length(self) -> int:
        """The longest source (pieces and end token) and the longest target (begin token and pieces)."""

    def source_layout(self, source: Tensor, lengths: Tensor, /) -> Layout:
        """Return the layout of sources as the model reads them. lengths (B,): of texts; images (B, ...) have their
        own.
        """

    def start(self, source: Tensor, layout: Layout, /) -> StateT:
        """The state before the first step, one row a sentence; source (N,) holds the ids, each end token included, or
        images (B, channels, height, width)."""

    def step(self, tokens: Tensor, state: StateT, /) -> tuple[LogProbFn, StateT]:
        """Return the log-probabilities of the pieces after `tokens` (R,), one a row, and the state that has read the
        tokens.
        """


class LanguageModel(Stepper[StateT], Protocol[StateT]):
    """A model of the next piece given the pieces so far alone, of which the begin token is the first.

    `start` reads pieces as `empty_state` and a step for each would.
    """

    def empty_state(self, batch: int, device: torch.device, /) -> StateT:
        """The state of so many texts of which nothing has been read, one row each."""
