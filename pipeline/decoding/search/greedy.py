"""One hypothesis for each sentence, step by step: of the most probable pieces (greedy search), or of sampled ones.

For the most probable pieces, a beam of width 1 finds the same.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from tfm.model.layers.log_probs import LogProbsOfCandidates
from tfm.model.layout import Layout
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.limits import NEG_INF, SUPPRESSED_TOKENS
from tfm.pipeline.decoding.search.continuous_batching import BatchSlots
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, select_n_best
from tfm.pipeline.decoding.stepper import StateT, Stepper
from tfm.tokenizer.special import BOS_ID, EOS_ID

TokenSelector = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(log-probabilities (B, V) of the next piece, the sentences (B,), -1 for none, and their numbers of pieces (B,), both
on the CPU) -> the log-probability of the chosen piece (B,), and the piece (B,).
"""


def select_likeliest(log_probs: Tensor, sentences: Tensor, num_pieces: Tensor) -> tuple[Tensor, Tensor]:
    """Return the most probable pieces; among equally likely ones the lowest id.

    Args:
        log_probs: (B, V).
        sentences: (B,), unused.
        num_pieces: (B,), unused.

    Returns:
        Log-probabilities (B,) and pieces (B,).
    """
    best, tokens = log_probs.max(-1)
    return best, tokens


def select_likeliest_candidate(predict: LogProbsOfCandidates) -> tuple[Tensor, Tensor]:
    """Return what `select_likeliest` does where no rule forbids a piece, without a look at other pieces."""
    log_probs_BU = predict.candidate_log_probs(slice(None))
    log_probs_BU[:, SUPPRESSED_TOKENS] = NEG_INF
    best, indices = log_probs_BU.max(-1)
    return best, predict.candidates[indices]


def single_hypothesis_search(
    stepper: Stepper[StateT],
    source: Tensor,
    layout: Layout,
    rules: LogitsProcessor,
    *,
    choose: TokenSelector = select_likeliest,
    batch_size: int,
    on_done: Callable[[int], None] = lambda _: None,
) -> list[list[Hypothesis]]:
    """Return one hypothesis a sentence, of the pieces that `choose` takes.

    Args:
        stepper: the model.
        source: (N,), the ids of the sentences, end tokens included.
        layout: the layout of the source.
        rules: the rules of the hypotheses of each sentence.
        choose: (log-probabilities (B, V), sentences (B,), numbers of pieces (B,)) -> log-probabilities (B,) and pieces
            (B,).
        batch_size: the most sentences that are searched for at a time.
        on_done: called with the number of further sentences that are done.
    """
    device = source.device
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(layout.batch)]
    slots = BatchSlots(stepper, source, layout, rules, batch_size)
    tokens_B = torch.full((len(slots),), BOS_ID, device=device)
    pieces_BT = torch.empty((len(slots), int(rules.longest.max()) + 1), dtype=torch.int64, device=device)
    sums_B = torch.zeros(len(slots), dtype=log_prob_sum_dtype(device), device=device)
    while True:
        predict, slots.state = stepper.step(tokens_B, slots.state)
        if (
            choose is select_likeliest
            and isinstance(predict, LogProbsOfCandidates)
            and slots.rules.is_inactive(slots.num_pieces)
        ):
            log_prob_B, tokens_B = select_likeliest_candidate(predict)
        else:
            log_probs_BV = predict(slice(None))
            slots.rules.apply(log_probs_BV.unsqueeze(1), slots.num_pieces, pieces_BT)
            log_prob_B, tokens_B = choose(log_probs_BV, slots.sentences, slots.num_pieces)
        sums_B += log_prob_B
        pieces_BT.scatter_(1, slots.num_pieces.to(device).unsqueeze(1), tokens_B.unsqueeze(1))
        finished = (tokens_B == EOS_ID).cpu()
        if finished.any():
            _collect_finished(hypotheses, slots, finished & (slots.sentences >= 0), pieces_BT, sums_B, rules)
        if num_done := slots.advance(finished):
            on_done(num_done)
        slots.defer_long_sequences()
        if (new := slots.fill(1)) is not None:
            tokens_B[new], sums_B[new] = BOS_ID, 0.0
        if (remaining := slots.shrink(1)) is not None:
            if not len(remaining):
                return [select_n_best(sentence_hypotheses, 1) for sentence_hypotheses in hypotheses]
            remaining = remaining.to(device)
            tokens_B, sums_B, pieces_BT = tokens_B[remaining], sums_B[remaining], pieces_BT[remaining]


def _collect_finished(
    hypotheses: list[list[Hypothesis]],
    slots: BatchSlots[StateT],
    finished: Tensor,
    pieces: Tensor,
    sums: Tensor,
    rules: LogitsProcessor,
) -> None:
    """Add to `hypotheses` the hypotheses of the slots that have ended (B,)."""
    finished_on_device = finished.to(pieces.device)
    lengths = slots.num_pieces[finished].tolist()
    for sentence, ids, log_prob, length in zip(
        slots.sentences[finished].tolist(),
        pieces[finished_on_device].tolist(),
        sums[finished_on_device].tolist(),
        lengths,
        strict=True,
    ):
        divisor = rules.divisors[length + 1].item()
        hypotheses[sentence].append(Hypothesis(tuple(ids[:length]), log_prob / divisor, log_prob))


def log_prob_sum_dtype(device: torch.device) -> torch.dtype:
    """The type to sum log-probabilities in: float64 where the device has it (Apple's GPUs do not)."""
    return torch.float32 if device.type == "mps" else torch.float64
