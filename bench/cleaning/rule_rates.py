"""Pairs a CPU second of each rule of `tfm clean`: `python -m bench.cleaning.rule_rates < JSON`. Prints JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from tfm.data.lines import open_lines
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.rules.corpora.overlap import HeldOutKeys
from tfm.pipeline.cleaning.rules.registry import make_rules
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
HELD_OUT_PAIRS = 1000


def main(request: dict[str, Any]) -> None:
    texts = [list(open_lines(Path(request[side])))[: request["pairs"]] for side in ("source", "target")]
    held_out = HeldOutKeys.from_pairs(list(zip(*texts, strict=True))[:HELD_OUT_PAIRS])
    rates = {}
    for rule in make_rules(CleanConfig.model_validate(RULES), held_out):
        few = TextPairBatch(*(side[:10] for side in texts))
        best = float("inf")
        for round_number in range(1 + request["rounds"]):
            pairs = few if round_number == 0 else TextPairBatch(*texts)  # the first round reads tables and models
            for side in pairs.sides:
                assert len(side.characters)
            began = time.process_time()
            if rule.change is not None:
                for side in pairs.sides:
                    rule.change(side.texts)
            if rule.measure is not None:
                rule.measure(pairs)
            if round_number:
                best = min(best, time.process_time() - began)
        rates[rule.name] = len(texts[0]) / best
    print(json.dumps(rates))


if __name__ == "__main__":
    main(json.load(sys.stdin))
