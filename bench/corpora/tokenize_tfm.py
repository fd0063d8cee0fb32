"""Text split into pieces by itself: `python -m bench.corpora.tokenize_tfm < JSON`. Prints JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from tfm.data.lines import open_lines
from tfm.tokenizer.tokenizer import Tokenizer

LINES_PER_BATCH = 1000


def main(request: dict[str, Any]) -> None:
    lines = [line for name in request["texts"] for line in open_lines(Path(request["folder"]) / name)]
    tokenizer = Tokenizer.load(Path(request["tokenizer"]) / "tokenizer.json")
    start_time, pieces = time.perf_counter(), 0
    for start in range(0, len(lines), LINES_PER_BATCH):
        ids, _ = tokenizer.encode_flat(lines[start : start + LINES_PER_BATCH])
        pieces += len(ids)
    print(json.dumps({"rate": len(lines) / (time.perf_counter() - start_time), "pieces": pieces}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
