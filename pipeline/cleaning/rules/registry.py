"""All rules by name: the function that measures pairs for each, and what it gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.cleaning.config import CleanConfig, ExternalScorer
from tfm.pipeline.cleaning.limits import Limit
from tfm.pipeline.cleaning.recipe_check import MODEL_RULES, TWO_SIDED_RULES
from tfm.pipeline.cleaning.rules.corpora.boilerplate import boilerplate_keys
from tfm.pipeline.cleaning.rules.corpora.duplicates import duplicate_keys
from tfm.pipeline.cleaning.rules.corpora.near_duplicates import choose_lsh_bands_and_rows, make_near_duplicate_hasher
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys, mark_shared_pairs
from tfm.pipeline.cleaning.rules.pairs.copies import measure_side_similarity
from tfm.pipeline.cleaning.rules.pairs.markup import measure_markup_similarity
from tfm.pipeline.cleaning.rules.pairs.numbers import measure_digit_similarity
from tfm.pipeline.cleaning.rules.pairs.punctuation import measure_end_mark_similarity
from tfm.pipeline.cleaning.rules.pairs.ratio import measure_length_ratio
from tfm.pipeline.cleaning.rules.texts.controls import count_controls, remove_controls
from tfm.pipeline.cleaning.rules.texts.empty import mark_pairs_with_words
from tfm.pipeline.cleaning.rules.texts.language import make_language_measure
from tfm.pipeline.cleaning.rules.texts.length import measure_lengths
from tfm.pipeline.cleaning.rules.texts.letters import measure_letter_share
from tfm.pipeline.cleaning.rules.texts.repair import make_repair
from tfm.pipeline.cleaning.rules.texts.script import measure_script_share
from tfm.pipeline.cleaning.text_batch import TextPairBatch

# one more whenever a rule judges some pair otherwise: clean text of an earlier revision is no longer up to date
RULES_REVISION = 6
TextChange = Callable[[Sequence[str]], Sequence[str]]
CleaningRuleKind = Literal["transform", "score", "expensive_score", "dedup_keys", "model_score"]
MEASURE_BY_RULE: dict[str, Callable[[TextPairBatch, Any], NDArray[Any]]] = {
    "controls": count_controls,
    "empty": mark_pairs_with_words,
    "length": measure_lengths,
    "ratio": measure_length_ratio,
    "copies": measure_side_similarity,
    "letters": measure_letter_share,
    "script": measure_script_share,
    "numbers": measure_digit_similarity,
    "markup": measure_markup_similarity,
    "punctuation": measure_end_mark_similarity,
    "boilerplate": boilerplate_keys,
    "duplicates": duplicate_keys,
}


@dataclass(frozen=True)
class CleaningRule:
    """A rule as it is used.

    Args:
        name: of the rule.
        kind: transform: changes texts; score: measures pairs; expensive_score: only those that passed the rules before
            it; dedup_keys: compares pairs by keys; model_score: by a model or a command, at last.
        limits: of its scores, one a column.
        num_keys: keys of a pair.
        compares_sides: whether it needs both sides.
        change: texts -> texts.
        measure: pairs -> scores (n, columns) or keys (n, num_keys).
        config: its part of the recipe.
    """

    name: str
    kind: CleaningRuleKind
    limits: tuple[Limit, ...]
    num_keys: int = 0
    compares_sides: bool = False
    change: TextChange | None = None
    measure: Callable[[TextPairBatch], NDArray[Any]] | None = None
    config: Any = None

    @property
    def score_names(self) -> tuple[str, ...]:
        """The names of its scores: RULE, or RULE.SCORE of several."""
        if self.kind == "transform":
            return (self.name,)
        names = [limit.column for limit in self.limits]
        return (self.name,) if len(names) == 1 else tuple(f"{self.name}.{name}" for name in names)

    def find_failed_pairs(self, scores: NDArray[np.float64], limits: Sequence[Limit]) -> NDArray[np.bool_]:
        """(n,) whether scores (n, columns) are beyond limits with values; a score that is NaN is not."""
        has_failed = np.zeros(len(scores), np.bool_)
        for column, limit in zip(scores.T, limits, strict=True):
            if limit.low is not None:
                has_failed |= column < limit.low
            if limit.high is not None:
                has_failed |= column > limit.high
        return has_failed


def make_rules(config: CleanConfig, held_out: HeldOutKeys) -> list[CleaningRule]:
    """Return the rules of a recipe, in order.

    Args:
        config: the [clean] part of the recipe.
        held_out: of the texts that no training pair may have, if there is such a rule.

    Raises:
        RecipeError: a package that a rule needs is not installed.
    """
    return [_make_rule(name, each, held_out) for name, each in config.rules.items()]


def make_text_changes(config: CleanConfig) -> list[TextChange]:
    """Return the functions by which the rules of a recipe change texts, in order; raises what `make_rules` does."""
    changes = (_make_text_change(name, each) for name, each in config.rules.items())
    return [change for change in changes if change is not None]


def _make_text_change(name: str, config: Any) -> TextChange | None:
    """The function by which a rule changes texts; None for a rule that measures pairs."""
    if name == "repair":
        return make_repair(config)
    if name == "controls" and config.action == "remove":
        return partial(remove_controls, config=config)
    return None


def _make_rule(name: str, config: Any, held_out: HeldOutKeys) -> CleaningRule:
    make_rule = partial(CleaningRule, name, limits=config.limits, compares_sides=name in TWO_SIDED_RULES, config=config)
    if isinstance(config, ExternalScorer) or name in MODEL_RULES:
        return make_rule(kind="model_score")
    if (change := _make_text_change(name, config)) is not None:
        return make_rule(kind="transform", change=change)
    if name == "language":
        return make_rule(kind="expensive_score", measure=make_language_measure(config))
    if name == "overlap":
        return make_rule(kind="score", measure=partial(mark_shared_pairs, config=config, held_out=held_out))
    if name == "near_duplicates":
        bands = choose_lsh_bands_and_rows(config.likeness)[0]
        return make_rule(kind="dedup_keys", num_keys=bands, measure=make_near_duplicate_hasher(config))
    num_keys = {"duplicates": 1, "boilerplate": 2}.get(name, 0)
    kind: CleaningRuleKind = "dedup_keys" if num_keys else "score"
    return make_rule(kind=kind, num_keys=num_keys, measure=partial(_measure_pairs, MEASURE_BY_RULE[name], config))


def _measure_pairs(
    measure: Callable[[TextPairBatch, Any], NDArray[Any]], config: Any, pairs: TextPairBatch
) -> NDArray[Any]:
    return measure(pairs, config)
