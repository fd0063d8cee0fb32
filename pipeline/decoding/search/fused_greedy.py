"""Greedy search, one sentence after another, if a compiled loop can do it (`model/fused/greedy_search.py`)."""

from collections.abc import Callable, Sequence

from tfm.model.fused import greedy_search
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, select_n_best
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

SENTENCES_PER_CALL = 32
"""Sentences that one call of the loop searches for: passing it the weights takes as long as a step or two."""


def fused_greedy_search(
    stepper: object,
    sources: Sequence[Sequence[int]],
    rules: LogitsProcessor,
    on_done: Callable[[int], None],
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]] | None:
    """Return the hypotheses of `greedy.single_hypothesis_search`; None if the loop does not apply.

    Args:
        stepper: the model.
        sources: ids, end token included.
        rules: the rules of these sentences.
        on_done: called with the number of further sentences that are done.
        shortlist: of the pieces that may come; None: all may.
    """
    if rules.bans is not None or rules.forced is not None or rules.prefixes.size(1):
        return None
    search = greedy_search.make_greedy_search(stepper, (PAD_ID, BOS_ID, EOS_ID))
    if search is None:
        return None
    limits = list(zip(rules.shortest.tolist(), rules.longest.tolist(), strict=True))
    divisors, hypotheses = rules.divisors.tolist(), []
    for first in range(0, len(sources), SENTENCES_PER_CALL):
        part = slice(first, first + SENTENCES_PER_CALL)
        for ids, log_prob in search(sources[part], limits[part], shortlist):
            score = log_prob / divisors[len(ids)]
            hypotheses.append(select_n_best([Hypothesis(tuple(ids[:-1]), score, log_prob)], 1))
        on_done(len(sources[part]))
    return hypotheses
