"""Pairs a CPU second of each rule of `tfm clean`: `python -m bench.cleaning.rule_rates < JSON`. Prints JSON."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfm.data.lines import open_lines
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys
from tfm.pipeline.cleaning.rules.registry import CleaningRule, make_rules
from tfm.pipeline.cleaning.text_batch import TextPairBatch

RULES: dict[str, Any] = {
    "repair": {},
    "script": {"source": "Latin", "target": "Latin"},
    "numbers": {},
    "markup": {},
    "punctuation": {},
    "boilerplate": {},
    "near_duplicates": {},
    "language": {"source": "en", "target": "de"},
}
"""Rules that are off by default; the others are measured as they are."""
MODEL_RULES = ("mutual_information", "cross_entropy")
"""Rules that need two translation models."""
HELD_OUT_PAIRS = 1000


def main(request: dict[str, Any]) -> None:
    texts = [list(open_lines(Path(request[side])))[: request["pairs"]] for side in ("source", "target")]
    held_out = HeldOutKeys.from_pairs(list(zip(*texts, strict=True))[:HELD_OUT_PAIRS])
    models = dict.fromkeys(MODEL_RULES, request["models"]) if request["models"] else {}
    rules = make_rules(CleanConfig.model_validate(RULES | models), held_out)
    print(json.dumps({rule.name: measure_rate(rule, texts, request["rounds"]) for rule in rules}))


def measure_rate(rule: CleaningRule, texts: Sequence[list[str]], rounds: int) -> float:
    """Return the most pairs a CPU second of a rule in some rounds.

    Args:
        rule: the rule.
        texts: sources and targets.
        rounds: after one of few pairs, which reads tables and models.
    """
    apply_rule = make_rule_application(rule)
    apply_rule(TextPairBatch(*(side[:10] for side in texts)))
    best = float("inf")
    for _ in range(rounds):
        pairs = TextPairBatch(*texts)
        for side in pairs.sides:
            assert len(side.characters)
        start = time.process_time()
        apply_rule(pairs)
        best = min(best, time.process_time() - start)
    return len(texts[0]) / best


def make_rule_application(rule: CleaningRule) -> Callable[[TextPairBatch], object]:
    """Return the function that a rule applies to pairs."""
    if rule.name in MODEL_RULES:
        from tfm.pipeline.cleaning.late_scores import PAIR_SCORERS
        from tfm.pipeline.cleaning.rules.pairs.translation_models import TranslationModels

        models, score = TranslationModels(rule.config, "cpu"), PAIR_SCORERS[rule.name]

        def score_pairs(batch: TextPairBatch) -> object:
            pairs = list(zip(*(side.texts for side in batch.sides), strict=True))
            return score(pairs, models.measure_entropies(pairs, pairs), models)

        return score_pairs
    if rule.change is not None:
        change = rule.change
        return lambda pairs: [change(side.texts) for side in pairs.sides]
    assert rule.measure is not None
    return rule.measure


if __name__ == "__main__":
    main(json.load(sys.stdin))
