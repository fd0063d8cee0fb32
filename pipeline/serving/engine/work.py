"""The work that a query is to a model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tfm.pipeline.decoding.search.hypothesis import Hypothesis
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query

if TYPE_CHECKING:
    from tfm.pipeline.decoding.shortlist_stepper import CandidateUnion

ScoredText = tuple[str, float, float, int]
"""A text with its score, its log-probability and its number of tokens."""


@dataclass(frozen=True)
class BeamSearchJob:
    """A sentence of a beam search that runs several at once.

    Args:
        source: its ids, end token included.
        beam: of the search.
        answer: makes the answer of its best hypothesis.
        candidates: the pieces of a shortlist that may come; None: all may.
    """

    source: list[int]
    beam: int
    answer: Callable[[Hypothesis], list[ScoredText]]
    candidates: "CandidateUnion | None" = None


Work = BeamSearchJob | Iterator[Any] | Callable[[], Any]
"""A sentence; the parts of a text or of the work (None: nothing to show yet), of which the last is the answer; or a
function that computes the answer.
"""


class Network(Protocol):
    """A version of a model that a process has loaded."""

    version: ModelVersion

    @property
    def stepper(self) -> Any:
        """The model's step over rows that do not touch each other's; None if each text is done by itself."""

    @property
    def read_source(self) -> Any:
        """The reader of a source for that; None if the stepper reads it."""

    def make_work(self, query: Query) -> Work:
        """Return the work that a query is. Raises TfmError for one that the model cannot do."""


def as_scored_texts(translations: Sequence[Translation]) -> list[ScoredText]:
    """Translations or labels as plain values."""
    return [(each.text, each.score, each.log_prob, each.num_tokens) for each in translations]
