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


def main(request: dict[str, Any]) -> None:
    folder, cores = Path(request["folder"]), len(os.sched_getaffinity(0))
    start_time, model = time.perf_counter(), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        input=[str(folder / name) for name in request["texts"]],
        model_writer=model,
        model_type=request["kind"],
        vocab_size=request["vocab_size"],
        num_threads=cores,
        minloglevel=2,
    )
    learning = time.perf_counter() - start_time

    lines = [line for name in request["texts"] for line in (folder / name).read_text("utf-8").split("\n")[:-1]]
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue(), num_threads=cores)
    start_time, pieces = time.perf_counter(), 0
    for start in range(0, len(lines), LINES_PER_BATCH):
        pieces += sum(map(len, processor.encode(lines[start : start + LINES_PER_BATCH])))
    print(json.dumps({"rate": len(lines) / (time.perf_counter() - start_time), "pieces": pieces, "learning": learning}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
