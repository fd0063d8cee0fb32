"""Beam search: the W likeliest unfinished hypotheses of each sentence, side by side, until enough have finished.

It knows of the model only start, step and select (`steppers.py`).

At each step the 2W best continuations of a sentence are looked at. An end token among the W best of them finishes a
hypothesis; the W best others stay in the beam. A sentence is done when W hypotheses have finished and the best
unfinished one would, if it ended now for nothing, score no better than the `n_best` of them. (A model that is sure of a
long translation finishes W poor short ones on its way: to stop just then would lose the good one.) It is done earlier
when no unfinished one can still come among the `n_best`: a log-probability only falls, and no length norm falls with
length, so log p / norm(longest) is the best score that is left to it.
With W = 1 this is greedy search: the end token was likelier than whatever else is unfinished.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from model.layout import Layout
from model.output import Predict
from pipeline.decoding.banks import best_that_may_end, continuations_in_banks
from pipeline.decoding.candidates import best_continuations
from pipeline.decoding.constraints import NEVER
from pipeline.decoding.greedy import exact_dtype
from pipeline.decoding.hypothesis import Hypothesis, best_first
from pipeline.decoding.rules import Rules
from pipeline.decoding.seats import Seats
from pipeline.decoding.steppers import StateT, Stepper
from tokenizer.special import BOS_ID, EOS_ID


@dataclass(frozen=True)
class _Beams:
    """The unfinished hypotheses of the sentences in B seats, and what these sentences have finished."""

    tokens: Tensor
    """(B, W) the piece that each hypothesis ends with."""
    pieces: Tensor
    """(B, W, T) all its pieces, and whatever beyond them."""
    sums: Tensor
    """(B, W) its log-probability; -inf where the beam is not full, and in a free seat."""
    num_finished: Tensor
    """(B,)"""
    best: Tensor
    """(B, n_best) scores of the best finished hypotheses, -inf where there are fewer."""
    bound: Tensor
    """(B,) the length norm of the longest hypothesis that a sentence may have."""

    def select(self, seats: Tensor) -> "_Beams":
        """Some of the seats."""
        return _Beams(*(each[seats] for each in vars(self).values()))

    def begin(self, seats: Tensor, bound: Tensor) -> None:
        """Put an empty hypothesis into these seats (n,), of sentences with this bound (n,)."""
        self.tokens[seats] = BOS_ID
        self.sums[seats] = NEVER
        self.sums[seats, 0] = 0.0
        self.num_finished[seats] = 0
        self.best[seats] = NEVER
        self.bound[seats] = bound


def beam_search(
    stepper: Stepper[StateT],
    source: Tensor,
    layout: Layout,
    rules: Rules,
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
    found: list[list[Hypothesis]] = [[] for _ in range(layout.batch)]
    seats = Seats(stepper, source, layout, rules, most)
    beams = _start(seats, source.device, n_best)
    while True:
        predict, seats.state = stepper.step(beams.tokens.flatten(), seats.state)
        values, parents, tokens = _continuations(predict, seats.rules, seats.num_pieces, beams, beam)
        divisors = rules.divisors[seats.num_pieces + 1].to(beams.sums)
        ends = (tokens == EOS_ID) & (values != NEVER)
        stays = ends.to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam]
        finished = ends[:, :beam]
        parents_of_stays = parents.gather(1, stays)
        grown = _grow(beams, values.gather(1, stays), parents_of_stays, tokens.gather(1, stays), seats.num_pieces)
        grown = _count(grown, finished, values[:, :beam] / divisors.unsqueeze(1))
        done = _is_done(grown, divisors, beam, _may_end(grown, seats.rules, seats.num_pieces))
        grown = replace(grown, sums=grown.sums.masked_fill(done.unsqueeze(1), NEVER))

        from_rows = (parents_of_stays + beams.tokens.size(1) * _count_up(grown.tokens).unsqueeze(1)).flatten()
        moved = (from_rows != _count_up(from_rows)).any().expand(len(done))
        # one transfer tells all that decides what happens next
        flags = torch.cat([finished, done.unsqueeze(1), moved.unsqueeze(1)], 1).cpu()
        if flags[:, :beam].any():
            _collect(found, beams, seats, flags[:, :beam], values, parents, rules)
        if flags[0, -1] or len(from_rows) != beams.tokens.numel():
            seats.state = seats.state.select(from_rows)
        if num_done := seats.advance(flags[:, beam].bool()):
            on_done(num_done)
        beams = grown
        if (late := seats.put_off()) is not None:
            sentences, empty = late
            beams.sums[empty.to(source.device)] = NEVER
            for sentence in sentences:
                found[sentence].clear()
        if (new := seats.fill(beam)) is not None:
            bound = rules.divisors[rules.longest[seats.sentences[new]] + 1]
            beams.begin(new.to(source.device), bound.to(beams.bound))
        if (stay := seats.shrink(beam)) is not None:
            if not len(stay):
                return [best_first(hypotheses, n_best) for hypotheses in found]
            beams = beams.select(stay.to(source.device))


def _start(seats: Seats[StateT], device: torch.device, n_best: int) -> _Beams:
    """One empty hypothesis a seat: the first step's candidates fill the beam."""
    dtype, num_seats = exact_dtype(device), len(seats)
    return _Beams(
        tokens=torch.full((num_seats, 1), BOS_ID, device=device),
        pieces=torch.empty((num_seats, 1, 0), dtype=torch.int64, device=device),
        sums=torch.zeros((num_seats, 1), dtype=dtype, device=device),
        num_finished=torch.zeros(num_seats, dtype=torch.int64, device=device),
        best=torch.full((num_seats, n_best), NEVER, dtype=dtype, device=device),
        bound=seats.rules.divisors[seats.rules.longest + 1].to(device, dtype),
    )


def _continuations(
    predict: Predict, rules: Rules, num_pieces: Tensor, beams: _Beams, beam: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Values, parents and tokens (B, 2 * beam) of what the hypotheses may go on with, best first."""
    if rules.forced is not None:
        return continuations_in_banks(predict, rules, num_pieces, beams.pieces, beams.sums, beam)
    return best_continuations(predict, rules, num_pieces, beams.pieces, beams.sums, 2 * beam)


def _may_end(grown: _Beams, rules: Rules, num_pieces: Tensor) -> Tensor:
    """(B,) the log-probability of the best unfinished hypothesis that may end, now that each has one piece more."""
    if rules.forced is not None:
        return best_that_may_end(rules.forced, num_pieces + 1, grown.pieces, grown.sums)
    return grown.sums[:, 0]


def _grow(beams: _Beams, sums: Tensor, parents: Tensor, tokens: Tensor, num_pieces: Tensor) -> _Beams:
    """Each hypothesis `parents` (B, W) with its new piece `tokens` (B, W), of log-probability `sums` (B, W)."""
    pieces = beams.pieces.gather(1, parents.unsqueeze(-1).expand(-1, -1, beams.pieces.size(2)))
    pieces = F.pad(pieces, (0, max(0, int(num_pieces.max()) + 1 - pieces.size(2))))
    places = num_pieces.to(pieces.device).view(-1, 1, 1).expand(-1, tokens.size(1), 1)
    pieces.scatter_(2, places, tokens.unsqueeze(-1))
    return replace(beams, tokens=tokens, pieces=pieces, sums=sums)


def _count(beams: _Beams, finished: Tensor, scores: Tensor) -> _Beams:
    """The same beams, with the hypotheses that have just finished (B, W) counted and their scores kept."""
    best = torch.cat([beams.best, scores.masked_fill(~finished, NEVER)], 1).topk(beams.best.size(1)).values
    return replace(beams, num_finished=beams.num_finished + finished.sum(1), best=best)


def _is_done(beams: _Beams, divisors: Tensor, beam: int, may_end: Tensor) -> Tensor:
    """Which sentences (B,) need no further step; `divisors` (B,) are the length norms of what has just finished,
    `may_end` (B,) log-probabilities of the best unfinished hypotheses that may."""
    leading, rival = beams.sums[:, 0], beams.best[:, -1]
    hopeless = leading / beams.bound < rival
    enough = (beams.num_finished >= beam) & (may_end / divisors <= rival)
    nothing_left = ~(leading > NEVER)  # true also of what is not a number
    return hopeless | enough | nothing_left


def _count_up(rows: Tensor) -> Tensor:
    return torch.arange(len(rows), device=rows.device)


def _collect(
    found: list[list[Hypothesis]],
    beams: _Beams,
    seats: Seats[StateT],
    finished: Tensor,
    values: Tensor,
    parents: Tensor,
    rules: Rules,
) -> None:
    """Add to `found` the hypotheses that end here; finished (B, W) on the CPU."""
    where = finished.nonzero()[:, 0]
    rows, ranks = (index.to(values.device) for index in finished.nonzero(as_tuple=True))
    pieces = beams.pieces[rows, parents[rows, ranks]].tolist()
    lengths, log_probs = seats.num_pieces[where].tolist(), values[rows, ranks].tolist()
    for sentence, ids, length, log_prob in zip(
        seats.sentences[where].tolist(), pieces, lengths, log_probs, strict=True
    ):
        score = log_prob / rules.divisors[length + 1].item()
        found[sentence].append(Hypothesis(tuple(ids[:length]), score, log_prob))
