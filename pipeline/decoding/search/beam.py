"""Beam search: the W most probable unfinished hypotheses of each sentence, in parallel, until enough have finished.

The search uses only start, step and select of the model (`stepper.py`).

At each step the 2W best continuations of a sentence are considered. An end token among the W best of them finishes a
hypothesis; the W best others stay in the beam. A sentence is done when W hypotheses have finished and the best
unfinished one, if its end token cost nothing, would score no better than the `n_best` of them. (A model that is sure
of a long translation finishes W poor short ones first: stopping then would lose the good one.) A sentence is done
earlier if no unfinished hypothesis can still enter the `n_best`: a log-probability only decreases, and no length norm
decreases with length, so log p / norm(longest) is the best score that it can reach. With W = 1 this is greedy search:
the end token was more probable than any continuation.

The model runs on its device; the bookkeeping of the beams (`beams.py`) is done on the CPU.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tfm.model.layers.log_probs import LogProbFn
from tfm.model.layout import Layout
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.limits import NEG_INF
from tfm.pipeline.decoding.search.beam_allocation import banked_continuations, best_finishable_sums
from tfm.pipeline.decoding.search.beams import Beams, Flags, Ids, Reals, eos_mask, top_unfinished_indices
from tfm.pipeline.decoding.search.continuous_batching import BatchSlots
from tfm.pipeline.decoding.search.greedy import log_prob_sum_dtype
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, select_n_best
from tfm.pipeline.decoding.search.top_k import best_continuations
from tfm.pipeline.decoding.stepper import StateT, Stepper


def beam_search(
    stepper: Stepper[StateT],
    source: Tensor,
    layout: Layout,
    rules: LogitsProcessor,
    *,
    beam: int,
    n_best: int,
    batch_size: int,
    on_done: Callable[[int], None] = lambda _: None,
) -> list[list[Hypothesis]]:
    """Return the `n_best` hypotheses of each sentence that a beam finds, best score first; ties go to the lowest beam,
    then the lowest id.

    A sentence has fewer than `n_best` only where its rules allow fewer.

    Args:
        stepper: the model.
        source: (N,), the ids of the sentences, end tokens included.
        layout: the layout of the source.
        rules: the rules of the hypotheses of each sentence.
        beam: W.
        n_best: number of hypotheses of each sentence.
        batch_size: the most sentences that are searched for at a time.
        on_done: called with the number of further sentences that are done.
    """
    device, norms = source.device, rules.divisors.numpy()
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(layout.batch)]
    slots = BatchSlots(stepper, source, layout, rules, batch_size)
    beams = Beams.start(n_best, slots.rules.divisors[slots.rules.longest + 1].numpy())
    while True:
        predict, slots.state = stepper.step(torch.from_numpy(beams.tokens.ravel()).to(device), slots.state)
        values, parents, tokens = _best_continuations(predict, slots.rules, slots.num_pieces, beams, beam, device)
        divisors = norms[slots.num_pieces.numpy() + 1]
        is_eos = eos_mask(values, tokens)
        finished = is_eos[:, :beam]
        if finished.any():
            beams.record_finished(finished, values[:, :beam] / divisors[:, None])
            _collect_finished_hypotheses(hypotheses, beams, slots, finished, values, parents, norms)
        rows, survivors = np.arange(len(is_eos))[:, None], top_unfinished_indices(is_eos, beam)
        parents = parents[rows, survivors]
        extended_beams = beams.extend(
            values[rows, survivors], parents, tokens[rows, survivors], slots.num_pieces.numpy()
        )
        done_mask = extended_beams.done_mask(
            divisors, beam, _finishable_scores(extended_beams, slots.rules, slots.num_pieces, device)
        )
        extended_beams.sums[done_mask] = NEG_INF

        parent_rows = (parents + beams.tokens.shape[1] * rows).ravel()
        if len(parent_rows) != beams.tokens.size or (parent_rows != np.arange(len(parent_rows))).any():
            slots.state = slots.state.select(torch.from_numpy(parent_rows).to(device))
        if num_done := slots.advance(torch.from_numpy(done_mask)):
            on_done(num_done)
        beams = extended_beams
        if (deferred := slots.defer_long_sequences()) is not None:
            sentences, empty = deferred
            beams.sums[empty.numpy()] = NEG_INF
            for sentence in sentences:
                hypotheses[sentence].clear()
        if (new := slots.fill(beam)) is not None:
            beams.reset_slots(new.numpy(), norms[rules.longest[slots.sentences[new]].numpy() + 1])
        if (remaining := slots.shrink(beam)) is not None:
            if not len(remaining):
                return [select_n_best(sentence_hypotheses, n_best) for sentence_hypotheses in hypotheses]
            beams = beams.select(remaining.numpy())


def _best_continuations(
    predict: LogProbFn, rules: LogitsProcessor, num_pieces: Tensor, beams: Beams, beam: int, device: torch.device
) -> tuple[Reals, Ids, Ids]:
    """Return values, parents and tokens (B, 2 * beam) of possible continuations, best first."""
    sums = torch.from_numpy(beams.sums).to(device, log_prob_sum_dtype(device))
    looks_back = rules.bans is not None or rules.forced is not None
    pieces = torch.from_numpy(beams.pieces).to(device) if looks_back else None
    if rules.forced is not None and pieces is not None:
        candidates = banked_continuations(predict, rules, num_pieces, pieces, sums, beam)
    else:
        candidates = best_continuations(predict, rules, num_pieces, pieces, sums, beam)
    values, parents, tokens = (each.cpu().numpy() for each in candidates)
    return values, parents, tokens


def _finishable_scores(beams: Beams, rules: LogitsProcessor, num_pieces: Tensor, device: torch.device) -> Reals:
    """Return (B,) the log-probability of the best unfinished hypothesis that may end, now that each has one piece
    more.
    """
    if rules.forced is None:
        return beams.sums[:, 0]
    pieces, sums = torch.from_numpy(beams.pieces).to(device), torch.from_numpy(beams.sums).to(device)
    may_end: Reals = best_finishable_sums(rules.forced, num_pieces + 1, pieces, sums).cpu().numpy()
    return may_end


def _collect_finished_hypotheses(
    hypotheses: list[list[Hypothesis]],
    beams: Beams,
    slots: BatchSlots[StateT],
    finished: Flags,
    values: Reals,
    parents: Ids,
    norms: Reals,
) -> None:
    """Add to `hypotheses` the hypotheses that end here, finished (B, W)."""
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
        hypotheses[sentence].append(Hypothesis(tuple(ids[:length]), score, log_prob))
