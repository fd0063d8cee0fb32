"""subword-nmt on files of text: `python tokenize_subword_nmt.py < JSON` (needs: subword-nmt). Prints JSON.

Its words are what stands between spaces; it prints pieces as text, and has no numbers for them.
"""

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe


def main(request: dict[str, Any]) -> None:
    if request["kind"] != "bpe":
        raise SystemExit("subword-nmt has BPE alone")
    folder = Path(request["folder"])
    lines = [line for name in request["texts"] for line in (folder / name).read_text("utf-8").split("\n")[:-1]]
    start, codes = time.perf_counter(), io.StringIO()
    learn_bpe(io.StringIO("".join(f"{line}\n" for line in lines)), codes, request["vocab_size"], total_symbols=True)
    learning = time.perf_counter() - start

    codes.seek(0)
    splitter = BPE(codes)
    start, pieces = time.perf_counter(), 0
    for line in lines:
        pieces += len(splitter.process_line(line).split())
    print(json.dumps({"rate": len(lines) / (time.perf_counter() - start), "pieces": pieces, "learning": learning}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
