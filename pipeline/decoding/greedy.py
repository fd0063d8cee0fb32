"""Greedy search: the likeliest next piece, until the end token. Beam search of width 1 finds the same."""

import torch
from torch import Tensor

from model.layout import Layout
from pipeline.decoding.hypothesis import Hypothesis, best_first
from pipeline.decoding.rules import Rules
from pipeline.decoding.steppers import StateT, Stepper
from tokenizer.special import BOS_ID, EOS_ID


def greedy_search(stepper: Stepper[StateT], source: Tensor, layout: Layout, rules: Rules) -> list[list[Hypothesis]]:
    """One hypothesis a sentence; among equally likely pieces the lowest id.

    source (N,) holds the ids of B sentences, end tokens included, as `layout` says. A sentence leaves the batch with
    its end token.
    """
    device = source.device
    found: list[list[Hypothesis]] = [[] for _ in range(layout.batch)]
    sentences = torch.arange(layout.batch)
    tokens_B = torch.full((layout.batch,), BOS_ID, device=device)
    pieces_BT = torch.empty((layout.batch, int(rules.longest.max())), dtype=torch.int64, device=device)
    sums_B = torch.zeros(layout.batch, dtype=exact_dtype(device), device=device)
    state = stepper.start(source, layout)
    num_pieces = 0
    while True:
        log_probs_BV, state = stepper.step(tokens_B, state)
        rules.apply(log_probs_BV.unsqueeze(1), num_pieces)
        best_B, tokens_B = log_probs_BV.max(-1)
        sums_B = sums_B + best_B
        ended = (tokens_B == EOS_ID).cpu()
        if ended.any():
            out = ended.nonzero().squeeze(1)
            divisor = rules.divisors[num_pieces + 1].item()
            pieces, sums = pieces_BT[out.to(device), :num_pieces].tolist(), sums_B[out.to(device)].tolist()
            for sentence, ids, log_prob in zip(sentences[out].tolist(), pieces, sums, strict=True):
                found[sentence].append(Hypothesis(tuple(ids), log_prob / divisor, log_prob))
            stay = (~ended).nonzero().squeeze(1)
            if not len(stay):
                return [best_first(hypotheses, 1) for hypotheses in found]
            sentences, rules = sentences[stay], rules.select(stay)
            stay = stay.to(device)
            tokens_B, sums_B, pieces_BT, state = tokens_B[stay], sums_B[stay], pieces_BT[stay], state.select(stay)
        pieces_BT[:, num_pieces] = tokens_B
        num_pieces += 1


def exact_dtype(device: torch.device) -> torch.dtype:
    """The type to sum log-probabilities in: float64 where the device has it (Apple's GPUs do not)."""
    return torch.float32 if device.type == "mps" else torch.float64
