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

from dataclasses import dataclass

import torch
from torch import Tensor

from model.layout import Layout
from pipeline.decoding.candidates import best_candidates
from pipeline.decoding.greedy import exact_dtype
from pipeline.decoding.hypothesis import Hypothesis, best_first
from pipeline.decoding.rules import NEVER, Rules
from pipeline.decoding.steppers import StateT, Stepper
from tokenizer.special import BOS_ID, EOS_ID


@dataclass(frozen=True)
class _Beams:
    """The unfinished hypotheses of B sentences, and what their sentences have finished."""

    sentences: Tensor
    """(B,) numbers of the sentences, on the CPU."""
    tokens: Tensor
    """(B, W) the piece that each hypothesis ends with."""
    pieces: Tensor
    """(B, W, T) all its pieces."""
    sums: Tensor
    """(B, W) its log-probability; -inf where the beam is not full."""
    num_finished: Tensor
    """(B,)"""
    best: Tensor
    """(B, n_best) scores of the best finished hypotheses, -inf where there are fewer."""
    bound: Tensor
    """(B,) the length norm of the longest hypothesis that a sentence may have."""

    def select(self, rows: Tensor, rows_cpu: Tensor) -> "_Beams":
        """Some of the sentences."""
        return _Beams(
            self.sentences[rows_cpu], self.tokens[rows], self.pieces[rows], self.sums[rows], self.num_finished[rows],
            self.best[rows], self.bound[rows],
        )  # fmt: skip


def beam_search(
    stepper: Stepper[StateT], source: Tensor, layout: Layout, rules: Rules, *, beam: int, n_best: int
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of each sentence that a beam of width `beam` finds, best score first.

    source (N,) holds the ids of B sentences, end tokens included, as `layout` says. A sentence has fewer than `n_best`
    only where its rules allow fewer. Ties go to the lowest beam, then the lowest id. A sentence that is done leaves
    the batch at once.
    """
    found: list[list[Hypothesis]] = [[] for _ in range(layout.batch)]
    beams = _start(layout.batch, rules, source.device, n_best)
    state = stepper.start(source, layout)
    while True:
        log_probs, state = stepper.step(beams.tokens.flatten(), state)
        log_probs_BWV = log_probs.reshape(*beams.tokens.shape, -1)
        rules.apply(log_probs_BWV, beams.pieces.size(2))
        values, parents, tokens = best_candidates(log_probs_BWV, beams.sums, 2 * beam)
        divisor = rules.divisors[beams.pieces.size(2) + 1].item()
        ends = (tokens == EOS_ID) & (values != NEVER)
        stays = ends.to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam]
        finished = ends[:, :beam]
        grown = _grow(beams, values.gather(1, stays), parents.gather(1, stays), tokens.gather(1, stays))
        grown = _count(grown, finished, values[:, :beam] / divisor)

        from_rows = parents.gather(1, stays) + beams.tokens.size(1) * _count_up(grown.tokens).unsqueeze(1)
        moved = (from_rows.flatten() != _count_up(from_rows.flatten())).any().expand(len(from_rows))
        done = _is_done(grown, divisor, beam)
        # one transfer a step tells all that decides what happens next
        flags = torch.cat([finished, done.unsqueeze(1), moved.unsqueeze(1)], 1).cpu()
        if flags[:, :beam].any():
            _collect(found, beams, flags[:, :beam], values, parents, divisor)
        if flags[:, beam].any():
            left_cpu = (~flags[:, beam]).nonzero().squeeze(1)
            if not len(left_cpu):
                return [best_first(hypotheses, n_best) for hypotheses in found]
            left = left_cpu.to(source.device)
            grown, rules, from_rows = grown.select(left, left_cpu), rules.select(left_cpu), from_rows[left]
            state = state.select(from_rows.flatten())
        elif flags[0, -1] or from_rows.shape != beams.tokens.shape:
            state = state.select(from_rows.flatten())
        beams = grown


def _start(num_sentences: int, rules: Rules, device: torch.device, n_best: int) -> _Beams:
    """One empty hypothesis a sentence: the first step's candidates fill the beam."""
    dtype = exact_dtype(device)
    return _Beams(
        sentences=torch.arange(num_sentences),
        tokens=torch.full((num_sentences, 1), BOS_ID, device=device),
        pieces=torch.empty((num_sentences, 1, 0), dtype=torch.int64, device=device),
        sums=torch.zeros((num_sentences, 1), dtype=dtype, device=device),
        num_finished=torch.zeros(num_sentences, dtype=torch.int64, device=device),
        best=torch.full((num_sentences, n_best), NEVER, dtype=dtype, device=device),
        bound=rules.divisors[rules.longest + 1].to(device, dtype),
    )


def _grow(beams: _Beams, sums: Tensor, parents: Tensor, tokens: Tensor) -> _Beams:
    """Each hypothesis `parents` (B, W) with its new piece `tokens` (B, W), of log-probability `sums` (B, W)."""
    pieces = beams.pieces.gather(1, parents.unsqueeze(-1).expand(-1, -1, beams.pieces.size(2)))
    pieces = torch.cat([pieces, tokens.unsqueeze(-1)], -1)
    return _Beams(beams.sentences, tokens, pieces, sums, beams.num_finished, beams.best, beams.bound)


def _count(beams: _Beams, finished: Tensor, scores: Tensor) -> _Beams:
    """The same beams, with the hypotheses that have just finished (B, W) counted and their scores kept."""
    best = torch.cat([beams.best, scores.masked_fill(~finished, NEVER)], 1).topk(beams.best.size(1)).values
    num_finished = beams.num_finished + finished.sum(1)
    return _Beams(beams.sentences, beams.tokens, beams.pieces, beams.sums, num_finished, best, beams.bound)


def _is_done(beams: _Beams, divisor: float, beam: int) -> Tensor:
    """Which sentences (B,) need no further step; `divisor` is the length norm of what has just finished."""
    leading, rival = beams.sums[:, 0], beams.best[:, -1]
    hopeless = leading / beams.bound < rival
    enough = (beams.num_finished >= beam) & (leading / divisor <= rival)
    nothing_left = ~(leading > NEVER)  # true also of what is not a number
    return hopeless | enough | nothing_left


def _count_up(rows: Tensor) -> Tensor:
    return torch.arange(len(rows), device=rows.device)


def _collect(
    found: list[list[Hypothesis]], beams: _Beams, finished: Tensor, values: Tensor, parents: Tensor, divisor: float
) -> None:
    """Add to `found` the hypotheses that end here; finished (B, W) on the CPU."""
    rows, ranks = (index.to(values.device) for index in finished.nonzero(as_tuple=True))
    sentences = beams.sentences[finished.nonzero()[:, 0]].tolist()
    pieces = beams.pieces[rows, parents[rows, ranks]].tolist()
    for sentence, ids, log_prob in zip(sentences, pieces, values[rows, ranks].tolist(), strict=True):
        found[sentence].append(Hypothesis(tuple(ids), log_prob / divisor, log_prob))
