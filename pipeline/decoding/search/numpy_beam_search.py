"""Beam search of one sentence by a network in numpy: the result of `beam.py`, without torch."""

from collections.abc import Sequence
from itertools import count
from typing import Any, Protocol

import numpy as np

from tfm.data.arrays import Ints
from tfm.model.numpy_inference.transformer import Cache, Transformer, select_cache_rows
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.limits import LENGTH_NORMS, NEG_INF, SUPPRESSED_TOKENS, max_pieces
from tfm.pipeline.decoding.search.beams import Beams, Ids, Reals, eos_mask, top_unfinished_indices
from tfm.pipeline.decoding.search.hypothesis import Hypothesis, restore_ids, select_n_best
from tfm.tokenizer.special import EOS_ID


class Network(Protocol):
    """A network in numpy that continues hypotheses after what it has read."""

    @property
    def max_length(self) -> int:
        """The most pieces of a hypothesis, end token included."""

    def encode(self, source: Sequence[int]) -> Cache:
        """Return what is kept of a source."""

    def empty_cache(self) -> Cache:
        """Return the cache of one hypothesis without pieces."""

    def step(self, tokens: Ids, memory: Cache, cache: Cache) -> tuple[Any, Cache]:
        """Return log-probabilities (W, V) after the last pieces (W,), and the cache with them."""


def is_basic_search(config: DecodingConfig) -> bool:
    """Return whether hypotheses are searched for in fp32, as many as there can be, and nothing but a shortlist and
    lengths limits them.
    """
    is_search = config.strategy == "search" and not config.replace_unknown
    return is_search and _has_no_constraint(config) and config.n_best_problem() is None


def is_unconstrained(config: DecodingConfig) -> bool:
    """Return whether products are in fp32, and no piece is forced, forbidden or kept from coming (again)."""
    return _has_no_constraint(config) and config.shortlist is None


def _has_no_constraint(config: DecodingConfig) -> bool:
    is_free = config.no_repeat_ngram is None and not (config.forbidden or config.forced)
    return config.precision == "fp32" and is_free


def search_sentence(network: Network, source: Sequence[int], config: DecodingConfig) -> list[Hypothesis]:
    """Return the `config.n_best` hypotheses that a beam finds, best score first.

    Args:
        network: the network in numpy.
        source: ids, end token included.
        config: the [decoding] part of a recipe.
    """
    longest = max_pieces(len(source), config, network.max_length)
    norms = LENGTH_NORMS[config.length_norm](np.arange(longest + 2, dtype=np.float64), config.alpha)
    beam, hypotheses = config.beam, list[Hypothesis]()
    beams = Beams.start(config.n_best, norms[[longest + 1]])
    memory, cache = network.encode(source), network.empty_cache()
    for num_pieces in count():
        log_probs, cache = network.step(beams.tokens[0], memory, cache)
        apply_length_limits(log_probs, num_pieces, (min(config.min_length, longest), longest))
        values, parents, tokens = best_candidates(log_probs, beams.sums[0], 2 * beam)
        divisors = norms[[num_pieces + 1]]
        is_eos = eos_mask(values, tokens)
        finished = is_eos[:, :beam]
        if finished.any():
            beams.record_finished(finished, values[:, :beam] / divisors[:, None])
            for rank in finished[0].nonzero()[0]:
                ids = tuple(beams.pieces[0, parents[0, rank], :num_pieces].tolist())
                log_prob = values[0, rank].item()
                hypotheses.append(Hypothesis(ids, log_prob / divisors.item(), log_prob))
        survivors = top_unfinished_indices(is_eos, beam)[0]
        beams = beams.extend(values[:, survivors], parents[:, survivors], tokens[:, survivors], np.array([num_pieces]))
        if beams.done_mask(divisors, beam, beams.sums[:, 0])[0]:
            return select_n_best(hypotheses, config.n_best)
        cache = select_cache_rows(cache, parents[0, survivors])
    raise AssertionError  # a hypothesis of the most pieces can but end


def search_candidates(
    network: Transformer, source: Sequence[int], config: DecodingConfig, candidates: Ints | None
) -> list[Hypothesis]:
    """Return the hypotheses of `search_sentence`, made of some pieces alone.

    Args:
        network: the network in numpy.
        source: ids, end token included.
        config: the [decoding] part of a recipe.
        candidates: the pieces of a shortlist (U,), ascending; None: all may come.
    """
    if candidates is None:
        return search_sentence(network, source, config)
    return restore_ids(search_sentence(network.restrict(candidates), source, config), candidates)


def apply_length_limits(log_probs: Any, num_pieces: int, limits: tuple[int, int]) -> None:
    """Give -inf, in place, to every piece that may not come next.

    Args:
        log_probs: (W, V), changed.
        num_pieces: the number of pieces so far.
        limits: the fewest and the most pieces of a hypothesis.
    """
    shortest, longest = limits
    log_probs[:, SUPPRESSED_TOKENS] = NEG_INF
    if num_pieces < shortest:
        log_probs[:, EOS_ID] = NEG_INF
    if num_pieces >= longest:
        eos_log_probs = log_probs[:, EOS_ID].copy()
        log_probs[:] = NEG_INF
        log_probs[:, EOS_ID] = eos_log_probs


def best_candidates(log_probs: Any, sums: Reals, k: int) -> tuple[Reals, Ids, Ids]:
    """Return the k largest of sums + log_probs, best first; among equals lowest hypothesis, then lowest piece.

    Args:
        log_probs: (W, V).
        sums: (W,), the log-probability of each hypothesis.
        k: number of candidates.

    Returns:
        Values, hypotheses and pieces (1, k); where there are fewer candidates, the rest have value -inf.
    """
    vocab = log_probs.shape[1]
    values = (sums[:, None] + log_probs).ravel()
    minimum = np.partition(values, -k)[-k] if len(values) > k else NEG_INF
    indices = np.flatnonzero(values >= minimum)
    indices = indices[np.argsort(-values[indices], kind="stable")[:k]]
    missing = (0, k - len(indices))
    best, indices = np.pad(values[indices], missing, constant_values=NEG_INF), np.pad(indices, missing)
    return best[None], indices[None] // vocab, indices[None] % vocab
