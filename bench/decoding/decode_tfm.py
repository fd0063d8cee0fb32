"""Our own decoding, in a separate process: `python -m bench.decoding.decode_tfm < JSON`. The only place that calls it.

Prints what bench/decoding/answering.py prints.
"""

import json
import sys
from pathlib import Path
from typing import Any

from bench.decoding.answering import answer_sources
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.shortlist_folder import read_shortlist


def main(asked: dict[str, Any]) -> None:
    loaded = load_model(Path(asked["model"]), asked["device"])
    sources = loaded.source_tokenizer.encode_batch(asked["lines"])
    config = DecodingConfig(
        beam=asked["beam"],
        batch_sentences=asked["batch"],
        max_length=asked["longest"],
        precision=asked["precision"],
    )

    shortlist = None
    if asked["shortlist"] is not None:
        shortlist = read_shortlist(Path(asked["shortlist"]), loaded.source_tokenizer, loaded.target_tokenizer)

    def search(batch: list[list[int]]) -> list[list[int]]:
        found = decode(loaded.model, batch, config, device=asked["device"], shortlist=shortlist)
        return [list(hypotheses[0].ids) for hypotheses in found]

    answer_sources(search, sources, one_at_a_time=asked["one_at_a_time"])


if __name__ == "__main__":
    main(json.load(sys.stdin))
