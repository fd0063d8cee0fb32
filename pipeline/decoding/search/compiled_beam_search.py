"""Searches of one sentence by compiled loops, without torch: the results of `beam.py` and `greedy.py`.

A beam goes on for some steps at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfm.data.arrays import Ints
from tfm.model.fused.compiled_transformer import CompiledTransformer
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.limits import LENGTH_NORMS, max_pieces
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, restore_ids, select_n_best
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID

STEPS_PER_CALL = 16
"""After so many steps others may do theirs: few sentences have more pieces."""
SPECIAL_IDS = (PAD_ID, BOS_ID, EOS_ID)


def search_in_steps(
    network: CompiledTransformer, source: Sequence[int], config: DecodingConfig, candidates: Ints | None = None
) -> Iterator[list[Hypothesis] | None]:
    """Search for the `config.n_best` hypotheses of a sentence.

    Args:
        network: the network.
        source: ids, end token included.
        config: the [decoding] part of a recipe, in which only lengths limit the search.
        candidates: the pieces of a shortlist (U,), ascending; None: all may come.

    Yields:
        None after some steps, and in the end the hypotheses, best score first.
    """
    if candidates is not None:
        for hypotheses in search_in_steps(network.restrict(candidates), source, config):
            yield None if hypotheses is None else restore_ids(hypotheses, candidates)
        return
    longest = max_pieces(len(source), config, network.max_length)
    shortest = min(config.min_length, longest)
    norms = LENGTH_NORMS[config.length_norm](np.arange(longest + 2, dtype=np.float64), config.alpha)
    memory = network.encode(source)
    if config.beam == 1 and (greedy := network.search_greedily(memory, SPECIAL_IDS, (shortest, longest))) is not None:
        ids, log_prob = greedy
        yield select_n_best([Hypothesis(tuple(ids[:-1]), log_prob / float(norms[len(ids)]), log_prob)], 1)
        return
    state = network.start_beam(config.beam, config.n_best, longest)
    while not network.extend_beam(memory, state, SPECIAL_IDS, (shortest, longest), norms, STEPS_PER_CALL):
        yield None
    hypotheses = [_backtrack_hypothesis(state, end, norms) for end in range(state.progress[1])]
    yield select_n_best(hypotheses, config.n_best)


def search_to_end(
    network: CompiledTransformer, source: Sequence[int], config: DecodingConfig, candidates: Ints | None = None
) -> list[Hypothesis]:
    """Return the hypotheses of `search_in_steps`."""
    *_, hypotheses = search_in_steps(network, source, config, candidates)
    assert hypotheses is not None
    return hypotheses


def _backtrack_hypothesis(state: Any, end: int, norms: Any) -> Hypothesis:
    """The finished hypothesis of this number: its pieces are read from the last to the first."""
    step, row, log_prob = int(state.end_steps[end]), int(state.end_parents[end]), float(state.end_sums[end])
    pieces = []
    for t in range(step - 1, -1, -1):
        pieces.append(int(state.tokens[t, row]))
        row = int(state.parents[t, row])
    return Hypothesis(tuple(reversed(pieces)), log_prob / float(norms[step + 1]), log_prob)
