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


def main(request: dict[str, Any]) -> None:
    loaded = load_model(Path(request["model"]), request["device"])
    sources = loaded.source_tokenizer.encode_batch(request["lines"])
    config = DecodingConfig(
        beam=request["beam"],
        batch_sentences=request["batch"],
        max_length=request["longest"],
        precision=request["precision"],
    )

    shortlist = None
    if request["shortlist"] is not None:
        shortlist = read_shortlist(Path(request["shortlist"]), loaded.source_tokenizer, loaded.target_tokenizer)

    def search(batch: list[list[int]]) -> list[list[int]]:
        n_best_lists = decode(loaded.model, batch, config, device=request["device"], shortlist=shortlist)
        return [list(hypotheses[0].ids) for hypotheses in n_best_lists]

    answer_sources(search, sources, one_at_a_time=request["one_at_a_time"])


if __name__ == "__main__":
    main(json.load(sys.stdin))
