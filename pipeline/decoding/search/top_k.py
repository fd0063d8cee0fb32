"""The best continuations of a beam: exact top k over W x V, ties included."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tfm.model.cpu_kernels import dispatch
from tfm.model.cpu_kernels.dispatch import Candidates
from tfm.model.layers.log_probs import LogProbFn, LogProbsOfCandidates, LogProbsOfLogits
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.limits import SUPPRESSED_TOKENS
from tfm.tokenizer.special import EOS_ID

BLOCK_COLUMNS = 64
MAX_BLOCK_ROWS = 160
"""On a CPU this many rows are predicted at a time: their logits stay in the cache until the best candidates are
found."""


def best_continuations(
    predict: LogProbFn, rules: LogitsProcessor, num_pieces: Tensor, pieces: Tensor | None, sums_BW: Tensor, beam: int
) -> Candidates:
    """Return the best continuations of the hypotheses of each sentence, best first.

    The `beam` best of all and the `beam` best that do not end are those of `best_candidates`; the rest may lack.

    Args:
        predict: (rows) -> their log-probabilities.
        rules: the rules of these sentences.
        num_pieces: (B,), on the CPU: the number of pieces so far.
        pieces: (B, W, T), where rules look back at them; else None.
        sums_BW: (B, W), the log-probability of each hypothesis.
        beam: W.

    Returns:
        Values, beams and tokens (B, 2 * beam).
    """
    num_sentences, width = sums_BW.shape
    is_idle = dispatch.are_kernels_enabled() and rules.is_inactive(num_pieces)
    chunk_size = num_sentences if is_idle or sums_BW.device.type != "cpu" else max(1, MAX_BLOCK_ROWS // width)
    candidates = []
    for first in range(0, num_sentences, chunk_size):
        chunk = slice(first, min(first + chunk_size, num_sentences))
        rows, sums = slice(chunk.start * width, chunk.stop * width), sums_BW[chunk]
        can_use_logits = is_idle or (
            dispatch.are_kernels_enabled() and rules.select(chunk).is_inactive(num_pieces[chunk])
        )
        best = _best_continuations_of_logits(predict, rows.start, sums, beam) if can_use_logits else None
        if best is None:
            log_probs_BWV = predict(rows).view(*sums.shape, -1)
            rules.select(chunk).apply(log_probs_BWV, num_pieces[chunk], None if pieces is None else pieces[chunk])
            best = best_candidates(log_probs_BWV, sums, 2 * beam)
            del log_probs_BWV  # freed before the next chunk is allocated
        candidates.append(best)
    values, beams, tokens = (
        torch.cat(parts) if len(candidates) > 1 else parts[0] for parts in zip(*candidates, strict=True)
    )
    return values, beams, tokens


def _best_continuations_of_logits(predict: LogProbFn, first_row: int, sums_BW: Tensor, beam: int) -> Candidates | None:
    """Return the best continuations straight from logits, where rules forbid nothing; None if there is no loop for
    that.
    """
    if not isinstance(predict, LogProbsOfLogits | LogProbsOfCandidates):
        return None
    logits = predict.logits
    chunk_logits = (lambda rows: logits(rows + first_row)) if first_row else logits
    candidates = dispatch.topk_of_logits(chunk_logits, sums_BW, beam, eos_id=EOS_ID, banned_ids=SUPPRESSED_TOKENS)
    if candidates is None or isinstance(predict, LogProbsOfLogits):
        return candidates
    values, beams, indices = candidates
    return values, beams, predict.candidates[indices]


def best_candidates(log_probs_BWV: Tensor, sums_BW: Tensor, k: int) -> Candidates:
    """Return the k largest of sums + log_probs in each sentence, best first; among equals lowest beam, then lowest
    token.

    torch's topk over W * V costs as much as a small model's whole step. The k best lie in the k blocks with the
    largest maxima (lowest block among equals), so topk is called twice on little: blocks, then pieces in those blocks.

    Args:
        log_probs_BWV: (B, W, V).
        sums_BW: (B, W), the log-probability of each hypothesis.
        k: number of candidates.

    Returns:
        Values (B, k) in the type of sums, beams (B, k) and tokens (B, k); where a sentence has fewer candidates the
        rest have value -inf.
    """
    num_sentences, beam, vocab = log_probs_BWV.shape
    num_full_blocks = vocab // BLOCK_COLUMNS
    maxima = (
        log_probs_BWV[..., : num_full_blocks * BLOCK_COLUMNS]
        .view(num_sentences, beam, num_full_blocks, BLOCK_COLUMNS)
        .amax(-1)
    )
    if vocab % BLOCK_COLUMNS:
        maxima = torch.cat([maxima, log_probs_BWV[..., num_full_blocks * BLOCK_COLUMNS :].amax(-1, keepdim=True)], -1)
    num_blocks = maxima.size(-1)
    blocks = largest_value_indices((maxima + sums_BW.unsqueeze(-1)).flatten(1), k)

    beams = blocks // num_blocks
    tokens = (blocks % num_blocks * BLOCK_COLUMNS).unsqueeze(-1) + torch.arange(BLOCK_COLUMNS, device=blocks.device)
    flat = (beams.unsqueeze(-1) * vocab + tokens.clamp(max=vocab - 1)).flatten(1)
    values = log_probs_BWV.flatten(1).gather(1, flat).view(tokens.shape) + sums_BW.gather(1, beams).unsqueeze(-1)
    values = values.masked_fill(tokens >= vocab, float("-inf")).flatten(1)

    indices = largest_value_indices(values, k)
    best, order = values.gather(1, indices).sort(dim=-1, descending=True, stable=True)
    flat = flat.gather(1, indices.gather(1, order))
    missing = k - best.size(1)
    best, flat = F.pad(best, (0, missing), value=float("-inf")), F.pad(flat, (0, missing))
    return best, flat // vocab, flat % vocab


def largest_value_indices(values: Tensor, k: int) -> Tensor:
    """Return the indices of the k largest values of each row, ascending (B, k or all); among equals those with the
    lowest index.
    """
    best, index = values.topk(min(k, values.size(1)))
    smallest = best[:, -1:]
    # topk leaves open which of several equals it takes: only a tie across its edge needs the slow sort
    has_tie = ((values == smallest).sum(1) > (best == smallest).sum(1)) & (smallest.squeeze(1) > float("-inf"))
    if has_tie.any():
        index = values.sort(dim=-1, descending=True, stable=True).indices[:, : best.size(1)]
    return index.sort(-1).values
