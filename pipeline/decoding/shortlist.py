"""A shortlist of the vocabulary: the pieces by which a translation of a sentence may go on, learned from alignments.

With 8,000 pieces or more the output layer is much of a small model's step, and of a sentence a few hundred are likely:
those that were linked most often, in the training data, to the pieces of its source, and the most frequent ones
(Senellart et al. 2018). The probabilities of the others are 0, and those of the shortlist sum to 1.

Legend: V vocabulary of the target · S of the source · K pieces of a source piece · A pieces of every sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tfm.data.arrays import Ints

NO_PIECE = -1


@dataclass(frozen=True)
class Shortlist:
    """The pieces that may come, by the pieces of the source.

    Args:
        by_source: (S, K) ids of the target, the most frequent first, NO_PIECE behind the last.
        always: (A,) ids that may come in every sentence; the control tokens are among them.
        vocab_size: V.

    Raises:
        ValueError: the vocabulary lacks an id; compiled loops do not look whether it has it.
    """

    by_source: NDArray[np.int32]
    always: NDArray[np.int32]
    vocab_size: int

    def __post_init__(self) -> None:
        for ids, minimum in ((self.always, 0), (self.by_source, NO_PIECE)):
            if ids.size and not minimum <= ids.min() <= ids.max() < self.vocab_size:
                raise ValueError("contains ids that the vocabulary does not have")

    @cached_property
    def has_link(self) -> NDArray[np.bool_]:
        """(S,) whether a piece of the source has a linked piece."""
        return np.asarray((self.by_source != NO_PIECE).any(1))

    def candidates(self, source: Sequence[int]) -> Ints:
        """Return the ids, ascending, by which the translation of a source may go on."""
        is_allowed = np.zeros(self.vocab_size + 1, np.bool_)  # the last place is that of NO_PIECE
        is_allowed[self.always] = True
        is_allowed[self.by_source[np.array(source, np.int64)]] = True
        return np.flatnonzero(is_allowed[:-1])
