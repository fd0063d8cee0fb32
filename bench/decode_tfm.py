"""Our own decoding, by a process of its own: `python -m bench.decode_tfm < JSON`. The one place that calls it.

Prints the seconds it took and the ids it found; with "latencies", the seconds of each sentence by itself.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from pipeline.config import DecodingConfig
from pipeline.decoding.decode import decode
from pipeline.models import load_model

WARM_UP = 256
"""Enough that compiled loops are loaded before the clock runs, as a peer's are."""


def main(asked: dict[str, Any]) -> None:
    loaded = load_model(Path(asked["model"]), "cpu")
    sources = loaded.source_tokenizer.encode_batch(asked["lines"])
    config = DecodingConfig(
        beam=asked["beam"],
        batch_sentences=asked["batch"],
        max_length=asked["longest"],
        precision=asked["precision"],
    )

    def search(batch: list[list[int]]) -> list[list[int]]:
        return [list(found[0].ids) for found in decode(loaded.model, batch, config)]

    answer(search, sources, one_at_a_time=asked["one_at_a_time"])


def answer(search: Any, sources: list[Any], *, one_at_a_time: bool) -> None:
    """Time a search of many sources, or of one after the other, and print what came of it."""
    groups = [[each] for each in sources] if one_at_a_time else [sources]
    for group in groups[:WARM_UP]:
        search(group[:WARM_UP])
    found, seconds = [], []
    for group in groups:
        began = time.perf_counter()
        found += search(group)
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": seconds, "found": found}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
