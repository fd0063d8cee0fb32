"""Our own labels, in a separate process: `python -m bench.decoding.labels_tfm < JSON`. Prints labels and seconds."""

import json
import sys
import time
from typing import Any

import tfm

WARM_UP = 256


def main(asked: dict[str, Any]) -> None:
    model = tfm.load(asked["model"])
    label = model.tag if asked["is_tagger"] else model.classify
    label(asked["lines"][:WARM_UP])
    began = time.perf_counter()
    labels = label(asked["lines"])
    seconds = time.perf_counter() - began
    if asked["is_tagger"]:
        labels = [" ".join(tags) for tags in labels]
    print(json.dumps({"seconds": seconds, "labels": labels}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
