"""The beam with forced phrases: divided among hypotheses by how many forced pieces they have completed.

Dynamic beam allocation (Post and Vilar 2018): candidates are the best continuations overall, as usual, the best one of
each hypothesis, and the next piece of each phrase. Candidates with the same number of completed pieces form a bank,
and the banks take turns, the one with the most first, until the beam is full. A rare forced word is thus not pruned
before the rest of its sentence makes it likely. An end token finishes a hypothesis if it is among the W best of its
bank. A sentence without phrases has one bank: its beam is that of ordinary beam search.

Legend: B sentences · W hypotheses a sentence · V vocabulary · Q candidates.
"""

import torch
from torch import Tensor

from tfm.model.layers.log_probs import LogProbFn
from tfm.pipeline.decoding.constraints.lexical import ForcedPhrases
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.limits import NEG_INF
from tfm.pipeline.decoding.search.top_k import best_candidates
from tfm.tokenizer.special import EOS_ID


def banked_continuations(
    predict: LogProbFn, rules: LogitsProcessor, num_pieces: Tensor, pieces: Tensor, sums: Tensor, beam: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the continuations of hypotheses: first the end tokens that finish one, then the `beam` that stay, best
    first.

    Args:
        predict: (rows) -> their log-probabilities.
        rules: the rules of these sentences.
        num_pieces: (B,), on the CPU: the number of pieces so far.
        pieces: (B, W, T).
        sums: (B, W), the log-probability of each hypothesis.
        beam: W.

    Returns:
        Values, parents and tokens (B, 2 * beam); value -inf behind the last one.
    """
    forced = rules.forced
    assert forced is not None
    log_probs = predict(slice(None)).view(*sums.shape, -1)
    rules.apply(log_probs, num_pieces, pieces)
    values, parents, tokens = _bank_candidates(log_probs, forced, num_pieces, pieces, sums, beam)
    num_missing = _count_unmet_constraints(forced, num_pieces, pieces, parents, tokens)
    live, is_eos = values > NEG_INF, tokens == EOS_ID
    finished = live & is_eos & (_rank_within_bank(live, num_missing) < beam)
    is_surviving = select_round_robin(live & ~is_eos, num_missing, beam)
    order = torch.where(finished, 0, torch.where(is_surviving, 1, 2)).sort(dim=1, stable=True)
    indices = order.indices[:, : 2 * beam]
    is_excluded = order.values[:, : 2 * beam] == 2
    return (
        values.gather(1, indices).masked_fill(is_excluded, NEG_INF),
        parents.gather(1, indices),
        tokens.gather(1, indices),
    )


def best_finishable_sums(forced: ForcedPhrases, num_pieces: Tensor, pieces: Tensor, sums: Tensor) -> Tensor:
    """Return the largest of the sums of hypotheses that lack no forced phrase.

    Args:
        forced: the forced phrases.
        num_pieces: (B,), on the CPU: the number of pieces so far.
        pieces: (B, W, T).
        sums: (B, W), the log-probability of each hypothesis.

    Returns:
        (B,).
    """
    num_missing_pieces = forced.progress(num_pieces, pieces).lacking
    return sums.masked_fill(num_missing_pieces > 0, NEG_INF).amax(1)


def _bank_candidates(
    log_probs: Tensor, forced: ForcedPhrases, num_pieces: Tensor, pieces: Tensor, sums: Tensor, beam: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, parents and tokens (B, Q), best first, each pair of parent and token once."""
    _, width, vocab = log_probs.shape
    values, parents, tokens = best_candidates(log_probs, sums, 2 * beam)
    following = forced.progress(num_pieces, pieces).following
    extra_tokens = torch.cat([log_probs.max(2, keepdim=True).indices, following], 2)
    extra_values = (log_probs.gather(2, extra_tokens) + sums.unsqueeze(2)).flatten(1)
    extra_parents = torch.arange(width, device=sums.device).view(1, -1, 1).expand_as(extra_tokens).flatten(1)
    values = torch.cat([values, extra_values], 1)
    parents, tokens = torch.cat([parents, extra_parents], 1), torch.cat([tokens, extra_tokens.flatten(1)], 1)
    pairs = parents * vocab + tokens
    is_duplicate = (pairs.unsqueeze(2) == pairs.unsqueeze(1)).tril(-1).any(2)
    values, order = values.masked_fill(is_duplicate, NEG_INF).sort(dim=1, descending=True, stable=True)
    return values, parents.gather(1, order), tokens.gather(1, order)


def _count_unmet_constraints(
    forced: ForcedPhrases, num_pieces: Tensor, pieces: Tensor, parents: Tensor, tokens: Tensor
) -> Tensor:
    """Return (B, Q) the number of pieces that each candidate would still need."""
    longest = int(num_pieces.max())
    extended_pieces = pieces[..., :longest].gather(1, parents.unsqueeze(2).expand(-1, -1, longest))
    extended_pieces = torch.cat([extended_pieces, tokens.unsqueeze(2)], 2)
    positions = num_pieces.to(extended_pieces.device).view(-1, 1, 1).expand(-1, tokens.shape[1], 1)
    return forced.progress(num_pieces + 1, extended_pieces.scatter(2, positions, tokens.unsqueeze(2))).remaining


def select_round_robin(is_available: Tensor, banks: Tensor, beam: int) -> Tensor:
    """Select candidates: the best of each bank, then the second of each, and so on, the bank that needs least first.

    Args:
        is_available: (B, Q), whether a candidate can be selected; candidates stand best first.
        banks: (B, Q), the number of pieces that it still needs, which is its bank.
        beam: number of candidates to select.

    Returns:
        (B, Q), true for the selected ones.
    """
    sort_keys = _rank_within_bank(is_available, banks) * (int(banks.max()) + 1) + banks
    sort_keys = sort_keys.masked_fill(~is_available, torch.iinfo(sort_keys.dtype).max)
    first = sort_keys.sort(dim=1, stable=True).indices[:, :beam]
    return torch.zeros_like(is_available).scatter_(1, first, True) & is_available


def _rank_within_bank(is_available: Tensor, banks: Tensor) -> Tensor:
    """Return (B, Q) the number of candidates of its bank that are better than each."""
    is_better = torch.ones(
        is_available.shape[1], is_available.shape[1], dtype=torch.bool, device=is_available.device
    ).tril(-1)
    return ((banks.unsqueeze(2) == banks.unsqueeze(1)) & is_available.unsqueeze(1) & is_better).sum(2)
