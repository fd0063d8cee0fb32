"""transformers' pipeline on an exported classifier or tagger: `python labels_huggingface.py < JSON`. Prints labels and
seconds.

Needs torch and transformers, and nothing of tfm. A word's tag is that of its first piece.
"""

import json
import sys
import time
from typing import Any

from transformers import pipeline

WARM_UP, BATCH = 256, 64


def main(request: dict[str, Any]) -> None:
    is_tagger = request["is_tagger"]
    task = "token-classification" if is_tagger else "text-classification"
    label = pipeline(task, model=request["model"], batch_size=BATCH, device="cpu")

    def labels_of(lines: list[str]) -> list[str]:
        predictions = label(lines)
        if not is_tagger:
            return [each["label"] for each in predictions]
        return [tags_of(line, pieces) for line, pieces in zip(lines, predictions, strict=True)]

    labels_of(request["lines"][:WARM_UP])
    start = time.perf_counter()
    labels = labels_of(request["lines"])
    print(json.dumps({"seconds": time.perf_counter() - start, "labels": labels}))


def tags_of(line: str, pieces: list[dict[str, Any]]) -> str:
    """The tag of each word: what its first piece has."""
    tags: list[str] = []
    ends_word = True
    for piece in pieces:
        begins = ends_word or line[piece["start"] : piece["start"] + 1].isspace()
        if begins:
            tags.append(piece["entity"])
        ends_word = line[piece["end"] : piece["end"] + 1].isspace() or piece["end"] >= len(line)
    return " ".join(tags)


if __name__ == "__main__":
    main(json.load(sys.stdin))
