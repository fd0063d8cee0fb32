"""The beams of some sentences: their unfinished hypotheses, those that have finished, and when a sentence is done.

All in numpy on the CPU: the arrays are small, and launching so many small operations on a device would take longer
than computing them. `beam.py` searches with them in any model, `numpy_beam_search.py` without torch.

Legend: B sentences · W hypotheses of each · T pieces.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm.pipeline.decoding.limits import NEG_INF
from tfm.tokenizer.special import BOS_ID, EOS_ID

Ids = npt.NDArray[np.int64]
Reals = npt.NDArray[np.floating[Any]]
Flags = npt.NDArray[np.bool_]


@dataclass
class Beams:
    """The unfinished hypotheses of the sentences in B slots, and the scores of those that have finished.

    Hypotheses that begin or finish are written into the arrays; a step makes new arrays of those that grow.
    """

    tokens: Ids
    """(B, W) the piece that each hypothesis ends with."""
    pieces: Ids
    """(B, W, T) all its pieces, and whatever beyond them."""
    sums: Reals
    """(B, W) its log-probability; -inf where the beam is not full, and in a free slot."""
    num_finished: Ids
    """(B,)"""
    best: Reals
    """(B, n_best) scores of the best finished hypotheses, -inf where there are fewer."""
    bound: Reals
    """(B,) the length norm of the longest hypothesis that a sentence may have."""

    @classmethod
    def start(cls, n_best: int, bound: Reals) -> "Beams":
        """Return beams with one empty hypothesis in each slot: the first step's candidates fill the beam."""
        num_slots = len(bound)
        return cls(
            tokens=np.full((num_slots, 1), BOS_ID),
            pieces=np.empty((num_slots, 1, 0), np.int64),
            sums=np.zeros((num_slots, 1)),
            num_finished=np.zeros(num_slots, np.int64),
            best=np.full((num_slots, n_best), NEG_INF),
            bound=bound,
        )

    def select(self, slots: Ids) -> "Beams":
        """Some of the slots."""
        return Beams(*(each[slots] for each in vars(self).values()))

    def reset_slots(self, slots: Ids, bound: Reals) -> None:
        """Put an empty hypothesis into these slots (n,), of sentences with this bound (n,)."""
        self.tokens[slots] = BOS_ID
        self.sums[slots] = NEG_INF
        self.sums[slots, 0] = 0.0
        self.num_finished[slots] = 0
        self.best[slots] = NEG_INF
        self.bound[slots] = bound

    def record_finished(self, finished: Flags, scores: Reals) -> None:
        """Count the hypotheses that have just finished (B, W), and keep their scores (B, W)."""
        self.num_finished[:] += finished.sum(1)
        candidate_scores = np.concatenate([self.best, np.where(finished, scores, NEG_INF)], axis=1)
        self.best[:] = np.sort(candidate_scores, axis=1)[:, : -self.best.shape[1] - 1 : -1]

    def extend(self, sums: Reals, parents: Ids, tokens: Ids, num_pieces: Ids) -> "Beams":
        """Return the beams in which each hypothesis has grown by a piece.

        Args:
            sums: (B, W), the new log-probabilities.
            parents: (B, W), the hypotheses that grow.
            tokens: (B, W), their new pieces.
            num_pieces: (B,), the number of pieces that they had before.
        """
        rows = np.arange(len(parents))[:, None]
        pieces = self.pieces[rows, parents]
        if (missing := int(num_pieces.max()) + 1 - pieces.shape[2]) > 0:
            pieces = np.pad(pieces, ((0, 0), (0, 0), (0, missing + 8)))
        pieces[rows, np.arange(parents.shape[1]), num_pieces[:, None]] = tokens
        return replace(self, tokens=tokens, pieces=pieces, sums=sums)

    def done_mask(self, divisors: Reals, beam: int, may_end: Reals) -> Flags:
        """Return a mask of the sentences that need no further step.

        Args:
            divisors: (B,), the length norms of the hypotheses that have just finished.
            beam: W.
            may_end: (B,), log-probabilities of the best unfinished hypotheses that may end.

        Returns:
            (B,).
        """
        leading, worst_finished = self.sums[:, 0], self.best[:, -1]
        cannot_improve = leading / self.bound < worst_finished
        has_enough = (self.num_finished >= beam) & (may_end / divisors <= worst_finished)
        is_exhausted = ~(leading > NEG_INF)  # true also of what is not a number
        mask: Flags = cannot_improve | has_enough | is_exhausted
        return mask


def eos_mask(values: Reals, tokens: Ids) -> Flags:
    """Return a mask of the continuations (B, 2 W), of these log-probabilities and pieces, that end a hypothesis."""
    mask: Flags = (tokens == EOS_ID) & (values != NEG_INF)
    return mask


def top_unfinished_indices(is_eos: Flags, beam: int) -> Ids:
    """Return the indices (B, W) of the best continuations that do not end, as is_eos (B, 2 W) says; they stay in the
    beam.
    """
    return np.argsort(is_eos, axis=1, kind="stable")[:, :beam]
