"""A model that computes the probabilities of a shortlist alone, as a `Stepper` like any other.

For sentences side by side the output layer computes the union of their candidates, and each sentence keeps its own: its
probabilities do not depend on those beside it.

Legend: B sentences · R hypotheses · V vocabulary · U candidates of any of the sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from tfm.model.layers.linear import Linear
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfCandidates, LogProbsOfLogits, RowSelection
from tfm.model.layout import Layout
from tfm.pipeline.decoding.shortlist import Shortlist


class CandidateUnion:
    """The candidates of some sentences together.

    Args:
        members: (B, V) true where a piece is a candidate of a sentence.
    """

    def __init__(self, members: Tensor) -> None:
        self.members = members
        self.ids = members.any(0).nonzero().squeeze(1)
        self._multiply: tuple[Linear, Callable[[Tensor], Tensor]] | None = None

    @classmethod
    def from_source(cls, shortlist: Shortlist, source: Sequence[int]) -> Self:
        """The candidates of one sentence, of which source has the ids, end token included."""
        members = torch.zeros(1, shortlist.vocab_size, dtype=torch.bool)
        members[0, torch.from_numpy(shortlist.candidates(source))] = True
        return cls(members)

    @cached_property
    def penalty(self) -> Tensor:
        """(B, U): 0 where a piece is a candidate of a sentence, -inf elsewhere."""
        is_outside = ~self.members[:, self.ids]
        return torch.zeros_like(is_outside, dtype=torch.float32).masked_fill_(is_outside, float("-inf"))

    def multiply(self, output: Linear, hidden: Tensor) -> Tensor:
        """Return the logits (r, U) of the candidates; hidden (r, E)."""
        if self._multiply is None or self._multiply[0] is not output:
            self._multiply = output, output.select_outputs(self.ids)
        return self._multiply[1](hidden)

    def select(self, sentences: Tensor) -> "CandidateUnion":
        """The candidates of some of the sentences."""
        return CandidateUnion(self.members[sentences])


@dataclass(frozen=True)
class ShortlistState:
    """A state of the model, and the candidates of the sentences of its hypotheses.

    Args:
        inner: the state of the model.
        union: the candidates of B sentences.
        sentences: (R,) the sentence of each hypothesis.
    """

    inner: Any
    union: CandidateUnion
    sentences: Tensor

    def select(self, rows: Tensor) -> Self:
        """As `DecodingState.select`; with half of the sentences the union is made again, which is then smaller."""
        inner, sentences = self.inner.select(rows), self.sentences[rows]
        remaining, indices = torch.unique(sentences, return_inverse=True)
        if 2 * len(remaining) > len(self.union.members):
            return replace(self, inner=inner, sentences=sentences)
        return replace(self, inner=inner, union=self.union.select(remaining), sentences=indices)

    def replace(self, rows: Tensor, other: "ShortlistState") -> "ShortlistState":
        """As `DecodingState.replace`."""
        sentences = self.sentences.clone()
        sentences[rows] = other.sentences + len(self.union.members)
        remaining, indices = torch.unique(sentences, return_inverse=True)
        members = torch.cat([self.union.members, other.union.members])[remaining]
        return ShortlistState(self.inner.replace(rows, other.inner), CandidateUnion(members), indices)


class ShortlistStepper:
    """A `Stepper` of translations in which only candidates of a shortlist may come.

    Args:
        stepper: a model of texts, or several.
        shortlist: of its vocabularies.
    """

    def __init__(self, stepper: Any, shortlist: Shortlist) -> None:
        self._stepper, self._shortlist = stepper, shortlist
        self.max_length: int = stepper.max_length
        self.source_layout: Callable[[Tensor, Tensor], Layout] = stepper.source_layout

    def start(self, source: Tensor, layout: Layout) -> ShortlistState:
        """As `Stepper.start`."""
        members = torch.zeros(layout.batch, self._shortlist.vocab_size, dtype=torch.bool)
        ids, ends = source.tolist(), layout.lengths.cumsum(0).tolist()
        for number, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
            members[number, torch.from_numpy(self._shortlist.candidates(ids[first:end]))] = True
        union = CandidateUnion(members.to(source.device))
        return ShortlistState(
            self._stepper.start(source, layout), union, torch.arange(layout.batch, device=source.device)
        )

    def step(self, tokens: Tensor, state: ShortlistState) -> tuple[LogProbFn, ShortlistState]:
        """As `Stepper.step`."""
        predict, inner = self._stepper.step(tokens, state.inner)
        return restrict_to_candidates(predict, state.union, state.sentences), replace(state, inner=inner)


def restrict_to_candidates(predict: LogProbFn, union: CandidateUnion, sentences: Tensor) -> LogProbFn:
    """Return p(v) / sum of p(u) over the candidates u, 0 of all other pieces v.

    Args:
        predict: p of the hypotheses.
        union: the candidates of B sentences.
        sentences: (R,) the sentence of each hypothesis.
    """
    if isinstance(predict, LogProbsOfLogits) and isinstance(predict.output, Linear) and predict.hidden is not None:
        output, hidden = predict.output, predict.hidden

        def logits(rows: RowSelection) -> Tensor:
            scores = union.multiply(output, hidden[rows])
            return scores.add_(union.penalty[sentences[rows]].to(scores.dtype))

        return LogProbsOfCandidates(logits, union.ids, union.members.shape[1])

    def log_probs(rows: RowSelection) -> Tensor:
        scores = predict(rows).masked_fill_(~union.members[sentences[rows]], float("-inf"))
        return scores.sub_(scores.logsumexp(-1, keepdim=True))

    return log_probs
