"""CTranslate2 with a model exported by `tfm export`: `python -m bench.peers.decoding.decode_ctranslate2 < JSON`.

From the same token ids to token ids; prints the same as bench/decoding/answering.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2

from bench.decoding.answering import answer_sources
from tfm.tokenizer.code_points import load_pair


def main(request: dict[str, Any]) -> None:
    source, target = load_pair(Path(request["engine"]))
    ids = {target.piece(number): number for number in range(target.vocab_size)}
    texts = [[source.piece(number) for number in each] for each in source.encode_batch(request["lines"])]
    workers, threads = request["layout"]
    engine = ctranslate2.Translator(
        request["engine"],
        device=request["device"],
        compute_type=request["type"],
        inter_threads=workers,
        intra_threads=threads,
    )
    options = {
        "beam_size": request["beam"],
        "max_batch_size": request["batch"],
        "max_decoding_length": request["longest"],
    }

    def search(batch: list[list[str]]) -> list[list[int]]:
        return [[ids[piece] for piece in found.hypotheses[0]] for found in engine.translate_batch(batch, **options)]

    answer_sources(search, texts, one_at_a_time=request["one_at_a_time"])


if __name__ == "__main__":
    main(json.load(sys.stdin))
