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


def main(asked: dict[str, Any]) -> None:
    source, target = load_pair(Path(asked["engine"]))
    ids = {target.piece(number): number for number in range(target.vocab_size)}
    texts = [[source.piece(number) for number in each] for each in source.encode_batch(asked["lines"])]
    workers, threads = asked["layout"]
    engine = ctranslate2.Translator(
        asked["engine"],
        device=asked["device"],
        compute_type=asked["type"],
        inter_threads=workers,
        intra_threads=threads,
    )
    how = {"beam_size": asked["beam"], "max_batch_size": asked["batch"], "max_decoding_length": asked["longest"]}

    def search(batch: list[list[str]]) -> list[list[int]]:
        return [[ids[piece] for piece in found.hypotheses[0]] for found in engine.translate_batch(batch, **how)]

    answer_sources(search, texts, one_at_a_time=asked["one_at_a_time"])


if __name__ == "__main__":
    main(json.load(sys.stdin))
