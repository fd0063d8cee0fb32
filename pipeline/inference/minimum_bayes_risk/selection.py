"""The texts of the largest expected utility: each text is a candidate, and each a reference of the others.

    h* = argmax over h of mean over r of u(h, r)     (Eikema and Aziz 2022)

Legend: N candidates.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tfm.pipeline.config import NUM_INITIAL_REFERENCES, DecodingConfig
from tfm.pipeline.inference.minimum_bayes_risk.utilities import UTILITIES, Floats, PairUtility
from tfm.pipeline.inference.translation_records import Translation

NUM_BOOTSTRAP_SAMPLES = 500


def candidate_config(config: DecodingConfig) -> DecodingConfig:
    """Return the settings by which the candidates are found."""
    return config.model_copy(update={"strategy": config.mbr_candidates, "n_best": config.mbr_size})


def cost_message(config: DecodingConfig) -> str:
    """Return what choosing costs, in words."""
    size = config.mbr_size
    pruning_note = "" if config.mbr_pruning is None else ", fewer where candidates are pruned"
    return (
        f"minimum Bayes risk: {size:,} hypotheses of each line, and up to {size * size:,} utilities "
        f"({config.mbr_utility}) of pairs of them{pruning_note}"
    )


def choose_by_utility(candidates: Sequence[Translation], config: DecodingConfig) -> list[Translation]:
    """Return the candidates of the largest expected utility, each text once, which is then their score.

    Args:
        candidates: in the order in which they were found, the best first; a text may occur several times.
        config: `n_best`, `mbr_utility`, `mbr_pruning` and `seed` are read.

    Returns:
        `n_best` of them, or as many as differ, the best first; of equals the one that was found first.
    """
    best_by_text: dict[str, Translation] = {}
    for candidate in candidates:
        best_by_text.setdefault(candidate.text, candidate)
    texts = list(best_by_text)
    text_indices = {text: number for number, text in enumerate(texts)}
    references = [text_indices[candidate.text] for candidate in candidates]
    utility = UTILITIES[config.mbr_utility](texts)
    if config.mbr_pruning is None:
        means = {number: float(utility(number, references).mean()) for number in range(len(texts))}
    else:
        # candidates come best first, and the first references are to stand for all
        order = np.random.default_rng([config.seed, len(references)]).permutation(len(references))
        drawn_references = [references[row] for row in order.tolist()]
        means = surviving_expected_utilities(utility, len(texts), drawn_references, config.mbr_pruning, config.seed)
    best = sorted(means, key=lambda number: (-means[number], number))[: config.n_best]
    return [replace(best_by_text[texts[number]], score=means[number]) for number in best]


def surviving_expected_utilities(
    utility: PairUtility, num_texts: int, references: Sequence[int], confidence: float, seed: int
) -> dict[int, float]:
    """Return the expected utility of the texts that survive (Cheng and Vlachos 2023, algorithm 1).

    After 8, 16, 32, .. references a text is left out if it is at least as good as the best so far in less than
    1 - confidence of 500 bootstrap samples of these references.

    Args:
        utility: of the texts.
        num_texts: their number.
        references: places of texts, in random order.
        confidence: 0 to 1; the larger, the fewer are left out.
        seed: of the bootstrap samples.

    Returns:
        The mean over all references of each text that is left.
    """
    draw = np.random.default_rng(seed)
    survivors: dict[int, Floats] = {number: np.empty(0) for number in range(num_texts)}
    size = 0
    while size < len(references):
        size, previous_size = min(max(NUM_INITIAL_REFERENCES, 2 * size), len(references)), size
        for number, utilities in survivors.items():
            survivors[number] = np.concatenate([utilities, utility(number, references[previous_size:size])])
        if size < len(references) and len(survivors) > 1:
            survivors = _prune_candidates(survivors, draw, confidence)
    return {number: float(utilities.mean()) for number, utilities in survivors.items()}


def _prune_candidates(
    utilities_by_text: dict[int, Floats], rng: np.random.Generator, confidence: float
) -> dict[int, Floats]:
    """The texts that are at least as good as the best one often enough."""
    values = np.stack(list(utilities_by_text.values()))
    chosen = rng.integers(values.shape[1], size=(NUM_BOOTSTRAP_SAMPLES, values.shape[1]))
    means = values[:, chosen].mean(2)
    best = values.mean(1).argmax()
    share = (means >= means[best]).mean(1)
    return {
        number: utilities
        for (number, utilities), win_share in zip(utilities_by_text.items(), share, strict=True)
        if win_share > 1 - confidence
    }
