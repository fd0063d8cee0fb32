"""sentencepiece on files of text: `python tokenize_sentencepiece.py < JSON` (needs: sentencepiece). Prints JSON."""

import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import sentencepiece

LINES_PER_BATCH = 1000


def main(asked: dict[str, Any]) -> None:
    folder, cores = Path(asked["folder"]), len(os.sched_getaffinity(0))
    began, learned = time.perf_counter(), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=[str(folder / name) for name in asked["texts"]],
        model_writer=learned,
        model_type=asked["kind"],
        vocab_size=asked["vocab_size"],
        num_threads=cores,
        minloglevel=2,
    )
    learning = time.perf_counter() - began

    lines = [line for name in asked["texts"] for line in (folder / name).read_text("utf-8").split("\n")[:-1]]
    processor = sentencepiece.SentencePieceProcessor(model_proto=learned.getvalue(), num_threads=cores)
    began, pieces = time.perf_counter(), 0
    for start in range(0, len(lines), LINES_PER_BATCH):
        pieces += sum(map(len, processor.encode(lines[start : start + LINES_PER_BATCH])))
    print(json.dumps({"rate": len(lines) / (time.perf_counter() - began), "pieces": pieces, "learning": learning}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
