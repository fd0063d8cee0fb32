"""Beam search: the W most probable unfinished hypotheses of each sentence, in parallel, until enough have finished.

Of the model it uses only start, step and select (`stepper.py`).

At each step the 2W best continuations of a sentence are considered. An end token among the W best of them finishes a
hypothesis; the W best others stay in the beam. A sentence is done when W hypotheses have finished and the best
unfinished one, if its end token cost nothing, would score no better than the `n_best` of them. (A model that is sure of
a long translation finishes W poor short ones first: stopping then would lose the good one.) It is done earlier if no
unfinished one can still enter the `n_best`: a log-probability only decreases, and no length norm decreases with length,
so log p / norm(longest) is the best score that it can reach.
With W = 1 this is greedy search: the end token was more probable than any continuation.

The model runs on its device; the bookkeeping of the beams is done on the CPU in numpy: the arrays are small, and
launching so many small operations on a device would take longer than computing them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tfm.model.layers.log_probs import Predict
from tfm.model.layout import Layout
from tfm.pipeline.decoding.constraints.lexical import NEVER
from tfm.pipeline.decoding.constraints.logits_processor import LogitsRules
from tfm.pipeline.decoding.search.beam_allocation import best_that_may_end, continuations_in_banks
from tfm.pipeline.decoding.search.continuous_batching import BatchSlots
from tfm.pipeline.decoding.search.greedy import exact_dtype
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, best_first
from tfm.pipeline.decoding.search.top_k import best_continuations
from tfm.pipeline.decoding.stepper import StateT, Stepper
from tfm.tokenizer.special import BOS_ID, EOS_ID

Ids = npt.NDArray[np.int64]
Reals = npt.NDArray[np.floating[Any]]
Flags = npt.NDArray[np.bool_]


@dataclass
class _Beams:
    """The unfinished hypotheses of the sentences in B slots, and what these sentences have finished.

    What begins or finishes is written into the arrays; a step makes new ones of what grows.
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

    def select(self, slots: Ids) -> "_Beams":
        """Some of the slots."""
        return _Beams(*(each[slots] for each in vars(self).values()))

    def begin(self, slots: Ids, bound: Reals) -> None:
        """Put an empty hypothesis into these slots (n,), of sentences with this bound (n,)."""
        self.tokens[slots] = BOS_ID
        self.sums[slots] = NEVER
        self.sums[slots, 0] = 0.0
        self.num_finished[slots] = 0
        self.best[slots] = NEVER
        self.bound[slots] = bound

    def count(self, finished: Flags, scores: Reals) -> None:
        """Count the hypotheses that have just finished (B, W), and keep their scores (B, W)."""
        self.num_finished[:] += finished.sum(1)
        both = np.concatenate([self.best, np.where(finished, scores, NEVER)], axis=1)
        self.best[:] = np.sort(both, axis=1)[:, : -self.best.shape[1] - 1 : -1]


def beam_search(
    stepper: Stepper[StateT],
    source: Tensor,
    layout: Layout,
    rules: LogitsRules,
    *,
    beam: int,
    n_best: int,
    most: int,
    on_done: Callable[[int], None] = lambda _: None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence that a beam of width `beam` finds, best score first.

    source (N,) holds the ids of the sentences, end tokens included, as `layout` says; at most `most` are searched for
    at a time. A sentence has fewer than `n_best` only where its rules allow fewer. Ties go to the lowest beam, then the
    lowest id. `on_done` is told how many more sentences are done.
    """
    device, norms = source.device, rules.divisors.numpy()
    found: list[list[Hypothesis]] = [[] for _ in range(layout.batch)]
    slots = BatchSlots(stepper, source, layout, rules, most)
    beams = _start(slots, n_best)
    while True:
        predict, slots.state = stepper.step(torch.from_numpy(beams.tokens.ravel()).to(device), slots.state)
        values, parents, tokens = _continuations(predict, slots.rules, slots.num_pieces, beams, beam, device)
        divisors = norms[slots.num_pieces.numpy() + 1]
        ends = (tokens == EOS_ID) & (values != NEVER)
        finished = ends[:, :beam]
        if finished.any():
            beams.count(finished, values[:, :beam] / divisors[:, None])
            _collect(found, beams, slots, finished, values, parents, norms)
        rows, stays = np.arange(len(ends))[:, None], np.argsort(ends, axis=1, kind="stable")[:, :beam]
        parents = parents[rows, stays]
        grown = _grow(beams, values[rows, stays], parents, tokens[rows, stays], slots.num_pieces.numpy())
        done = _is_done(grown, divisors, beam, _may_end(grown, slots.rules, slots.num_pieces, device))
        grown.sums[done] = NEVER

        from_rows = (parents + beams.tokens.shape[1] * rows).ravel()
        if len(from_rows) != beams.tokens.size or (from_rows != np.arange(len(from_rows))).any():
            slots.state = slots.state.select(torch.from_numpy(from_rows).to(device))
        if num_done := slots.advance(torch.from_numpy(done)):
            on_done(num_done)
        beams = grown
        if (late := slots.put_off()) is not None:
            sentences, empty = late
            beams.sums[empty.numpy()] = NEVER
            for sentence in sentences:
                found[sentence].clear()
        if (new := slots.fill(beam)) is not None:
            beams.begin(new.numpy(), norms[rules.longest[slots.sentences[new]].numpy() + 1])
        if (stay := slots.shrink(beam)) is not None:
            if not len(stay):
                return [best_first(hypotheses, n_best) for hypotheses in found]
            beams = beams.select(stay.numpy())


def _start(slots: BatchSlots[StateT], n_best: int) -> _Beams:
    """One empty hypothesis a slot: the first step's candidates fill the beam."""
    num_slots = len(slots)
    return _Beams(
        tokens=np.full((num_slots, 1), BOS_ID),
        pieces=np.empty((num_slots, 1, 0), np.int64),
        sums=np.zeros((num_slots, 1)),
        num_finished=np.zeros(num_slots, np.int64),
        best=np.full((num_slots, n_best), NEVER),
        bound=slots.rules.divisors[slots.rules.longest + 1].numpy(),
    )


def _continuations(
    predict: Predict, rules: LogitsRules, num_pieces: Tensor, beams: _Beams, beam: int, device: torch.device
) -> tuple[Reals, Ids, Ids]:
    """Values, parents and tokens (B, 2 * beam) of possible continuations, best first."""
    sums = torch.from_numpy(beams.sums).to(device, exact_dtype(device))
    looks_back = rules.bans is not None or rules.forced is not None
    pieces = torch.from_numpy(beams.pieces).to(device) if looks_back else None
    if rules.forced is not None and pieces is not None:
        found = continuations_in_banks(predict, rules, num_pieces, pieces, sums, beam)
    else:
        found = best_continuations(predict, rules, num_pieces, pieces, sums, beam)
    values, parents, tokens = (each.cpu().numpy() for each in found)
    return values, parents, tokens


def _may_end(grown: _Beams, rules: LogitsRules, num_pieces: Tensor, device: torch.device) -> Reals:
    """(B,) the log-probability of the best unfinished hypothesis that may end, now that each has one piece more."""
    if rules.forced is None:
        return grown.sums[:, 0]
    pieces, sums = torch.from_numpy(grown.pieces).to(device), torch.from_numpy(grown.sums).to(device)
    may_end: Reals = best_that_may_end(rules.forced, num_pieces + 1, pieces, sums).cpu().numpy()
    return may_end


def _grow(beams: _Beams, sums: Reals, parents: Ids, tokens: Ids, num_pieces: Ids) -> _Beams:
    """Each hypothesis `parents` (B, W) with its new piece `tokens` (B, W), of log-probability `sums` (B, W)."""
    rows = np.arange(len(parents))[:, None]
    pieces = beams.pieces[rows, parents]
    if (missing := int(num_pieces.max()) + 1 - pieces.shape[2]) > 0:
        pieces = np.pad(pieces, ((0, 0), (0, 0), (0, missing + 8)))
    pieces[rows, np.arange(parents.shape[1]), num_pieces[:, None]] = tokens
    return replace(beams, tokens=tokens, pieces=pieces, sums=sums)


def _is_done(beams: _Beams, divisors: Reals, beam: int, may_end: Reals) -> Flags:
    """Which sentences (B,) need no further step; `divisors` (B,) are the length norms of what has just finished,
    `may_end` (B,) log-probabilities of the best unfinished hypotheses that may."""
    leading, rival = beams.sums[:, 0], beams.best[:, -1]
    hopeless = leading / beams.bound < rival
    enough = (beams.num_finished >= beam) & (may_end / divisors <= rival)
    nothing_left = ~(leading > NEVER)  # true also of what is not a number
    done: Flags = hopeless | enough | nothing_left
    return done


def _collect(
    found: list[list[Hypothesis]],
    beams: _Beams,
    slots: BatchSlots[StateT],
    finished: Flags,
    values: Reals,
    parents: Ids,
    norms: Reals,
) -> None:
    """Add to `found` the hypotheses that end here, finished (B, W)."""
    rows, ranks = finished.nonzero()
    lengths, log_probs = slots.num_pieces.numpy()[rows], values[rows, ranks]
    pieces, scores = beams.pieces[rows, parents[rows, ranks]], log_probs / norms[lengths + 1]
    for sentence, ids, length, score, log_prob in zip(
        slots.sentences.numpy()[rows].tolist(),
        pieces.tolist(),
        lengths.tolist(),
        scores.tolist(),
        log_probs.tolist(),
        strict=True,
    ):
        found[sentence].append(Hypothesis(tuple(ids[:length]), score, log_prob))
